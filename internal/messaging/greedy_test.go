package messaging

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// One request names a group a hundred times and reads it once, and groups too large together not at all.
func TestOneRequestReadsSoMuchAtMost(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		one, other := h.group("shop", "0241000001"), h.group("shop", "0241000002")
		h.write(func(tx *db.Tx) error { // the row says how large a group is
			_, err := tx.Exec(`UPDATE contact_groups SET contacts = $1`, MaxRead-1)
			return err
		})
		again := strings.Split(strings.Repeat(one.ID+" ", MaxGroups-1)+one.ID, " ")
		c, _, err := h.Send(t.Context(), h.caller(), Send{SenderID: h.sender.ID, Message: "hello", Groups: again})
		if err != nil || c.Recipients != 1 {
			t.Errorf("a group named %d times: %d recipients, %v", len(again), c.Recipients, err)
		}
		_, _, err = h.Send(t.Context(), h.caller(), Send{SenderID: h.sender.ID, Message: "hello", Groups: []string{one.ID, other.ID}})
		if p := wantKind(t, err, problem.Invalid); p.Fields["group_id_list"] == nil {
			t.Errorf("two that are too large together: %v", err)
		}
		h.quiet()
	})
}

// A long list of contacts is added in sets, each in a transaction of its own, and its key answers for all of them.
func TestALongListGoesInSets(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{})
		g := h.group("shop")
		list := make([]NewContact, 2*contactsAtOnce+2)
		for i, phone := range numbers(len(list)) {
			list[i].Phone = phone
		}
		list[contactsAtOnce].Phone, list[contactsAtOnce+1].Phone = "nobody", list[0].Phone
		caller := Caller{Tenant: "shop", IdempotencyKey: "key", BodyHash: "hash"}
		for _, replay := range []bool{false, true} {
			added, replayed, err := h.AddContacts(t.Context(), caller, g.ID, list)
			if err != nil || replayed != replay || added.New != len(list)-2 || added.Duplicates != 1 || len(added.Bad) != 1 || added.Bad[0].Row != contactsAtOnce+1 {
				t.Errorf("replay %v: %d new, %d there, bad %+v, replayed %v, %v", replay, added.New, added.Duplicates, added.Bad, replayed, err)
			}
		}
		if n := h.count(`SELECT count(*) FROM contacts`); n != int64(len(list)-2) {
			t.Errorf("%d rows", n)
		}
	})
}
