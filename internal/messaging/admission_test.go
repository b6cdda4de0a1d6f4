package messaging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

func TestSend_chargesOnceAndDelivers(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		c := h.mustSend("Your order is ready", "0241234567", "233241234567", "+233 24 123 4567", "0501234567")
		if c.Recipients != 2 || c.Credits != 1 || c.Segments != 1 || c.Encoding != smstext.GSM7 {
			t.Errorf("accepted as %+v", c)
		}
		h.WantBalance(8)
		got := h.operator.All()
		if len(got) != 2 || got[0].From != "Kejetia" || got[0].Text != "Your order is ready" || got[0].To == got[1].To {
			t.Fatalf("the operator was given %+v", got)
		}
		h.wantStatus(c, "2 submitted")
		if s := h.status(c); s != delivery.CampaignDone {
			t.Errorf("the campaign is %s", s)
		}
		for i, s := range got {
			h.receipt(s.Outcome.UpstreamID, s.To, []provider.Delivery{delivered, provider.DeliveryFailed}[i])
		}
		h.wantStatus(c, "1 delivered, 1 failed")
		h.WantBalance(8) // accepted segments are paid
		h.sound()
	})
}

func TestSend_priceByCharacters(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 1000})
	for _, each := range []struct {
		text              string
		credits, segments int64
	}{
		{strings.Repeat("a", 160), 1, 1},
		{strings.Repeat("a", 161), 2, 2},
		{strings.Repeat("a", 10_000), 63, 66},
		{"₵" + strings.Repeat("a", 159), 1, 3},
		{"🙂", 1, 1},
		{strings.Repeat("🙂", 36), 1, 2}, // each emoji has two units
	} {
		before := h.Balance()
		c := h.mustSend(each.text, "0241234567")
		if c.Credits != each.credits || c.Segments != each.segments {
			t.Errorf("%d characters cost %d credits and %d segments, expected %d and %d", len([]rune(each.text)), c.Credits, c.Segments, each.credits, each.segments)
		}
		h.WantBalance(before - each.credits)
		var whole strings.Builder
		texts := h.operator.All()
		for _, s := range texts[len(texts)-int(each.segments):] {
			whole.WriteString(s.Text)
		}
		if whole.String() != each.text {
			t.Errorf("%d characters arrive as %d others", len(each.text), whole.Len())
		}
	}
	h.sound()
}

func TestSend_beyondCredits(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 3})
		_, err := h.send(strings.Repeat("a", 161), "0241234567", "0241234568")
		p := wantKind(t, err, problem.InsufficientCredits)
		if s, ok := p.Data.(Shortage); !ok || s.Balance != 3 || s.Cost != 4 {
			t.Errorf("the refusal carries %+v", p.Data)
		}
		h.WantBalance(3)
		h.mustSend("fits", "0241234567", "0241234568", "0241234569")
		h.WantBalance(0)
		_, err = h.send("one too many", "0241234567")
		wantKind(t, err, problem.InsufficientCredits)
		if n := len(h.operator.All()); n != 3 {
			t.Errorf("%d messages left for 3 credits", n)
		}
		h.sound()
	})
}

func TestSend_concurrentlyNeverOverdraws(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 50})
		var wait sync.WaitGroup
		results := make([]error, 80)
		for i := range results {
			wait.Add(1)
			go func() {
				defer wait.Done()
				_, results[i] = h.send("hello", fmt.Sprintf("024%07d", i))
			}()
		}
		wait.Wait()
		h.Quiet()
		taken := 0
		for _, err := range results {
			if err == nil {
				taken++
			} else {
				wantKind(t, err, problem.InsufficientCredits)
			}
		}
		if taken != 50 || len(h.operator.All()) != 50 {
			t.Errorf("%d accepted and %d sent for 50 credits", taken, len(h.operator.All()))
		}
		h.WantBalance(0)
		h.sound()
	})
}

func TestSend_idempotencyKey(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 5_000})
		caller := h.caller()
		caller.IdempotencyKey, caller.BodyHash = "key-1", "body"
		small := Send{SenderID: h.sender.ID, Message: "hello", Recipients: []string{"0241234567"}}
		first, replayed, err := h.Send(t.Context(), caller, small)
		if err != nil || replayed {
			t.Fatal(replayed, err)
		}
		again, replayed, err := h.Send(t.Context(), caller, small)
		if err != nil || !replayed || again.ID != first.ID {
			t.Errorf("again: %s, %v, %v; first %s", again.ID, replayed, err, first.ID)
		}
		other := caller
		other.BodyHash = "another body"
		_, _, err = h.Send(t.Context(), other, small)
		if p := wantKind(t, err, problem.Invalid); p.Code != "idempotency_key_mismatch" {
			t.Errorf("another body is refused as %s", p.Code)
		}
		// A repeated request for a staged campaign is answered too, and leaves no chunks behind.
		caller.IdempotencyKey = "key-2"
		large := Send{SenderID: h.sender.ID, Message: "hello", Recipients: smstest.Numbers(1_500)}
		one, _, err := h.Send(t.Context(), caller, large)
		if err != nil {
			t.Fatal(err)
		}
		two, replayed, err := h.Send(t.Context(), caller, large)
		if err != nil || !replayed || one.ID != two.ID {
			t.Errorf("again: %s, %v, %v; first %s", two.ID, replayed, err, one.ID)
		}
		// The same holds for a campaign whose group was deleted since.
		caller.IdempotencyKey = "key-3"
		g := h.group(h.Tenant.ID, "0241234567")
		grouped := Send{SenderID: h.sender.ID, Message: "hello", Groups: []string{g.ID}}
		if one, _, err = h.Send(t.Context(), caller, grouped); err != nil {
			t.Fatal(err)
		}
		if err := h.contacts.DeleteGroup(t.Context(), h.Tenant.ID, g.ID); err != nil {
			t.Fatal(err)
		}
		two, replayed, err = h.Send(t.Context(), caller, grouped)
		if err != nil || !replayed || one.ID != two.ID {
			t.Errorf("again, without its group: %s, %v, %v; first %s", two.ID, replayed, err, one.ID)
		}
		h.Quiet()
		h.WantBalance(5_000 - 1 - 1_500 - 1)
		if n := h.Count("SELECT count(*) FROM chunks"); n != 0 {
			t.Errorf("%d chunks are left", n)
		}
		// After a day the key may be used again.
		h.Pass(idempotency.Window + time.Hour)
		caller.IdempotencyKey = "key-1"
		late, replayed, err := h.Send(t.Context(), caller, small)
		if err != nil || replayed || late.ID == first.ID {
			t.Errorf("a day later: %s, %v, %v", late.ID, replayed, err)
		}
		h.Quiet()
		h.sound()
	})
}

// A day after its first use, a key makes another campaign, even if the sweep has not removed its row. If the clock is
// set forward, the key does not end sooner, because the text would be sent twice.
func TestSend_keyFreeAfterADay(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 5_000})
		caller := h.caller()
		caller.IdempotencyKey, caller.BodyHash = "key-1", "body"
		send := Send{SenderID: h.sender.ID, Message: "hello", Recipients: []string{"0241234567"}}
		ask := func(when string, replays bool) {
			t.Helper()
			if _, replayed, err := h.Send(t.Context(), caller, send); err != nil || replayed != replays {
				t.Errorf("%s: replayed %v, %v", when, replayed, err)
			}
		}
		ask("the first", false)
		h.clock.Set(idempotency.Window + time.Hour)
		ask("after a step forward", true)
		h.clock.Advance(idempotency.Window - time.Second)
		ask("a second before its time", true)
		h.clock.Advance(time.Second)
		ask("a day after the step", false)
		ask("the second campaign with the key", true)
	})
}

func TestSend_sameKeyConcurrently(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		other := node(t, d, options{node: "two", sleep: true, at: h.clock, rail: h.operator})
		caller := h.caller()
		caller.IdempotencyKey, caller.BodyHash = "the key", "body"
		ids := make([]string, 20)
		var wait sync.WaitGroup
		for i := range ids {
			wait.Add(1)
			go func() {
				defer wait.Done()
				on := h
				if i%2 == 1 {
					on = other
				}
				c, _, err := on.Send(t.Context(), caller, Send{SenderID: h.sender.ID, Message: "hello", Recipients: []string{"0241234567"}})
				if err != nil {
					t.Error(err)
				}
				ids[i] = c.ID
			}()
		}
		wait.Wait()
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 1 {
			t.Errorf("one key made campaigns %v", ids)
		}
		h.WantBalance(99)
	})
}

func TestSend_invalidAndOptedOutRecipients(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.Write(func(tx *db.Tx) error { h.contacts.OptOut(tx, "shop", "asked us", "233241000002"); return nil })
		c := h.mustSend("hello", "0241000001", "0241000002", "0302000000", "not a number", "0241000003", "not a number")
		if c.Recipients != 2 || c.Invalid != 3 || c.Excluded != 1 {
			t.Errorf("%d recipients, %d invalid, %d excluded", c.Recipients, c.Invalid, c.Excluded)
		}
		h.WantBalance(8)
		h.wantStatus(c, "2 submitted, 3 invalid")
		for _, s := range h.operator.All() {
			if s.To == "233241000002" {
				t.Error("a number that opted out was sent to")
			}
		}
		_, err := h.send("hello", "0302000000", "not a number")
		if p := wantKind(t, err, problem.Invalid); p.Fields["recipients"] == nil {
			t.Errorf("all invalid: %v", err)
		}
		_, err = h.send("hello", "0241000002")
		wantKind(t, err, problem.Invalid)
		h.Write(func(tx *db.Tx) error {
			was, err := h.contacts.OptIn(tx, "shop", "233241000002")
			if !was {
				t.Error("the number was not on the list")
			}
			return err
		})
		h.mustSend("hello again", "0241000002")
		h.WantBalance(7)
		h.sound()
	})
}

func TestSend_badRequests(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 10})
	_, foreign := h.customer("other", 0, "Bantama")
	pending, _, err := h.senders.Request(t.Context(), idempotency.Caller{Tenant: "shop"}, "Adum", "another")
	if err != nil {
		t.Fatal(err)
	}
	good := Send{SenderID: h.sender.ID, Message: "hello", Recipients: []string{"0241234567"}}
	for name, each := range map[string]struct {
		change func(*Send)
		fields []string
		text   string
	}{
		"no recipients":     {func(s *Send) { s.Recipients = nil }, []string{"recipients"}, noRecipients},
		"no text":           {func(s *Send) { s.Message = " \n " }, []string{"message"}, ""},
		"control character": {func(s *Send) { s.Message = "a\x07b" }, []string{"message"}, ""},
		"broken text":       {func(s *Send) { s.Message = "a\xffb" }, []string{"message"}, ""},
		"too long":          {func(s *Send) { s.Message = strings.Repeat("₵", 67*255+1) }, []string{"message"}, ""},
		"foreign sender":    {func(s *Send) { s.SenderID = foreign.ID }, []string{"sender_id"}, "Invalid sender id"},
		"pending sender":    {func(s *Send) { s.SenderID = pending.ID }, []string{"sender_id"}, "Invalid sender id"},
		"a sender's name":   {func(s *Send) { s.SenderID = "Kejetia" }, []string{"sender_id"}, "Invalid sender id"},
		"all at once":       {func(s *Send) { *s = Send{} }, []string{"message", "recipients", "sender_id"}, ""},
		"too many":          {func(s *Send) { s.Recipients = make([]string, MaxRecipients+1) }, []string{"recipients"}, ""},
		"too many groups":   {func(s *Send) { s.Groups = make([]string, MaxGroups+1) }, []string{"group_id_list"}, ""},
	} {
		s := good
		each.change(&s)
		_, _, err := h.Send(t.Context(), h.caller(), s)
		p := problem.From(err)
		if err == nil || p.Kind != problem.Invalid || !slices.Equal(p.FieldNames(), each.fields) || each.text != "" && p.Message != each.text {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"line\nline", "ɛyɛ dɛ", strings.Repeat("₵", 67*255)} {
		if _, err := h.send(text, "0241234567"); err != nil && !problem.Is(err, problem.InsufficientCredits) {
			t.Errorf("%.10q: %v", text, err)
		}
	}
}

func TestSend_overlappingGroups(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		h.customer("other", 0, "Bantama")
		mine, theirs := h.group("shop", "0241000001", "0241000002", "0241000003"), h.group("other", "0241000009")
		empty := h.group("shop")
		send := func(s Send) (Campaign, error) {
			s.SenderID, s.Message = h.sender.ID, "hello"
			c, _, err := h.Send(t.Context(), h.caller(), s)
			h.Quiet()
			return c, err
		}
		c, err := send(Send{Groups: []string{mine.ID, mine.ID, empty.ID}, Recipients: []string{"0241000002", "0241000004"}})
		if err != nil || c.Recipients != 4 {
			t.Errorf("a group with numbers: %d recipients, %v", c.Recipients, err)
		}
		for name, groups := range map[string][]string{"foreign": {mine.ID, theirs.ID}, "unknown": {"019f0000-0000-7000-8000-000000000000"}, "no id": {"x"}} {
			_, err := send(Send{Groups: groups, Recipients: []string{"0241000002"}})
			if p := wantKind(t, err, problem.Forbidden); p.Code != "group_not_owned" {
				t.Errorf("a group that is %s: %v", name, err)
			}
		}
		_, err = send(Send{Groups: []string{empty.ID}})
		wantKind(t, err, problem.Invalid)
		if err := h.contacts.DeleteGroup(t.Context(), "shop", mine.ID); err != nil {
			t.Fatal(err)
		}
		_, err = send(Send{Groups: []string{mine.ID}})
		wantKind(t, err, problem.Forbidden)
		h.WantBalance(96)
		h.sound()
	})
}

func TestSend_groupDeletedMeanwhile(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000_000})
		g := h.group("shop", smstest.Numbers(1_500)...) // more recipients than one page
		for range 4 {
			gone := make(chan error, 1)
			go func() { gone <- h.contacts.DeleteGroup(context.WithoutCancel(t.Context()), "shop", g.ID) }()
			c, _, err := h.Send(t.Context(), h.caller(), Send{SenderID: h.sender.ID, Message: "hello", Groups: []string{g.ID}})
			if err == nil && c.Recipients != 1_500 {
				t.Errorf("a group of 1500 was sent to as one of %d", c.Recipients)
			} else if err != nil {
				wantKind(t, err, problem.Forbidden)
			}
			if err := <-gone; err != nil {
				t.Fatal(err)
			}
			g = h.group("shop", smstest.Numbers(1_500)...)
		}
		h.Quiet()
		h.sound()
	})
}

func TestSend_largeCampaignIsStaged(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 3_000})
		// The request is refused before it stores anything.
		_, err := h.send("hello", smstest.Numbers(3_001)...)
		wantKind(t, err, problem.InsufficientCredits)
		if n := h.Count("SELECT count(*) FROM chunks"); n != 0 {
			t.Errorf("%d chunks of a refused campaign are stored", n)
		}
		c := h.mustSend("hello", smstest.Numbers(2_345)...)
		h.WantBalance(3_000 - 2_345)
		if n := len(h.operator.All()); n != 2_345 {
			t.Errorf("%d of 2345 messages left", n)
		}
		h.wantStatus(c, "2345 submitted")
		if n := h.Count("SELECT count(*) FROM chunks"); n != 0 {
			t.Errorf("%d chunks are left", n)
		}
		h.sound()
	})
}

func TestSend_lostCommitAnswer(t *testing.T) {
	for _, size := range []int{1, 1_001} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
				h := open(t, d, options{credits: 20_000})
				sent := int64(0)
				for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
					for nth := 1; nth <= 3; nth++ {
						f.At(db.BoundaryCommit, nth, fault)
						c, err := h.send("hello", smstest.Numbers(size)...)
						if err != nil {
							t.Fatalf("%d, %d: %v", fault, nth, err)
						}
						sent += int64(size)
						h.Quiet()
						h.wantStatus(c, fmt.Sprintf("%d submitted", size))
					}
				}
				h.WantBalance(20_000 - sent)
				if n := int64(len(h.operator.All())); n != sent {
					t.Errorf("%d messages left for %d that were accepted", n, sent)
				}
				h.sound()
			})
		})
	}
}

func TestSend_withoutRail(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 10})
	h.sms = nil
	_, err := h.send("hello", "0241234567")
	wantKind(t, err, problem.Unavailable)
	h.WantBalance(10)
}

func TestCredits_soldOnceAndTakenBack(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		sell := func(fn func(*db.Tx, string, string, int64) (int64, error), id string, credits int64) (n int64, err error) {
			err = d.Write(t.Context(), func(tx *db.Tx) error {
				n, err = fn(tx, "shop", id, credits)
				return err
			})
			return n, err
		}
		if n, err := sell(h.SellCredits, "sale 1", 90); n != 100 || err != nil {
			t.Errorf("90 more than 10 are %d, %v", n, err)
		}
		h.Write(func(tx *db.Tx) error { // the balance after very many sales
			_, err := tx.Exec(`UPDATE shards SET balance = balance - $1 WHERE id = 'funding'`, ledger.Most-100)
			return err
		})
		_, full := sell(h.SellCredits, "sale 2", 1)
		if p := problem.From(full); p.Kind != problem.Invalid || !strings.Contains(p.Fields["credits"][0], "must be at most 0 credits, because an account holds at most") {
			t.Errorf("above what an account holds: %v", full)
		}
		h.Write(func(tx *db.Tx) error {
			_, err := tx.Exec(`UPDATE shards SET balance = balance + $1 WHERE id = 'funding'`, ledger.Most-100)
			return err
		})
		if _, err := sell(h.SellCredits, "sale 1", 90); !errors.Is(err, db.ErrUnique) {
			t.Errorf("one sale twice: %v", err)
		}
		if n, err := sell(h.TakeCredits, "mistake", 60); n != 40 || err != nil {
			t.Errorf("60 less than 100 are %d, %v", n, err)
		}
		_, err := sell(h.TakeCredits, "mistake 2", 41)
		wantKind(t, err, problem.InsufficientCredits)
		for _, bad := range []int64{0, -1, MaxSale + 1} {
			_, err := sell(h.SellCredits, "bad", bad)
			wantKind(t, err, problem.Invalid)
		}
		h.WantBalance(40)
		h.sound()
	})
}
