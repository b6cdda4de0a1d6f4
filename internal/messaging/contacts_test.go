package messaging

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/db/dbtest"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
)

func TestASendNeedsAnApprovedSenderID(t *testing.T) {
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

// sendAs sends under any sender ID.
func (h *fixture) sendAs(sender string) (Campaign, error) {
	c, _, err := h.Send(h.t.Context(), h.caller(), Send{SenderID: sender, Message: "hello", Recipients: []string{"0241234567"}})
	return c, err
}

func TestGroupsAndContacts(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{})
		h.customer("other", 0, "Bantama")
		ctx := t.Context()
		g := h.group("shop", "0241000001", "0241000002")
		added, _, err := h.AddContacts(ctx, idempotency.Caller{Tenant: "shop"}, g.ID, []NewContact{
			{Phone: "+233 24 100 0003", FirstName: " Ama ", LastName: "Mensah", Email: "ama@example.com"},
			{Phone: "0241000001"}, {Phone: "241000003"}, {Phone: "0302000000"}, {Phone: ""}, {Phone: "0241000004", FirstName: "a\x00b"},
		})
		if err != nil || added.New != 1 || added.Duplicates != 2 || len(added.Bad) != 3 || added.Bad[0].Row != 4 {
			t.Fatalf("%+v, %v", added, err)
		}
		ama := added.contacts[0]
		if ama.MSISDN != "233241000003" || ama.FirstName != "Ama" {
			t.Errorf("%+v", ama)
		}
		groups, err := h.Groups(ctx, "shop")
		if err != nil || len(groups) != 1 || groups[0].Contacts != 3 || groups[0].Icon != DefaultIcon {
			t.Errorf("%+v, %v", groups, err)
		}
		page, total, err := h.Contacts(ctx, "shop", g.ID, 2, 2)
		if err != nil || total != 3 || len(page) != 1 || page[0].ID != ama.ID {
			t.Errorf("the second page is %+v of %d, %v", page, total, err)
		}
		if page, _, err := h.Contacts(ctx, "shop", g.ID, 9, 2); err != nil || len(page) != 0 {
			t.Errorf("a page past the end: %+v, %v", page, err)
		}
		_, _, err = h.AddContact(ctx, idempotency.Caller{Tenant: "shop"}, g.ID, NewContact{Phone: "0241000003"})
		wantKind(t, err, problem.Duplicate)
		_, _, err = h.AddContact(ctx, idempotency.Caller{Tenant: "shop"}, g.ID, NewContact{Phone: "nobody"})
		wantKind(t, err, problem.Invalid)
		changed, err := h.UpdateContact(ctx, "shop", ama.ID, NewContact{LastName: "Owusu", Phone: "0241000009"})
		if err != nil || changed.FirstName != "Ama" || changed.LastName != "Owusu" || changed.MSISDN != "233241000009" {
			t.Errorf("%+v, %v", changed, err)
		}
		_, err = h.UpdateContact(ctx, "shop", ama.ID, NewContact{Phone: "0241000001"})
		wantKind(t, err, problem.Duplicate)
		renamed, err := h.UpdateGroup(ctx, "shop", g.ID, "buyers", "")
		if err != nil || renamed.Name != "buyers" || renamed.Icon != DefaultIcon {
			t.Errorf("%+v, %v", renamed, err)
		}

		for name, call := range map[string]func(tenant, id string) error{
			"update group": func(tenant, id string) error { _, err := h.UpdateGroup(ctx, tenant, id, "x", ""); return err },
			"delete group": func(tenant, id string) error { return h.DeleteGroup(ctx, tenant, id) },
			"contacts":     func(tenant, id string) error { _, _, err := h.Contacts(ctx, tenant, id, 1, 10); return err },
			"add contact": func(tenant, id string) error {
				_, _, err := h.AddContact(ctx, idempotency.Caller{Tenant: tenant}, id, NewContact{Phone: "0241000001"})
				return err
			},
			"update contact": func(tenant, id string) error {
				_, err := h.UpdateContact(ctx, tenant, contactOr(id, g.ID, ama.ID), NewContact{})
				return err
			},
			"delete contact": func(tenant, id string) error { return h.DeleteContact(ctx, tenant, contactOr(id, g.ID, ama.ID)) },
		} {
			if err := call("other", g.ID); !problem.Is(err, problem.Forbidden) {
				t.Errorf("%s of somebody else: %v", name, err)
			}
			if err := call("shop", "019f0000-0000-7000-8000-000000000000"); !problem.Is(err, problem.NotFound) {
				t.Errorf("%s that is unknown: %v", name, err)
			}
		}
		if err := h.DeleteContact(ctx, "shop", ama.ID); err != nil {
			t.Fatal(err)
		}
		if _, total, _ := h.Contacts(ctx, "shop", g.ID, 1, 10); total != 2 {
			t.Errorf("the group has %d contacts, expected 2", total)
		}
		if err := h.DeleteGroup(ctx, "shop", g.ID); err != nil {
			t.Fatal(err)
		}
		if n := h.count("SELECT count(*) FROM contacts"); n != 0 {
			t.Errorf("%d contacts are left of a group that is gone", n)
		}
	})
}

func contactOr(id, group, contact string) string {
	if id == group {
		return contact
	}
	return id
}

func TestContactsAddedAtOnceAreCountedRight(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{})
		g := h.group("shop")
		var wait sync.WaitGroup
		for i := range 10 {
			wait.Add(1)
			go func() {
				defer wait.Done()
				var list []NewContact
				for j := range 30 { // each overlaps the next
					list = append(list, NewContact{Phone: fmt.Sprintf("024%07d", i*20+j)})
				}
				if _, _, err := h.AddContacts(t.Context(), idempotency.Caller{Tenant: "shop"}, g.ID, list); err != nil {
					t.Error(err)
				}
			}()
		}
		wait.Wait()
		_, total, err := h.Contacts(t.Context(), "shop", g.ID, 1, 1)
		if n := h.count("SELECT count(*) FROM contacts"); err != nil || n != 210 || total != 210 {
			t.Errorf("%d rows, %d counted, expected 210; %v", n, total, err)
		}
	})
}

func TestImport(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{})
		for name, each := range map[string]struct {
			file  string
			added int
			bad   string
		}{
			"heading":           {"First Name,Surname,Phone,Other\nAma,Mensah,0241000001,x\nKofi,Owusu,+233 24 100 0002,y\n", 2, ""},
			"no heading":        {"0241000001,Ama\n0241000002\n", 2, ""},
			"semicolons":        {"\xef\xbb\xbfphone_number;first_name\r\n0241000001;Ama\r\n", 1, ""},
			"tabs":              {"phone\tname\n0241000001\tAma, the first\n", 1, ""},
			"bad rows":          {"phone,name\n0241000001,Ama\nnobody,Kofi\n0241000002,\xff\n\"broken\"x,y\n0241000003,Yaa\n,\n", 2, "3 4 5 7"},
			"duplicates":        {"phone\n0241000001\n233241000001\n", 1, ""},
			"more than one set": {"phone\n" + strings.Join(numbers(1_100), "\n") + "\nnobody\n", 1_100, "1102"},
		} {
			g := h.group("shop")
			calls := 0
			done, err := h.Import(t.Context(), "shop", g.ID, strings.NewReader(each.file), func(Imported) { calls++ })
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var bad []string
			for _, b := range done.Bad {
				bad = append(bad, fmt.Sprint(b.Row))
				if b.Text == "" {
					t.Errorf("%s: line %d is bad for no reason", name, b.Row)
				}
			}
			if _, total, _ := h.Contacts(t.Context(), "shop", g.ID, 1, 1); int(total) != each.added || done.Added != each.added || strings.Join(bad, " ") != each.bad {
				t.Errorf("%s: %d added, %d in the group, bad %v; %+v", name, done.Added, total, bad, done)
			}
			if want := done.Rows/importAtOnce + 1; calls != want {
				t.Errorf("%s: told %d times, expected %d", name, calls, want)
			}
		}
		g := h.group("shop")
		for name, file := range map[string]string{"empty": "", "no numbers": "a,b\nc,d\n", "not CSV": "\"a"} {
			if _, err := h.Import(t.Context(), "shop", g.ID, strings.NewReader(file), nil); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := h.Import(t.Context(), "shop", "nobody's", strings.NewReader("0241000001\n"), nil)
		wantKind(t, err, problem.NotFound)
	})
}

func TestTheReportOfCreditsAddsUpByNetworkAndEncoding(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		h.operator.script(func(_ int, s provider.Segment) provider.Outcome {
			switch s.To {
			case "233240000001":
				return refused
			case "233240000002":
				return silence
			}
			return h.operator.accept()
		})
		h.mustSend("hello", "0240000000", "0240000001", "0240000002", "0500000000")
		h.mustSend("₵"+strings.Repeat("a", 159), "0240000005", "0240000006")
		for _, s := range h.operator.all() {
			switch s.to {
			case "233240000000", "233240000005":
				h.receipt(s.outcome.UpstreamID, s.to, delivered)
			case "233240000006":
				h.receipt(s.outcome.UpstreamID, s.to, undelivered)
			}
		}
		lines, err := h.Use(t.Context(), "shop", "live", morning, morning.AddDate(0, 0, 1), Prices{Credit: 400, Segment: 210, Networks: map[msisdn.Network]Rate{msisdn.Telecel: 333}})
		if err != nil || len(lines) != 3 {
			t.Fatalf("%+v, %v", lines, err)
		}
		for i, want := range []UseLine{
			{Network: "MTN", Encoding: "gsm7", Messages: 3, Accepted: 1, Delivered: 1, Refused: 1, Undecided: 1, Credits: 2, Segments: 1, Paid: 8, Cost: 2},
			{Network: "MTN", Encoding: "ucs2", Messages: 2, Accepted: 2, Delivered: 1, Failed: 1, Credits: 2, Segments: 6, Paid: 8, Cost: 13},
			{Network: "TELECEL", Encoding: "gsm7", Messages: 1, Accepted: 1, Credits: 1, Segments: 1, Paid: 4, Cost: 3},
		} {
			if lines[i] != want {
				t.Errorf("got  %+v\nwant %+v", lines[i], want)
			}
		}
		if m, r := lines[1].Margin(), lines[1].DeliveryRate(); m != money.Pesewas(-5) || r != 5_000 || lines[2].DeliveryRate() != -1 {
			t.Errorf("margin %v, rate %d", m, r)
		}
		if lines, err := h.Use(t.Context(), "", "test", morning, morning.AddDate(0, 0, 1), Prices{}); err != nil || len(lines) != 0 {
			t.Errorf("test messages: %+v, %v", lines, err)
		}
	})
}

func TestPagesOfACampaignHaveEachRecipientOnce(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 5_000})
	h.operator.setReady(provider.ErrElsewhere)
	to := append(numbers(2_150), "bad one", "bad two")
	c := h.mustSend("hello", to...)
	at := func(page, size int64) []Message {
		p, err := h.CampaignMessages(t.Context(), "shop", c.ID, page, size)
		if err != nil || p.Total != 2_152 || p.Campaign.ID != c.ID {
			t.Fatalf("total %d, %v", p.Total, err)
		}
		return p.Messages
	}
	for _, each := range []struct {
		page, size int64
		n          int
		first      string
	}{{1, 100, 100, "233240000000"}, {11, 100, 100, "233240001000"}, {22, 100, 52, "233240002100"}, {23, 100, 0, ""}, {1 << 60, 100, 0, ""}, {0, 0, 1, "233240000000"}, {-1, 7, 7, "233240000000"}, {2_151, 1, 1, "bad one"}, {2_152, 1, 1, "bad two"}} {
		got := at(each.page, each.size)
		if len(got) != each.n || each.n > 0 && got[0].Recipient != each.first {
			t.Errorf("page %d of %d: %d rows, %+v", each.page, each.size, len(got), got[:min(1, len(got))])
		}
	}
	if m := at(1, 1)[0]; m.Status != StatusQueued || m.Credits != 1 || !m.SubmittedAt.IsZero() {
		t.Errorf("%+v", m)
	}
	if m := at(2_152, 1)[0]; m.Status != StatusInvalid || m.Credits != 0 {
		t.Errorf("%+v", m)
	}
	if _, err := h.CampaignMessages(t.Context(), "other", c.ID, 1, 10); !problem.Is(err, problem.NotFound) {
		t.Errorf("somebody else's campaign: %v", err)
	}
	h.mustSend("hello", "0241000001")
	list, err := h.Campaigns(t.Context(), "shop", "", 1)
	if err != nil || len(list) != 1 || list[0].Recipients != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err = h.Campaigns(t.Context(), "shop", list[0].ID, 10); err != nil || len(list) != 1 || list[0].ID != c.ID {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestCheckFindsEachBreak breaks one thing at a time behind messaging's back.
func TestCheckFindsEachBreak(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 5_000})
		h.operator.script(func(_ int, s provider.Segment) provider.Outcome {
			switch s.To {
			case "233240000001":
				return refused
			case "233240000002":
				return silence
			}
			return h.operator.accept()
		})
		h.mustSend("hello", numbers(5)...)
		h.mustSend(strings.Repeat("a", 161), "0241234567")
		h.operator.setReady(provider.ErrElsewhere)
		h.mustSend("hello", numbers(1_005)...)
		h.sound()
		for _, each := range []struct{ breaks, mends string }{
			{"UPDATE campaigns SET refunded = refunded + 1 WHERE recipients = 5", "UPDATE campaigns SET refunded = refunded - 1 WHERE recipients = 5"},
			{"UPDATE campaigns SET credits = 2 WHERE recipients = 5", "UPDATE campaigns SET credits = 1 WHERE recipients = 5"},
			{"UPDATE campaigns SET left_over = 1 WHERE recipients = 5", "UPDATE campaigns SET left_over = 0 WHERE recipients = 5"},
			{"UPDATE campaigns SET status = 'done' WHERE recipients = 5", "UPDATE campaigns SET status = 'active' WHERE recipients = 5"},
			{"UPDATE campaigns SET status = 'done' WHERE recipients = 1005", "UPDATE campaigns SET status = 'active' WHERE recipients = 1005"},
			{"UPDATE messages SET status = 'queued' WHERE recipient = '233240000003'", "UPDATE messages SET status = 'submitted' WHERE recipient = '233240000003'"},
			{"UPDATE messages SET status = 'failed' WHERE recipient = '233240000002'", "UPDATE messages SET status = 'unknown' WHERE recipient = '233240000002'"},
			{"UPDATE messages SET status = 'sending' WHERE recipient = '233240000000'", "UPDATE messages SET status = 'submitted' WHERE recipient = '233240000000'"},
			{"UPDATE messages SET open = 0 WHERE recipient = '233240000000'", "UPDATE messages SET open = 1 WHERE recipient = '233240000000'"},
			{"UPDATE messages SET status = 'delivered' WHERE recipient = '233240000001'", "UPDATE messages SET status = 'rejected' WHERE recipient = '233240000001'"},
			{"UPDATE parts SET state = 'failed' WHERE upstream_id = 'id-000004'", "UPDATE parts SET state = 'open' WHERE upstream_id = 'id-000004'"},
			{"UPDATE chunks SET size = 4 WHERE no = 1", "UPDATE chunks SET size = 5 WHERE no = 1"},
			{"UPDATE unsure SET message = 3", "UPDATE unsure SET message = 2"},
			{"UPDATE transfers SET amount = 4 WHERE kind = 'sms_charge' AND amount = 5", "UPDATE transfers SET amount = 5 WHERE kind = 'sms_charge' AND amount = 4"},
			{"UPDATE transfers SET kind = 'sms_refund' WHERE kind = 'sms_sale'", "UPDATE transfers SET kind = 'sms_sale' WHERE kind = 'sms_refund' AND from_account <> 'used'"},
			{"UPDATE transfers SET kind = 'other' WHERE kind = 'sms_refund'", "UPDATE transfers SET kind = 'sms_refund' WHERE kind = 'other'"},
		} {
			h.write(func(tx *db.Tx) error { _, err := tx.Exec(each.breaks); return err })
			if r, err := h.Check(t.Context()); err != nil || r.OK() {
				t.Errorf("not found: %s; %v", each.breaks, err)
			}
			h.write(func(tx *db.Tx) error { _, err := tx.Exec(each.mends); return err })
			h.sound()
		}
	})
}
