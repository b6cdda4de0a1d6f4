package app

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/roles"
)

// A note is stored once with its author, and masked like the page. The audit log records it without its text, and the account sees
// neither. After a person was erased from a payment, no notes can be added.
func TestPaymentNotes_operatorsOnly(t *testing.T) {
	t.Parallel()
	eachCrowd(t, func(t *testing.T, b *browsed) {
		const text = "asked Telecel about 0200000001"
		lost := b.the("payout-of-november-01")
		here := "/ops/payments/" + lost
		b.become("ops@example.com", identity.Membership{Role: roles.Operations})
		id := b.want(http.StatusOK, here, "No notes yet").hidden(t, "id")
		for _, note := range []string{"", "   ", strings.Repeat("n", book.MaxNote+1), "two\nlines"} {
			b.post(http.StatusUnprocessableEntity, here+"/notes", "id", id, "note", note)
		}
		b.post(http.StatusUnprocessableEntity, here+"/notes", "id", "1", "note", text)
		for range 2 { // a double click
			b.post(http.StatusSeeOther, here+"/notes", "id", id, "note", " "+text+" ").leads(t, here+"#notes")
		}
		if p := b.want(http.StatusOK, here, text, "Somebody"); strings.Count(p.text, text) != 1 {
			t.Error("the note is there twice")
		}
		b.want(http.StatusOK, "/ops/stuck", text)
		entries, err := b.audit.List(t.Context(), audit.Filter{Action: "payment.note", Subject: lost})
		if err != nil || len(entries) != 1 || entries[0].Tenant != roles.Installation || entries[0].Actor != "ops@example.com" ||
			strings.Contains(entries[0].Reason+string(entries[0].Details.(json.RawMessage)), "Telecel") {
			t.Errorf("%+v, %v", entries, err)
		}

		b.become("auditor@example.com", identity.Membership{Role: roles.Auditor})
		for _, path := range []string{here, "/ops/stuck"} {
			if p := b.want(http.StatusOK, path, "asked Telecel about"); strings.Contains(p.text, "0200000001") || strings.Contains(p.text, here+"/notes") || strings.Contains(p.text, "Assign to me") {
				t.Errorf("an auditor sees the number or a form: %s", p.text)
			}
		}
		b.post(http.StatusForbidden, here+"/notes", "id", id, "note", text)
		b.post(http.StatusForbidden, here+"/take")

		b.become("owner@adom.example", identity.Membership{Tenant: demoTenant, Role: roles.Owner})
		own := "/app/" + demoTenant
		for _, path := range []string{own + "/payments/" + lost, own + "/audit"} {
			if p := b.get(path); strings.Contains(p.text, "Telecel about") || strings.Contains(p.text, "payment.note") || strings.Contains(p.text, "No notes yet") {
				t.Errorf("%s has the note: %s", path, p.text)
			}
		}
		b.post(http.StatusForbidden, here+"/notes", "id", id, "note", text)

		paid, err := b.payments.Find(t.Context(), b.the("handset-0000000001"))
		if err == nil {
			err = b.db.Write(t.Context(), func(tx *db.Tx) error {
				book.EraseParty(tx, paid)
				book.EraseNotes(tx, lost)
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.become("ops@example.com", identity.Membership{Role: roles.Operations})
		if p := b.want(http.StatusOK, here, "erased"); strings.Contains(p.text, text) {
			t.Error("the note is not erased")
		}
		b.post(http.StatusGone, "/ops/payments/"+paid.ID+"/notes", "id", id, "note", text)
	})
}

// A payment that needs attention has one owner at a time. Another person can release it, but cannot take it over. The audit log
// records each change once.
func TestNeedsAttention_ownerAndFilter(t *testing.T) {
	t.Parallel()
	eachCrowd(t, func(t *testing.T, b *browsed) {
		const list, none = "/ops/stuck", "No payment of this owner needs attention"
		lost := b.the("payout-of-november-01")
		here := "/ops/payments/" + lost
		audited := func(action string, want int) {
			t.Helper()
			if entries, err := b.audit.List(t.Context(), audit.Filter{Action: action, Subject: lost}); err != nil || len(entries) != want {
				t.Errorf("%s: %+v, %v", action, entries, err)
			}
		}
		b.become("ama@example.com", identity.Membership{Role: roles.Operations})
		b.want(http.StatusOK, list, here, "Assign to me", "Age", "Newest note")
		for range 2 {
			b.post(http.StatusSeeOther, here+"/take", "list", "y").leads(t, list)
		}
		audited("payment.take", 1)
		ama := b.want(http.StatusOK, list+"?owner=me", here, "Release").hidden(t, "owner")
		b.want(http.StatusOK, list+"?owner="+ama, here)
		b.want(http.StatusOK, list+"?owner=none", none)

		b.become("kofi@example.com", identity.Membership{Role: roles.Support})
		b.want(http.StatusOK, list+"?owner=me", none)
		b.want(http.StatusOK, here, "Assigned to Somebody")
		b.post(http.StatusUnprocessableEntity, here+"/take")
		b.post(http.StatusUnprocessableEntity, here+"/release", "owner", "somebody else")
		for range 2 {
			b.post(http.StatusSeeOther, here+"/release", "owner", ama).leads(t, here)
		}
		audited("payment.release", 1)
		b.post(http.StatusSeeOther, here+"/take").leads(t, here)
		audited("payment.take", 2)
		b.want(http.StatusOK, list+"?owner=me", here)
		b.want(http.StatusOK, list+"?owner="+ama, none)
		b.post(http.StatusUnprocessableEntity, "/ops/payments/"+b.the("handset-0000000001")+"/take") // the payment has ended
	})
}

// Entries of the audit log are found by words and days, on its page and in its file.
func TestAuditLog_filters(t *testing.T) {
	t.Parallel()
	b := browse(t)
	b.signIn(b.nextLink())
	entry := audit.Entry{Actor: "kofi@example.com", Action: "tenant.set", Tenant: demoTenant, Subject: demoTenant, Reason: "contract of Takoradi"}
	if err := b.audit.Record(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	for query, found := range map[string]bool{"words=takoradi+KOFI": true, "words=takoradi+ama": false, "from=2001-01-01": true, "to=2001-01-01": false, "words=takoradi&from=2001-01-01&actor=kofi%40example.com": true} {
		for _, path := range []string{"/ops/audit?", "/ops/audit.csv?"} {
			if p := b.want(http.StatusOK, path+query); strings.Contains(p.text, "contract of Takoradi") != found {
				t.Errorf("%s%s: %s", path, query, p.text)
			}
		}
	}
	b.want(http.StatusOK, "/ops/audit?to=2001-01-01", "No entry matches these filters")
	b.want(http.StatusUnprocessableEntity, "/ops/audit?from=yesterday")
	b.want(http.StatusUnprocessableEntity, "/ops/audit?words=a+b+c+d+e+f+g+h+i")
	b.want(http.StatusUnprocessableEntity, "/ops/audit.csv?words=a+b+c+d+e+f+g+h+i")
}
