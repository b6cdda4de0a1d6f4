package inbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
	"github.com/makola/makola/internal/webhook"
)

// fixture is a node with the account "shop", which has the number 1400 and 100 credits.
type fixture struct {
	*smstest.Node
	inbox    *Store
	messages *messaging.Messaging
	contacts *contacts.Store
	operator *smstest.Operator
	sequence uint32
}

func node(t *testing.T, d *db.DB) *fixture {
	n := smstest.New(t, d, smstest.Options{})
	f := &fixture{Node: n, operator: smstest.NewOperator()}
	answers := idempotency.NewAnswers(d, n.Clock)
	f.contacts = contacts.New(d, n.Tenants, answers, n.Clock, config.Quotas{})
	f.messages = messaging.New(messaging.Deps{DB: d, Ledger: n.Ledger, Tenants: n.Tenants, Jobs: n.Queue, Answers: answers, Recovery: n.Recovery,
		Senders: senderid.New(d, n.Tenants, answers, n.Clock, config.Quotas{}), Contacts: f.contacts, Clock: n.Clock, Log: n.Log, Secret: n.Secret,
		SMS: map[tenant.Mode]provider.SMSSender{tenant.Live: f.operator}})
	f.inbox = New(Deps{DB: d, Tenants: n.Tenants, Contacts: f.contacts, Messaging: f.messages, Jobs: n.Queue, Clock: n.Clock, Log: n.Log,
		Webhooks: webhook.New(d, n.Queue, n.Clock, n.Log, webhook.Options{Secret: n.Secret}), Words: config.OptOutWords{Stop: []string{"gyae"}}})
	t.Cleanup(func() { f.inbox.Close(); f.messages.Close() })
	return f
}

func open(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	f := node(t, d)
	f.Start()
	f.Tenant = f.account("shop", 100)
	f.assign("shop", "1400", "")
	return f
}

func (f *fixture) account(id string, credits int64) tenant.Tenant {
	f.T.Helper()
	made := f.Customer(id)
	f.Write(func(tx *db.Tx) error {
		_, err := f.messages.SellCredits(tx, id, "sale of "+id, credits)
		return err
	})
	return made
}

func (f *fixture) assign(tenantID, number, keyword string) {
	f.T.Helper()
	f.Write(func(tx *db.Tx) error {
		_, err := f.inbox.Assign(tx, Number{Tenant: tenantID, Number: number, Keyword: keyword, Answers: true})
		return err
	})
}

const (
	ama   = "233241000001"
	kofi  = "233241000002"
	first = "session one"
)

// text returns a text of one part, which arrives on the first connection.
func (f *fixture) text(from, to, text string) provider.Incoming {
	m := smstext.Encode(text)
	f.sequence++
	return provider.Incoming{From: from, To: to, Encoding: m.Encoding, Octets: m.Segments[0], Part: 1, Parts: 1, Session: first, Sequence: f.sequence, At: f.Clock.Now()}
}

// parts returns the parts of a long text.
func (f *fixture) parts(from, to, text string, reference int) (list []provider.Incoming) {
	m := smstext.Encode(text)
	for i, octets := range m.Segments {
		f.sequence++
		list = append(list, provider.Incoming{From: from, To: to, Encoding: m.Encoding, Octets: octets, Part: i + 1, Parts: len(m.Segments), Reference: reference, Session: first, Sequence: f.sequence, At: f.Clock.Now()})
	}
	return list
}

func (f *fixture) receive(list ...provider.Incoming) {
	f.T.Helper()
	for _, m := range list {
		if err := f.inbox.Receive(f.T.Context(), tenant.Live, m)(); err != nil {
			f.T.Fatal(err)
		}
	}
}

func (f *fixture) send(from, to, text string) {
	f.T.Helper()
	f.receive(f.text(from, to, text))
	f.Quiet()
}

// texts returns the texts of an account, oldest first, as sender, keyword and text.
func (f *fixture) texts(of string) (list []string) {
	f.T.Helper()
	all, err := f.inbox.Texts(f.T.Context(), Filter{Tenant: of, Limit: maxPage})
	if err != nil {
		f.T.Fatal(err)
	}
	for _, t := range all {
		list = append([]string{strings.TrimSpace(t.Keyword + "/" + t.Message)}, list...)
	}
	return list
}

func (f *fixture) want(of string, want ...string) {
	f.T.Helper()
	if got := f.texts(of); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", append([]string(nil), want...)) {
		f.T.Errorf("the texts of %q are %q, want %q", of, got, want)
	}
}

func (f *fixture) optedOut(of, number string) bool {
	f.T.Helper()
	list, err := f.contacts.OptOuts(f.T.Context(), of, "", 100)
	if err != nil {
		f.T.Fatal(err)
	}
	for _, o := range list {
		if string(o.MSISDN) == number {
			return true
		}
	}
	return false
}

// If an acknowledgement is lost, the operator sends the text again on another connection, and it counts once. If a person sends a
// text twice, it counts twice.
func TestReceive_repeatsStoredOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		m := f.text(ama, "1400", "vote 7")
		f.receive(m, m) // the same unit again
		again := m
		again.Session, again.Sequence = "session two", 1
		f.receive(again)
		f.want("shop", "/vote 7")
		f.receive(f.text(ama, "1400", "vote 7"))
		f.want("shop", "/vote 7", "/vote 7")
		f.receive(f.text(kofi, "1400", "vote 7"), f.text(ama, "1400", "vote 8"))
		f.want("shop", "/vote 7", "/vote 7", "/vote 7", "/vote 8")
		f.Clock.Advance(repeatWithin + time.Second)
		again.At = f.Clock.Now()
		f.receive(again)
		if n := len(f.texts("shop")); n != 5 {
			t.Errorf("%d texts after the time of repeats, want 5", n)
		}
	})
}

// If a node dies before it acknowledges a text, the operator sends the text on the next connection, which recognises it.
func TestReceive_killedBeforeAnswer(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		long := f.parts(kofi, "1400", strings.Repeat("a long text ", 20), 7)
		f.receive(f.text(ama, "1400", "STOP"), long[0])
		f.Quiet()
		second := node(t, d)
		for _, m := range []provider.Incoming{f.text(ama, "1400", "STOP"), long[0], long[1], long[1]} {
			m.Session = "of the second node"
			second.receive(m)
		}
		f.Quiet()
		f.want("shop", "/STOP", "/"+strings.TrimSpace(strings.Repeat("a long text ", 20)))
		if n := len(f.operator.All()) + len(second.operator.All()); n != 1 {
			t.Errorf("%d answers, want 1", n)
		}
	})
}

// A text that could not be stored is not acknowledged, and no part of it remains.
func TestReceive_failureStoresNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.Write(func(tx *db.Tx) error { _, err := tx.Exec(`ALTER TABLE inbox_texts RENAME TO away`); return err })
		if err := f.inbox.Receive(t.Context(), tenant.Live, f.text(ama, "1400", "STOP"))(); err == nil {
			t.Error("acknowledged")
		}
		if f.optedOut("shop", ama) {
			t.Error("the word of a text that was not stored counts")
		}
	})
}

func TestParts_joinedInAnyOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		text := strings.Repeat("₵20 for kenkey and 🐟 ", 9)
		p := f.parts(ama, "1400", text, 200)
		f.receive(p[2], p[0], p[0])
		f.want("shop")
		f.receive(p[1])
		f.want("shop", "/"+strings.TrimSpace(text))
		f.receive(p[1]) // its acknowledgement was lost
		f.want("shop", "/"+strings.TrimSpace(text))
		next := f.parts(ama, "1400", strings.Repeat("another text, ", 20), 200) // the operator uses the same reference number again
		f.receive(next...)
		if n := len(f.texts("shop")); n != 2 {
			t.Errorf("%d texts, want 2", n)
		}
	})
}

// If the last part of a text does not arrive, the text is stored after a while with a mark for the gap.
func TestParts_incompleteAfterWait(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		p := f.parts(ama, "1400", strings.Repeat("0123456789", 40), 9)
		f.receive(p[0], p[2])
		f.close()
		f.want("shop")
		f.Clock.Advance(partsWait + time.Second)
		f.close()
		all, err := f.inbox.Texts(t.Context(), Filter{Tenant: "shop"})
		if err != nil || len(all) != 1 || all[0].Missing != 1 || all[0].Parts != 3 || !strings.Contains(all[0].Message, gap) {
			t.Errorf("%+v, %v", all, err)
		}
		late := p[1]
		late.At = f.Clock.Now()
		f.receive(late)
		f.Clock.Advance(partsWait + repeatWithin + time.Second)
		f.close()
		f.close()
		if n := f.Count(`SELECT count(*) FROM inbox_parts WHERE joined_at = 0`); n != 0 {
			t.Errorf("%d parts wait", n)
		}
	})
}

func (f *fixture) close() {
	f.T.Helper()
	if err := f.inbox.closeParts(f.T.Context()); err != nil {
		f.T.Fatal(err)
	}
}

// A handset cannot fill the table of parts or of texts. Its STOP counts in any case.
func TestReceive_floodIsBounded(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		for i := range maxPartsOfOne + 20 {
			f.receive(provider.Incoming{From: ama, To: "1400", Encoding: smstext.GSM7, Octets: []byte(fmt.Sprint("part ", i)), Part: 1, Parts: 255, Reference: i, Session: first, Sequence: uint32(10_000 + i), At: f.Clock.Now()})
		}
		if n := f.Count(`SELECT count(*) FROM inbox_parts`); n != maxPartsOfOne {
			t.Errorf("%d parts are stored, want %d", n, maxPartsOfOne)
		}
		for i := range fromOne + 20 {
			f.receive(f.text(kofi, "1400", fmt.Sprint("text ", i)))
		}
		if n := f.Count(`SELECT count(*) FROM inbox_texts WHERE sender = $1`, kofi); n != fromOne {
			t.Errorf("%d texts are stored, want %d", n, fromOne)
		}
		f.send(kofi, "1400", "stop")
		if !f.optedOut("shop", kofi) {
			t.Error("the STOP of a flood is dropped")
		}
	})
}

func TestReceive_accountOfTheKeyword(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.account("radio", 10)
		f.assign("radio", "1400", "vote")
		f.send(ama, "1400", " VOTE: Sarkodie")
		f.send(ama, "1400", "hello")
		f.send(ama, "1401", "nobody has this")
		f.send("KEJETIA", "1400", "from a name")
		f.want("radio", "vote/VOTE: Sarkodie")
		f.want("shop", "/hello", "/from a name")
		f.want("", "/nobody has this")
		f.send(ama, "1400", "STOP vote")
		if f.optedOut("shop", ama) || !f.optedOut("radio", ama) {
			t.Error("STOP with a keyword is not for the keyword's account alone")
		}
		f.send(kofi, "1400", "stop")
		if !f.optedOut("shop", kofi) || !f.optedOut("radio", kofi) {
			t.Error("STOP without a keyword is not for all accounts of the number")
		}
		f.send(kofi, "1400", "stop sending me these things")
		f.want("shop", "/hello", "/from a name", "/stop", "/stop sending me these things")
	})
}

func TestAssign_refusals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		for name, each := range map[string]struct {
			n    Number
			kind problem.Kind
		}{
			"taken":           {Number{Tenant: "shop", Number: "1400"}, problem.Duplicate},
			"no number":       {Number{Tenant: "shop", Number: "shop"}, problem.Invalid},
			"too short":       {Number{Tenant: "shop", Number: "14"}, problem.Invalid},
			"a word":          {Number{Tenant: "shop", Number: "1400", Keyword: "stop"}, problem.Invalid},
			"two words":       {Number{Tenant: "shop", Number: "1400", Keyword: "two words"}, problem.Invalid},
			"unknown account": {Number{Tenant: "nobody", Number: "1402"}, problem.NotFound},
		} {
			err := d.Write(t.Context(), func(tx *db.Tx) error { _, err := f.inbox.Assign(tx, each.n); return err })
			if !problem.Is(err, each.kind) {
				t.Errorf("%s: %v", name, err)
			}
		}
		release := func(keyword string) error {
			return d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := f.inbox.Release(tx, tenant.Live, "1400", keyword)
				return err
			})
		}
		if err := errors.Join(release("")); err != nil || !problem.Is(release(""), problem.NotFound) {
			t.Errorf("%v", err)
		}
	})
}

// STOP is answered once and excludes the number from campaigns. START ends this, but not an opt-out by an operator.
func TestStop_untilStart(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.send(ama, "1400", "Stop.")
		if got := f.operator.All(); len(got) != 1 || got[0].To != ama || got[0].From != "1400" || got[0].Text != "You get no more messages from shop. Send START to 1400 to get them again." {
			t.Fatalf("%+v", got)
		}
		if !f.optedOut("shop", ama) {
			t.Error("not opted out")
		}
		f.send(ama, "1400", "STOP")
		f.send(ama, "1400", "gyae")
		if n := len(f.operator.All()); n != 1 {
			t.Errorf("%d answers to the same word, want 1", n)
		}
		f.send(ama, "1400", "start")
		if f.optedOut("shop", ama) || len(f.operator.All()) != 2 {
			t.Errorf("after START: %+v", f.operator.All())
		}
		f.Write(func(tx *db.Tx) error { f.contacts.OptOut(tx, "shop", "a letter", msisdn.MSISDN(kofi)); return nil })
		f.send(kofi, "1400", "START")
		if !f.optedOut("shop", kofi) || len(f.operator.All()) != 2 {
			t.Error("START ended an opt-out that an operator wrote")
		}
	})
}

// An automatic responder that answers with STOP and START gets only one answer for each word.
func TestStop_autoResponderLoopEnds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		for i := range 20 {
			f.send(ama, "1400", []string{"STOP", "START"}[i%2])
			if n := len(f.operator.All()); n > 0 {
				f.send(ama, "1400", f.operator.All()[n-1].Text) // it also quotes our text
			}
		}
		if n := len(f.operator.All()); n != 2 {
			t.Errorf("%d answers, want 2", n)
		}
	})
}

// An account without credits keeps the opt-out and sends no answer.
func TestStop_withoutCredits(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.account("poor", 1)
		f.Write(func(tx *db.Tx) error { _, err := f.messages.TakeCredits(tx, "poor", "taken", 1); return err })
		f.assign("poor", "1500", "")
		f.send(ama, "1500", "STOP")
		if all, err := f.inbox.Texts(t.Context(), Filter{Tenant: "poor"}); err != nil || len(all) != 1 || all[0].Answer != AnswerRefused || !f.optedOut("poor", ama) {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func TestEvent_queuedWithTheText(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		url := "https://shop.example/texts"
		f.Write(func(tx *db.Tx) error { _, _, err := f.Tenants.Set(tx, "shop", tenant.Change{SMSURL: &url}); return err })
		f.receive(f.text(ama, "1400", "hello"))
		var body, event, kind string
		_, err := d.ReadOne(t.Context(), `SELECT body, event, kind FROM webhook_events WHERE tenant = 'shop' AND url = $1`, []any{url}, &body, &event, &kind)
		if err != nil || event != "sms.received" || kind != "payout" || !strings.Contains(body, `"from":"0241000001","to":"1400","keyword":"","text":"hello","complete":true,"opt_out":""`) {
			t.Errorf("%s %s %s, %v", body, event, kind, err)
		}
	})
}

func TestTexts_erasedAndSwept(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.receive(f.text(ama, "1400", "my number is 0241000001"), f.text(kofi, "1400", "hello"))
		err := f.inbox.OfNumber(t.Context(), ama, func(found Text) error {
			return d.Write(t.Context(), func(tx *db.Tx) error { Erase(tx, found, "erased"); return nil })
		})
		if n := f.Count(`SELECT count(*) FROM inbox_texts WHERE sender = $1 OR message LIKE '%0241%'`, ama); n != 0 || err != nil {
			t.Errorf("%d texts have the number, %v", n, err)
		}
		f.Clock.Advance(defaultKeep + time.Second)
		if err := f.inbox.sweep(t.Context()); err != nil || len(f.texts("shop")) != 0 {
			t.Errorf("%q are left, %v", f.texts("shop"), err)
		}
	})
}

// A text is gone after its time in every place: also in its event, which webhooks keep longer, and in the receiver's response.
// A text whose event is not delivered yet stays.
func TestSweep_leavesNoText(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		url := "https://shop.example/texts"
		f.Write(func(tx *db.Tx) error { _, _, err := f.Tenants.Set(tx, "shop", tenant.Change{SMSURL: &url}); return err })
		f.receive(f.text(ama, "1400", "my secret wish"), f.text(kofi, "1400", "another wish"))
		change := func(sql string, args ...any) {
			t.Helper()
			f.Write(func(tx *db.Tx) error { _, err := tx.Exec(sql, args...); return err })
		}
		change(`UPDATE webhook_events SET state = 'delivered', ended_at = 1 WHERE body LIKE '%secret%'`)
		f.Clock.Advance(defaultKeep + time.Second)
		for range 2 {
			if err := f.inbox.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if found := dbtest.Holding(t, d, "secret wish"); len(found) > 0 {
			t.Errorf("the text is in %v", found)
		}
		if found := dbtest.Holding(t, d, "another wish"); !slices.Equal(found, []string{"inbox_texts.message", "webhook_events.body"}) {
			t.Errorf("the text whose event waits is in %v", found)
		}
		change(`UPDATE webhook_events SET state = 'delivered', ended_at = 1 WHERE state = 'pending'`)
		if err := f.inbox.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found := dbtest.Holding(t, d, " wish"); len(found) > 0 {
			t.Errorf("at last the texts are in %v", found)
		}
	})
}

// Whatever a handset sends can be stored.
func TestReceive_hostileTexts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		for i, m := range []provider.Incoming{
			{Encoding: smstext.UCS2, Octets: []byte("\x00\x00\xd8\x00\x00\x07\x20\x2e")},
			{Encoding: smstext.GSM7, Octets: []byte{0x1b, 0x1b, 0xff, 0x00, 0x0a}},
			{Encoding: smstext.Binary, Octets: []byte{0, 255}},
			{Encoding: smstext.Latin1, Octets: make([]byte, 60_000)},
			{Encoding: smstext.UCS2, Octets: nil},
			{Encoding: smstext.GSM7, Octets: []byte("x"), From: strings.Repeat("9", 500)},
		} {
			if m.From == "" {
				m.From = ama
			}
			m.To, m.Part, m.Parts, m.Session, m.Sequence, m.At = "1400", 1, 1, first, uint32(i+1), f.Clock.Now()
			f.receive(m)
		}
		if n := f.Count(`SELECT count(*) FROM inbox_texts WHERE tenant = 'shop'`); n != 6 {
			t.Errorf("%d texts, want 6", n)
		}
	})
}

// The sweep reads the old texts by their index, and not the texts that are kept.
func TestSweep_readsOldTextsOnly(t *testing.T) {
	plan := dbtest.Plan(t, oldTexts, time.Now(), time.Unix(0, 0), "", int64(sweepSet))
	if !strings.Contains(plan, "inbox_texts_received (received_at>? AND received_at<?)") {
		t.Error(plan)
	}
}
