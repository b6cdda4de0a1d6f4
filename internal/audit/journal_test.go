package audit

import (
	"strings"
	"testing"
	"time"
)

// The journal masks the numbers of phones and accounts. It writes every id in full, even one whose last part has only
// digits. After a database was restored to an earlier state, an id finds the action again.
func TestJournal_masksNumbersKeepsIDs(t *testing.T) {
	const id, tenant = "01a21747-6739-7e99-b53f-179241234597", "12345678-1234-4234-8234-123456789012"
	j := Journal{Folder: t.TempDir(), Failed: func(_ string, err error) { t.Error(err) }}
	j.Add(Entry{ID: id, At: time.Now(), Actor: "ama@example.com", Action: "contacts.optout", Tenant: tenant, Subject: id,
		Reason: "asked by 233241234567, account 1040000000001", Details: map[string]string{"number": "0241234567", "payment": id}})
	list, err := j.Read()
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	n := list[0]
	if n.ID != id || n.Tenant != tenant || n.Subject != id || !strings.Contains(string(n.Details), id) {
		t.Errorf("an id is not whole: %+v, %s", n, n.Details)
	}
	if all := n.Reason + string(n.Details); n.Reason != "asked by 23324***67, account 10400***01" || strings.Contains(all, "0241234567") {
		t.Errorf("noted are %s", all)
	}
}
