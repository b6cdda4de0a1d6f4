package messaging

import (
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
)

// A request that names a group a hundred times reads it once. Groups that are too large together are not read.
func TestSend_readLimit(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: MaxRead})
		one, other := h.group("shop", "0241000001"), h.group("shop", "0241000002")
		h.Write(func(tx *db.Tx) error { // the row has the size of the group
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
		h.Quiet()
	})
}

// The contacts of groups are not read if the credits cannot pay for the send. Other errors of the request are
// reported first.
func TestSend_beyondCreditsReadsNoContacts(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 2})
		poor, _ := h.customer("poor", 0, "Bantama")
		groups := map[string][]string{
			"shop": {h.group("shop", "0241000001", "0241000002", "0241000003").ID, h.group("shop", "0241000004").ID},
			"poor": {h.group("poor", "0241000001").ID}, "empty": {h.group("poor").ID},
		}
		senders, err := h.senders.List(t.Context(), poor.ID)
		if err != nil || len(senders) != 1 {
			t.Fatalf("%+v, %v", senders, err)
		}
		send := func(tenant, sender string, groups []string, to ...string) error {
			_, _, err := h.Send(t.Context(), idempotency.Caller{Tenant: tenant}, Send{SenderID: sender, Message: "hello", Recipients: to, Groups: groups})
			return err
		}
		h.Write(func(tx *db.Tx) error { // makes every read of the contacts fail
			_, err := tx.Exec("ALTER TABLE contacts RENAME TO contacts_out_of_reach")
			return err
		})
		for name, each := range map[string]struct {
			err  error
			want Shortage
		}{
			"no credits":                         {send("poor", senders[0].ID, groups["poor"]), Shortage{Balance: 0, Cost: 1}},
			"more named recipients than credits": {send("shop", h.sender.ID, groups["shop"][1:], "0241000007", "0241000008", "0241000009", "0241000009"), Shortage{Balance: 2, Cost: 4}},
			"a group larger than the credits":    {send("shop", h.sender.ID, groups["shop"], "0241000001"), Shortage{Balance: 2, Cost: 5}},
		} {
			if p := wantKind(t, each.err, problem.InsufficientCredits); p.Data != each.want {
				t.Errorf("%s: %+v, want %+v", name, p.Data, each.want)
			}
		}
		for name, each := range map[string]struct {
			err  error
			want problem.Kind
		}{
			"no recipient":           {send("poor", senders[0].ID, nil), problem.Invalid},
			"a group of another":     {send("poor", senders[0].ID, groups["shop"]), problem.Forbidden},
			"a sender ID of another": {send("poor", h.sender.ID, groups["poor"]), problem.Invalid},
		} {
			if !problem.Is(each.err, each.want) {
				t.Errorf("%s: %v, want %v", name, each.err, each.want)
			}
		}
		h.Write(func(tx *db.Tx) error {
			_, err := tx.Exec("ALTER TABLE contacts_out_of_reach RENAME TO contacts")
			return err
		})
		if err := send("poor", senders[0].ID, groups["empty"], "nobody"); !problem.Is(err, problem.Invalid) {
			t.Errorf("nobody to send to, and no credits: %v", err)
		}
		// A recipient that opted out is not charged.
		h.Write(func(tx *db.Tx) error {
			h.contacts.OptOut(tx, "shop", "asked", "233241000002", "233241000007")
			return nil
		})
		if p := wantKind(t, send("shop", h.sender.ID, groups["shop"]), problem.InsufficientCredits); p.Data != (Shortage{Balance: 2, Cost: 3}) {
			t.Errorf("three contacts who did not opt out: %+v", p.Data)
		}
		if err := send("shop", h.sender.ID, groups["shop"][:1], "0241000001", "0241000003", "0241000007"); err != nil {
			t.Errorf("two recipients and two credits: %v", err)
		}
	})
}

func TestSend_needsApprovedSenderID(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1})
		asked, _, err := h.senders.Request(t.Context(), h.caller(), "Adum", "another")
		if err != nil {
			t.Fatal(err)
		}
		other, theirs := h.customer("other", 0, "Bantama")
		for name, id := range map[string]string{"a pending one": asked.ID, "one of " + other.ID: theirs.ID, "none": "", "an unknown one": "nobody's"} {
			if _, err := h.sendAs(id); !problem.Is(err, problem.Invalid) || problem.From(err).Code != "invalid_sender_id" {
				t.Errorf("sent under %s: %v", name, err)
			}
		}
		if _, err := h.sendAs(h.sender.ID); err != nil {
			t.Error(err)
		}
	})
}

// sendAs sends with any sender ID.
func (h *fixture) sendAs(sender string) (Campaign, error) {
	c, _, err := h.Send(h.t.Context(), h.caller(), Send{SenderID: sender, Message: "hello", Recipients: []string{"0241234567"}})
	return c, err
}
