package compose

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/smstest"
)

type fixture struct {
	*smstest.Node
	*Store
	t        *testing.T
	senders  *senderid.Store
	operator *smstest.Operator
	sender   senderid.Sender
}

func each(t *testing.T, fn func(f *fixture)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := smstest.New(t, d, smstest.Options{})
		answers := idempotency.NewAnswers(d, n.Clock)
		f := &fixture{Node: n, t: t, operator: smstest.NewOperator(), senders: senderid.New(d, n.Tenants, answers, n.Clock, config.Quotas{})}
		people := contacts.New(d, n.Tenants, answers, n.Clock, config.Quotas{})
		m := messaging.New(messaging.Deps{DB: d, Ledger: n.Ledger, Tenants: n.Tenants, Jobs: n.Queue, Answers: answers, Senders: f.senders, Contacts: people,
			Clock: n.Clock, Log: n.Log, Secret: n.Secret, SMS: map[tenant.Mode]provider.SMSSender{tenant.Live: f.operator}, Recovery: n.Recovery})
		f.Store = New(d, n.Clock, n.Tenants, people, m)
		n.Start()
		t.Cleanup(m.Close)
		f.Tenant = f.Customer("shop")
		f.Write(func(tx *db.Tx) error { _, err := m.SellCredits(tx, "shop", "a sale", 100); return err })
		s, _, err := f.senders.Request(t.Context(), idempotency.Caller{Tenant: "shop"}, "Kejetia", "a shop")
		if err != nil {
			t.Fatal(err)
		}
		f.Write(func(tx *db.Tx) error {
			f.sender, err = f.senders.Review(tx, "shop", s.ID, senderid.Approved, "", "a tester")
			return err
		})
		fn(f)
	})
}

func (f *fixture) create(message string, from Source) (Draft, error) {
	return f.Create(f.t.Context(), "shop", uuid.NewString(), "ama", Text{SenderID: f.sender.ID, Message: message}, from)
}

func (f *fixture) must(message string, from Source) Draft {
	f.t.Helper()
	d, err := f.create(message, from)
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// texts returns the text of each recipient, as number=text.
func (f *fixture) texts(d Draft) (list []string) {
	f.t.Helper()
	p, err := f.Price(f.t.Context(), d)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, a := range p.Texts {
		list = append(list, string(a.Number)+"="+a.Text)
	}
	return list
}

func (f *fixture) request(d Draft) {
	f.t.Helper()
	f.Write(func(tx *db.Tx) error { return f.RequestIn(tx, d, "a request") })
}

// The fields of a text take their values from the columns of a file and from contacts. A value that looks like a field is not
// replaced again.
func TestCreate_fieldsOfAFile(t *testing.T) {
	each(t, func(f *fixture) {
		file := "Phone,First Name,Balance due\n0241000001,Ama,GHS 12.50\n0241000002,,7\n0241000003,{balance_due},8\n024,Kofi,9\n0241000001,Ama again,10\n0241000004,\"Yaa\nAsantewaa\",11\n"
		d := f.must("Dear {First Name|friend}, you owe {balance_due}. {50% off}", Source{File: strings.NewReader(file), Numbers: "0241000005\n0241000002"})
		want := []string{"233241000001=Dear Ama, you owe GHS 12.50. {50% off}", "233241000002=Dear friend, you owe 7. {50% off}",
			"233241000003=Dear {balance_due}, you owe 8. {50% off}", "233241000004=Dear Yaa Asantewaa, you owe 11. {50% off}"}
		if got := f.texts(d); !slices.Equal(got, want) {
			t.Errorf("the texts are\n%s", strings.Join(got, "\n"))
		}
		p, err := f.Price(t.Context(), d)
		if err != nil || p.Lacking != 1 || d.Invalid != 1 || d.Repeated != 2 || p.Credits() != 4 {
			t.Errorf("%d lack a value, %d invalid, %d repeated, %d credits, %v", p.Lacking, d.Invalid, d.Repeated, p.Credits(), err)
		}
	})
}

// Contact groups provide names. A number that is in a group and in the list is one recipient. Numbers that opted out are left out.
func TestCreate_groupsAndNumbers(t *testing.T) {
	each(t, func(f *fixture) {
		g, _, err := f.contacts.AddGroup(t.Context(), idempotency.Caller{Tenant: "shop"}, "customers", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.contacts.AddContacts(t.Context(), idempotency.Caller{Tenant: "shop"}, g.ID, []contacts.NewContact{{Phone: "0241000001", FirstName: "Ama"}, {Phone: "0241000002", FirstName: "Kofi"}}); err != nil {
			t.Fatal(err)
		}
		f.Write(func(tx *db.Tx) error { f.contacts.OptOut(tx, "shop", "by phone", "233241000002"); return nil })
		d := f.must("Hi {first_name|you}", Source{Groups: []string{g.ID, g.ID}, Numbers: "024 100 0001; 0241000003 0241000004, nobody"})
		if got, want := f.texts(d), []string{"233241000001=Hi Ama", "233241000003=Hi you", "233241000004=Hi you"}; !slices.Equal(got, want) {
			t.Errorf("the texts are %q", got)
		}
		if d.Repeated != 1 || d.Invalid != 1 || d.Count != 4 {
			t.Errorf("%d repeated, %d invalid, %d recipients", d.Repeated, d.Invalid, d.Count)
		}
		if _, err := f.create("Hi", Source{Groups: []string{uuid.NewString()}}); !problem.Is(err, problem.Forbidden) {
			t.Errorf("a foreign group: %v", err)
		}
	})
}

// A text is refused if no recipient has its field, or if the field has another notation. Nothing is stored.
func TestCreate_refusals(t *testing.T) {
	each(t, func(f *fixture) {
		numbers := Source{Numbers: "0241000001"}
		for text, from := range map[string]Source{
			"Hi {frist_name}":                    {File: strings.NewReader("phone,first_name\n0241000001,Ama\n")},
			"Hi {{first_name}}":                  numbers,
			"Hi {first_name}":                    numbers,
			"Hi {first_name} ":                   {File: strings.NewReader("phone,first_name\n0241000001,\n")},
			"":                                   numbers,
			"Hi":                                 {},
			"Hi ":                                {Numbers: "nobody, 12"},
			"Hi  ":                               {File: strings.NewReader("\x00\x01")},
			strings.Repeat("a", 153*255+1) + "b": numbers,
		} {
			if _, err := f.create(text, from); !problem.Is(err, problem.Invalid) {
				t.Errorf("%.30q: %v", text, err)
			}
		}
		if all, err := f.List(t.Context(), "shop"); len(all) != 0 || err != nil {
			t.Errorf("%d drafts, %v", len(all), err)
		}
	})
}

// A form that is submitted twice makes one draft. A draft is sent once, with the text and price of its request.
func TestSend_once(t *testing.T) {
	each(t, func(f *fixture) {
		id := uuid.NewString()
		text := Text{SenderID: f.sender.ID, Message: "Hi {first_name}"}
		var d Draft
		for range 2 {
			var err error
			if d, err = f.Create(t.Context(), "shop", id, "ama", text, Source{File: strings.NewReader("phone,first_name\n0241000001,Ama\n0241000002,Kofi\n")}); err != nil {
				t.Fatal(err)
			}
		}
		ok := func(*db.Tx, Price) error { return nil }
		if err := f.Send(t.Context(), "shop", id, d.Digest, ok); problem.From(err).Code != "changed_since" {
			t.Fatalf("a draft that nobody requested: %v", err)
		}
		f.request(d)
		if _, err := f.Change(t.Context(), "shop", id, text); problem.From(err).Code != "draft_frozen" {
			t.Errorf("a change of a requested draft: %v", err)
		}
		if err := f.Discard(t.Context(), "shop", id); problem.From(err).Code != "draft_frozen" {
			t.Errorf("a deletion of a requested draft: %v", err)
		}
		undone := errors.New("the request has ended")
		if err := f.Send(t.Context(), "shop", id, d.Digest, func(*db.Tx, Price) error { return undone }); !errors.Is(err, undone) {
			t.Fatal(err)
		}
		results := make(chan error)
		for range 4 {
			go func() { results <- f.Send(t.Context(), "shop", id, d.Digest, ok) }()
		}
		sent := 0
		for range 4 {
			if err := <-results; err == nil {
				sent++
			} else if problem.From(err).Code != "changed_since" {
				t.Error(err)
			}
		}
		f.Quiet()
		if is, err := f.Get(t.Context(), "shop", id); sent != 1 || err != nil || is.Status != Sent || len(is.Campaigns) != 1 || len(is.Recipients.Rows) != 0 {
			t.Errorf("sent %d times, %+v, %v", sent, is, err)
		}
		f.WantBalance(98)
		if all := f.operator.All(); len(all) != 2 || all[0].Text != "Hi Ama" {
			t.Errorf("sent: %+v", all)
		}
	})
}

// After its request is withdrawn, a draft can be changed. A request for the earlier text is then refused.
func TestSend_changedSince(t *testing.T) {
	each(t, func(f *fixture) {
		d := f.must("Hi", Source{Numbers: "0241000001"})
		f.request(d)
		f.Write(func(tx *db.Tx) error { return f.Withdraw(tx, "shop", d.ID, "an earlier request") })
		if is, err := f.Get(t.Context(), "shop", d.ID); err != nil || is.Status != Requested {
			t.Fatalf("the end of another request: %+v, %v", is, err)
		}
		f.Write(func(tx *db.Tx) error { return f.Withdraw(tx, "shop", d.ID, "a request") })
		other, err := f.Change(t.Context(), "shop", d.ID, Text{SenderID: f.sender.ID, Message: "Ho", At: f.Clock.Now().Add(time.Hour)})
		if err != nil || other.Digest == d.Digest {
			t.Fatalf("%+v, %v", other, err)
		}
		f.request(other)
		if err := f.Send(t.Context(), "shop", d.ID, d.Digest, func(*db.Tx, Price) error { return nil }); problem.From(err).Code != "changed_since" {
			t.Error(err)
		}
	})
}

// Drafts are limited and end after seven days. A person's number is erased with its draft.
func TestDrafts_bounded(t *testing.T) {
	each(t, func(f *fixture) {
		for i := range maxDrafts {
			f.must("Hi", Source{Numbers: fmt.Sprintf("02410000%02d", i)})
		}
		if _, err := f.create("Hi", Source{Numbers: "0241000001"}); !problem.Is(err, problem.Invalid) {
			t.Fatalf("one more draft: %v", err)
		}
		n := 0
		if err := OfNumber(t.Context(), f.db, "233241000007", func(d Named) error {
			n++
			erased, err := Erase(t.Context(), f.db, d)
			if !erased {
				t.Errorf("draft %s is not erased", d.ID)
			}
			return err
		}); err != nil || n != 1 {
			t.Errorf("%d drafts have the number, %v", n, err)
		}
		f.Clock.Advance(draftTime + time.Hour)
		if err := f.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all, err := f.List(t.Context(), "shop"); len(all) != 0 || err != nil {
			t.Errorf("%d drafts, %v", len(all), err)
		}
	})
}

// A recovery deletes all drafts, because a requested draft may have been sent before the restore.
func TestRecoveryBegan_deletesDrafts(t *testing.T) {
	each(t, func(f *fixture) {
		written, requested := f.must("Hi", Source{Numbers: "0241000001"}), f.must("Ho", Source{Numbers: "0241000002"})
		f.request(requested)
		f.Write(func(tx *db.Tx) error { RecoveryBegan(tx); return nil })
		if _, err := f.Get(t.Context(), "shop", written.ID); !problem.Is(err, problem.NotFound) {
			t.Errorf("the draft: %v", err)
		}
		if err := f.Send(t.Context(), "shop", requested.ID, requested.Digest, func(*db.Tx, Price) error { return nil }); !problem.Is(err, problem.NotFound) {
			t.Errorf("the requested one: %v", err)
		}
		f.Quiet()
		f.WantBalance(100)
	})
}

// Fields are replaced in texts of every length, with characters of one, two and four octets.
func FuzzFill(f *testing.F) {
	f.Add("Hi {first_name}", "Ama")
	f.Add("{a|b}{c}", "{c}")
	f.Add("{{x}}", "₵")
	f.Fuzz(func(t *testing.T, text, value string) {
		m, err := parse(text, []string{"first_name"})
		if err != nil {
			return
		}
		filled, whole := m.fill([]string{value})
		if whole && len(m.fields) == 0 && filled != text {
			t.Errorf("%q became %q", text, filled)
		}
		if whole && value != "" && strings.Count(filled, value) < len(m.fields) && len(m.fields) > 0 {
			t.Errorf("%q with %q became %q", text, value, filled)
		}
	})
}

// A text that repeats a field is refused before its long texts fill the memory.
func TestCreate_longTextsTogether(t *testing.T) {
	each(t, func(f *fixture) {
		var file strings.Builder
		file.WriteString("phone,a\n")
		for i := range 2000 {
			fmt.Fprintf(&file, "0241%06d,%s\n", i, strings.Repeat("x", 100))
		}
		_, err := f.create(strings.Repeat("{a}", 600), Source{File: strings.NewReader(file.String())})
		if e := problem.From(err); e.Kind != problem.Invalid || len(e.Fields["message"]) != 1 || !strings.Contains(e.Fields["message"][0], "too long in all") {
			t.Errorf("%v", err)
		}
	})
}

// A blocked account sends nothing, even if it was blocked after the request was made.
func TestSend_blockedAccount(t *testing.T) {
	each(t, func(f *fixture) {
		d := f.must("Hi", Source{Numbers: "0241000001"})
		f.request(d)
		blocked := true
		f.Write(func(tx *db.Tx) error {
			_, _, err := f.Tenants.Set(tx, "shop", tenant.Change{Blocked: &blocked})
			return err
		})
		if err := f.Send(t.Context(), "shop", d.ID, d.Digest, func(*db.Tx, Price) error { return nil }); !problem.Is(err, problem.Forbidden) {
			t.Error(err)
		}
		if _, err := f.create("Hi", Source{Numbers: "0241000001"}); !problem.Is(err, problem.Forbidden) {
			t.Error(err)
		}
		f.WantBalance(100)
	})
}
