package messaging

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/smstest"
)

// composed submits a campaign in which each number has its own text.
func (h *fixture) composed(texts map[string]string, order ...string) Composed {
	c := Composed{SenderID: h.sender.ID, Message: "Hi {first_name}"}
	for _, n := range order {
		c.Texts = append(c.Texts, Addressed{msisdn.MSISDN(n), texts[n]})
	}
	return c
}

func (h *fixture) sendComposed(c Composed) ([]Campaign, error) {
	var made []Campaign
	err := h.SendComposed(h.t.Context(), h.Tenant, c, func(_ *db.Tx, _ Quote, list []Campaign) error {
		made = list
		return nil
	})
	h.Quiet()
	return made, err
}

// sent returns the text that each number got, put together from its segments.
func (h *fixture) sent() map[string]string {
	texts := map[string]string{}
	for _, s := range h.operator.All() {
		texts[string(s.To)] += s.Text
	}
	return texts
}

// Each recipient gets their own text, and the account pays the price of that text. A message that no operator accepts is refunded
// at its price.
func TestComposed_ownTexts(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			if strings.HasSuffix(string(s.To), "5") {
				return smstest.Refused
			}
			return h.operator.Accept()
		})
		long := strings.Repeat("a", 161)
		texts := map[string]string{"233241000001": "Hi Ama", "233241000002": "Hi Kofi {last_name}", "233241000003": "Hi Ɛsi ₵", "233241000004": long, "233241000005": long + "b"}
		c := h.composed(texts, "233241000001", "233241000002", "233241000003", "233241000004", "233241000005")
		made, err := h.sendComposed(c)
		if err != nil || len(made) != 3 {
			t.Fatalf("%d campaigns, %v", len(made), err)
		}
		delete(texts, "233241000005")
		got := h.sent()
		delete(got, "233241000005")
		for n, want := range texts {
			if got[n] != want {
				t.Errorf("%s got %q, want %q", n, got[n], want)
			}
		}
		if n := h.creditsLeft(); n != 100-3-2 { // three short texts, and one text of two credits
			t.Errorf("%d credits are left", n)
		}
		for i, want := range []Campaign{{Segments: 1, Credits: 1, Recipients: 2}, {Segments: 1, Credits: 1, Recipients: 1}, {Segments: 2, Credits: 2, Recipients: 2}} {
			if is := made[i]; is.Segments != want.Segments || is.Credits != want.Credits || is.Recipients != want.Recipients || is.Message != c.Message {
				t.Errorf("campaign %d: %+v", i, is)
			}
		}
		h.wantStatus(made[2], "1 submitted, 1 rejected")
		h.sound()
	})
}

// A campaign with several prices is charged in full or not at all. The refusal names the total price.
func TestComposed_wholeOrNotAtAll(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 2})
		c := h.composed(map[string]string{"233241000001": "Hi Ama", "233241000002": strings.Repeat("a", 161)}, "233241000001", "233241000002")
		_, err := h.sendComposed(c)
		if p := wantKind(t, err, problem.InsufficientCredits); p.Data != any(Shortage{Balance: 2, Cost: 3}) {
			t.Errorf("%+v", p.Data)
		}
		undone := errors.New("the request has ended")
		c.Texts = c.Texts[:1]
		if err := h.SendComposed(t.Context(), h.Tenant, c, func(*db.Tx, Quote, []Campaign) error { return undone }); !errors.Is(err, undone) {
			t.Fatal(err)
		}
		h.Quiet()
		if all, err := h.Campaigns(t.Context(), h.Tenant.ID, "", 10); len(all) != 0 || len(h.operator.All()) != 0 || h.creditsLeft() != 2 {
			t.Errorf("%d campaigns, %d texts, %v", len(all), len(h.operator.All()), err)
		}
		h.sound()
	})
}

// A large scheduled campaign stores the text of each recipient until it starts, also for other nodes. Recipients who opt out before
// the start get nothing.
func TestComposed_largeAtAnotherNode(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{node: "a", credits: 10_000, sleep: true})
		c := Composed{SenderID: h.sender.ID, Message: "Hi {first_name}", At: h.clock.Now().Add(time.Hour)}
		for i, n := range smstest.Numbers(2_005) {
			c.Texts = append(c.Texts, Addressed{msisdn.MSISDN(n), fmt.Sprintf("Hi number %d", i)})
		}
		var made []Campaign
		if err := h.SendComposed(t.Context(), h.Tenant, c, func(_ *db.Tx, _ Quote, list []Campaign) error { made = list; return nil }); err != nil {
			t.Fatal(err)
		}
		gone := c.Texts[1_500]
		h.Write(func(tx *db.Tx) error { h.contacts.OptOut(tx, h.Tenant.ID, "by phone", gone.Number); return nil })
		other := node(t, d, options{node: "b", at: h.clock, rail: h.operator})
		h.clock.Advance(time.Hour)
		other.Quiet()
		got := h.sent()
		if _, sent := got[string(gone.Number)]; sent || len(got) != 2_004 {
			t.Fatalf("%d numbers got a text", len(got))
		}
		for _, a := range c.Texts {
			if a != gone && got[string(a.Number)] != a.Text {
				t.Fatalf("%s got %q, want %q", a.Number, got[string(a.Number)], a.Text)
			}
		}
		if n := h.creditsLeft(); n != 10_000-2_004 {
			t.Errorf("%d credits are left", n)
		}
		other.wantStatus(made[0], "1500 submitted, 1 failed, 504 submitted")
		h.sound()
	})
}

// A quote lists the unknown fields of a text, and the number of recipients at each price.
func TestQuote_refusals(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		good := h.composed(map[string]string{"233241000001": "Hi Ama"}, "233241000001")
		for name, bad := range map[string]func(*Composed){
			"recipients": func(c *Composed) { c.Texts = nil },
			"message":    func(c *Composed) { c.Texts = []Addressed{{"233241000001", " "}} },
			"at":         func(c *Composed) { c.At = h.clock.Now() },
			"sender_id":  func(c *Composed) { c.SenderID = "x" },
		} {
			c := good
			bad(&c)
			_, err := h.Quote(t.Context(), h.Tenant, c)
			if p := wantKind(t, err, problem.Invalid); len(p.Fields[name]) == 0 || len(p.Fields) != 1 {
				t.Errorf("%s: %v", name, p.Fields)
			}
		}
		many := good
		many.Texts = nil
		for i, n := range smstest.Numbers(maxPrices + 1) {
			many.Texts = append(many.Texts, Addressed{msisdn.MSISDN(n), strings.Repeat("a", 1+200*i)})
		}
		if _, err := h.Quote(t.Context(), h.Tenant, many); !problem.Is(err, problem.Invalid) {
			t.Error(err)
		}
	})
}
