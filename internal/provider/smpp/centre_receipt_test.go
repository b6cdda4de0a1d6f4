package smpp_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/smpp"
	"github.com/makola/makola/internal/sim"
	"github.com/makola/makola/internal/sim/smsc"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/test/clocktest"
)

// TestCentre_receiptIDForms: a receipt matches the id of its submit, in whatever forms the operator writes the two
// ids.
func TestCentre_receiptIDForms(t *testing.T) {
	forms := []smpp.IDForm{smpp.IDHex, smpp.IDDecimal}
	for _, submit := range forms {
		for _, receipt := range forms {
			testReceiptForms(t, submit, receipt)
		}
	}
	testReceiptForms(t, smpp.IDText, smpp.IDText)
}

func testReceiptForms(t *testing.T, submit, receipt smpp.IDForm) {
	for _, bare := range []bool{false, true} {
		t.Run(fmt.Sprintf("%s and %s, bare=%v", submit, receipt, bare), func(t *testing.T) {
			m := newCentre(t, smsc.Options{SubmitIDs: smsc.IDForm(submit), ReceiptIDs: smsc.IDForm(receipt), BareReceipts: bare})
			bind := m.bind()
			bind.SubmitIDs, bind.ReceiptIDs = submit, receipt
			k := m.client(bind)
			if err := m.Inject(sim.Fault{Provider: smsc.Name, Kind: sim.OddReceipt, Every: 2, Count: 1}); err != nil {
				t.Fatal(err)
			}
			var ids []string
			for range 2 { // one after the other, because receipts are stored concurrently, in any order
				ids = append(ids, k.send("233240000001", "x").UpstreamID)
				m.settle()
			}
			for i, r := range k.stored() {
				if r.UpstreamID != ids[i] || ids[i] == "" || r.State != provider.Delivered || r.To != "233240000001" {
					t.Errorf("%+v, submitted as %s", r, ids[i])
				}
			}
			if len(k.stored()) != 2 {
				t.Errorf("%v", k.stored())
			}
		})
	}
}

// TestCentre_receiptStates: each state that an operator reports is understood.
func TestCentre_receiptStates(t *testing.T) {
	m := newCentre(t, smsc.Options{})
	k := m.client(m.bind())
	for reason, want := range map[sim.Reason]provider.Receipt{
		sim.Expired:       {State: provider.DeliveryExpired, Code: "034"},
		sim.NotRegistered: {State: provider.DeliveryFailed, Code: "001"},
		sim.Barred:        {State: provider.DeliveryRejected, Code: "013"},
		sim.NoWord:        {State: provider.DeliveryUnknown, Code: "000"},
		sim.Internal:      {State: provider.DeliveryFailed, Code: "005"},
	} {
		before := len(k.stored())
		m.sms.Script(number(1), sim.Plan{Then: sim.Failed, Reason: reason})
		k.send(number(1), "x")
		m.settle()
		got := k.stored()[before:]
		if len(got) != 1 || got[0].State != want.State || got[0].Code != want.Code {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

// TestCentre_receiptBeforeAnswer: a receipt that comes before the answer to its submit is stored too.
func TestCentre_receiptBeforeAnswer(t *testing.T) {
	m := newCentre(t, smsc.Options{Latency: time.Second})
	k := m.client(m.bind())
	if err := m.Inject(sim.Fault{Provider: smsc.Name, Kind: sim.CallbackEarly}); err != nil {
		t.Fatal(err)
	}
	var o outcomes
	k.Submit(t.Context(), segment(number(1), "x"), o.of(0))
	clocktest.Await(t, "the receipt", func() bool { return len(k.stored()) == 1 })
	if o.n.Load() != 0 {
		t.Fatal("the answer came first")
	}
	m.until("the answer", func() bool { return o.n.Load() == 1 })
	if r := k.stored()[0]; r.UpstreamID != o.get(0).UpstreamID || r.UpstreamID == "" {
		t.Errorf("%+v, answered %+v", r, o.get(0))
	}
}

// TestCentre_oddReceipts: late, missing, repeated, unknown and contradicting receipts.
func TestCentre_oddReceipts(t *testing.T) {
	m := newCentre(t, smsc.Options{})
	k := m.client(m.bind())
	for _, c := range []struct {
		fault sim.FaultKind
		after time.Duration
		want  []provider.Delivery
	}{
		{sim.CallbackLate, 11 * time.Second, nil},
		{sim.CallbackLate, 12 * time.Second, []provider.Delivery{provider.Delivered}},
		{sim.CallbackMissing, time.Hour, nil},
		{sim.Stuck, time.Hour, nil},
		{sim.CallbackDuplicate, 2 * time.Second, []provider.Delivery{provider.Delivered, provider.Delivered}},
		{sim.CallbackForged, 2 * time.Second, []provider.Delivery{provider.DeliveryFailed, provider.Delivered}},
		{sim.CallbackStale, 3 * time.Second, []provider.Delivery{provider.Delivered, provider.DeliveryFailed}},
		{sim.FailLater, 2 * time.Second, []provider.Delivery{provider.DeliveryFailed}},
	} {
		before := len(k.stored())
		if err := m.Inject(sim.Fault{Provider: smsc.Name, Kind: c.fault}); err != nil {
			t.Fatal(err)
		}
		out := k.send(number(1), "x")
		m.pass(c.after)
		got := k.stored()[before:]
		if c.fault == sim.CallbackForged { // the two come at the same time and may be stored in any order
			slices.SortFunc(got, func(a, b provider.Receipt) int { return int(b.State) - int(a.State) })
		}
		if !slices.EqualFunc(got, c.want, func(r provider.Receipt, state provider.Delivery) bool { return r.State == state }) {
			t.Errorf("%s: %+v", c.fault, got)
		}
		for i, r := range got {
			if stranger := c.fault == sim.CallbackForged && i == 0; stranger == (r.UpstreamID == out.UpstreamID) {
				t.Errorf("%s: %+v, submitted as %s", c.fault, got, out.UpstreamID)
			}
		}
		m.pass(20 * time.Second)
	}
	// If no receipt was requested, none is sent.
	before := len(k.stored())
	quiet := segment("233240000001", "x")
	quiet.WantsReceipt = false
	var o outcomes
	k.Submit(t.Context(), quiet, o.of(0))
	clocktest.Await(t, "the outcome", func() bool { return o.n.Load() == 1 })
	m.pass(5 * time.Second)
	if len(k.stored()) != before {
		t.Error("a receipt that nobody wanted")
	}
}

// TestCentre_receiptStoredBeforeAck: the centre sends a receipt again if it could not be stored, or if its
// acknowledgement was lost.
func TestCentre_receiptStoredBeforeAck(t *testing.T) {
	m := newCentre(t, smsc.Options{})
	k := m.client(m.bind())
	var tries atomic.Int64
	k.onReceipt(func(provider.Receipt) error {
		if tries.Add(1) <= 3 {
			return errNotNow
		}
		return nil
	})
	k.send("233240000001", "x")
	m.until("the receipt", func() bool { return len(k.stored()) == 1 })
	m.settle()
	if got := m.sms.Totals(); tries.Load() != 4 || got.Repeated != 3 || got.Confirmed != 1 || got.Receipts != 4 {
		t.Errorf("%d tries, %+v", tries.Load(), got)
	}

	// The connection breaks while the receipt is being stored. It is stored, and the centre sends it again.
	k.onReceipt(func(provider.Receipt) error {
		if tries.Add(1) == 5 {
			m.sms.Disconnect()
		}
		return nil
	})
	k.send("233240000001", "y")
	m.until("the repetition", func() bool { return len(k.stored()) == 3 })
	m.settle()
	list := k.stored()
	if list[1].UpstreamID != list[2].UpstreamID || m.sms.Totals().Confirmed != 2 {
		t.Errorf("%+v, %+v", list, m.sms.Totals())
	}
}

// TestCentre_receiptsWaitForBind: receipts that are due while no client is bound are sent at the next bind.
func TestCentre_receiptsWaitForBind(t *testing.T) {
	m := newCentre(t, smsc.Options{ReceiptWindow: 3})
	k := m.client(m.bind())
	o := k.resend(40)
	k.stop()
	clocktest.Await(t, "the unbind", func() bool { return m.sms.Totals().Bound == 0 })
	m.pass(time.Minute)
	again := m.client(m.bind())
	m.settle()
	var got, want []string
	for _, r := range slices.Concat(k.stored(), again.stored()) {
		got = append(got, r.UpstreamID)
	}
	for _, i := range o.each(provider.Accepted) {
		want = append(want, o.get(i).UpstreamID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(want) != 40 || !slices.Equal(slices.Compact(got), want) {
		t.Errorf("%d of %d receipts", len(got), len(want))
	}
}

// TestCentre_textFromHandset: a message that is not a receipt is acknowledged and has no other effect.
func TestCentre_textFromHandset(t *testing.T) {
	m := newCentre(t, smsc.Options{})
	k := m.client(m.bind())
	m.sms.SendText("0244123456", "ADOM", "STOP id:1 stat:DELIVRD ɛ")
	m.settle()
	if got := m.sms.Totals(); got.Confirmed != 1 || len(k.stored()) != 0 {
		t.Errorf("%+v, %v", got, k.stored())
	}
	if out := k.send(number(1), "x"); out.Class != provider.Accepted {
		t.Errorf("%+v", out)
	}
}

// long submits a whole text, with its parts in any order, and waits for the answers.
func (k *client) long(t rapid.TB, to, text string, group uint16) {
	m := smstext.Encode(text)
	var o outcomes
	for _, i := range rand.Perm(len(m.Segments)) {
		k.Submit(k.centre.t.Context(), provider.Segment{From: "ADOM", To: msisdn.MSISDN(to), Encoding: m.Encoding, Octets: m.Segments[i],
			Part: i + 1, Parts: len(m.Segments), Group: group, WantsReceipt: true}, o.of(i))
	}
	clocktest.Await(k.centre.t, "the answers", func() bool { return o.n.Load() == int64(len(m.Segments)) })
	if got := len(o.each(provider.Accepted)); got != len(m.Segments) {
		t.Fatalf("%d of %d parts of %q accepted: %+v", got, len(m.Segments), text, o.list)
	}
}

// TestCentre_longMessages: any text arrives unchanged, with both ways of joining parts. The centre refuses a part
// that is too long for a radio message and decodes each part separately. A wrong cut is therefore noticed.
func TestCentre_longMessages(t *testing.T) {
	for _, way := range []smpp.Concatenation{smpp.UDH, smpp.SAR} {
		t.Run(string(way), func(t *testing.T) {
			m := newCentre(t, smsc.Options{})
			bind := m.bind()
			bind.Concatenation, bind.Window = way, 100
			k := m.client(bind)
			group := uint16(0)
			arrives := func(t rapid.TB, text string) {
				group++
				to := fmt.Sprintf("23324%07d", 1000000+int(group))
				k.long(t, to, text, group)
				got := m.Messages(to)
				if len(got) != 1 || got[0].Text != text || got[0].From != "ADOM" {
					t.Fatalf("%q arrived as %+v", text, got)
				}
			}
			for _, text := range []string{
				strings.Repeat("a", 160), strings.Repeat("a", 161), strings.Repeat("a", 152) + "€" + strings.Repeat("b", 30),
				strings.Repeat("ɛ", 70), strings.Repeat("ɛ", 71), strings.Repeat("ɛ", 135), strings.Repeat("ɛ", 66) + "😀" + strings.Repeat("ɔ", 10), strings.Repeat("GH₵ 5 ", 1000),
				strings.Repeat("0123456789", 1000), strings.Repeat("^{}[]~|\\€", 100), "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ ¤¡ÄÖÑÜ§¿äöñüà",
			} {
				arrives(t, text)
			}
			alphabet := []rune("ab @£€^{ɛ₵😀\n")
			rapid.Check(t, func(t *rapid.T) {
				arrives(t, rapid.StringOfN(rapid.SampledFrom(alphabet), 1, 700, -1).Draw(t, "text"))
			})
		})
	}
}
