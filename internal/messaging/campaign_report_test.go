package messaging

import (
	"slices"
	"strings"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging/delivery"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

func TestUse_addsUpByNetworkAndEncoding(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 1_000})
		h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
			switch s.To {
			case "233240000001":
				return smstest.Refused
			case "233240000002":
				return smstest.Silence
			}
			return h.operator.Accept()
		})
		h.mustSend("hello", "0240000000", "0240000001", "0240000002", "0500000000")
		h.mustSend("₵"+strings.Repeat("a", 159), "0240000005", "0240000006")
		for _, s := range h.operator.All() {
			switch s.To {
			case "233240000000", "233240000005":
				h.receipt(s.Outcome.UpstreamID, s.To, delivered)
			case "233240000006":
				h.receipt(s.Outcome.UpstreamID, s.To, provider.DeliveryFailed)
			}
		}
		lines, err := h.Use(t.Context(), "shop", "live", smstest.Morning, smstest.Morning.AddDate(0, 0, 1), Prices{Credit: 400, Segment: 210, Networks: map[msisdn.Network]Rate{msisdn.Telecel: 333}})
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
		if lines, err := h.Use(t.Context(), "", "test", smstest.Morning, smstest.Morning.AddDate(0, 0, 1), Prices{}); err != nil || len(lines) != 0 {
			t.Errorf("test messages: %+v, %v", lines, err)
		}
	})
}

func TestCampaignMessages_eachRecipientOnce(t *testing.T) {
	h := open(t, dbtest.Open(t, db.SQLite), options{credits: 5_000})
	h.operator.SetReady(provider.ErrElsewhere)
	to := append(smstest.Numbers(2_150), "bad one", "bad two")
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
	if m := at(2_152, 1)[0]; m.Status != delivery.StatusInvalid || m.Credits != 0 {
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

// Operators see the campaigns of all tenants, newest first, and get the next page by key. A tenant sees only its own.
func TestCampaigns_ofAllTenants(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		mine := h.mustSend("mine", "0240000001")
		other, sender := h.customer("other", 10, "Bantama")
		theirs, _, err := h.Send(t.Context(), idempotency.Caller{Tenant: other.ID}, Send{SenderID: sender.ID, Message: "theirs", Recipients: []string{"0240000002"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			tenant, before string
			want           []string
		}{
			{"", "", []string{theirs.ID, mine.ID}}, {"", theirs.ID, []string{mine.ID}}, {"", mine.ID, nil},
			{"shop", "", []string{mine.ID}}, {"other", "", []string{theirs.ID}}, {"shop", mine.ID, nil}, {"nobody", "", nil},
		} {
			list, err := h.Campaigns(t.Context(), c.tenant, c.before, 10)
			var got []string
			for _, campaign := range list {
				got = append(got, campaign.ID)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("of %q before %q: %v, %v, not %v", c.tenant, c.before, got, err, c.want)
			}
		}
	})
}
