package notice

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/mailtest"
)

// fixture is a node that notifies people through a mail server of the test.
type fixture struct {
	*Notices
	t      *testing.T
	server *mailtest.Server

	mu       sync.Mutex
	requests map[string]Request
}

// node creates a node on a database. It uses the machine's clock.
func node(t *testing.T, d *db.DB, server *mailtest.Server, c *clock.Clock) *fixture {
	t.Helper()
	f := &fixture{t: t, server: server, requests: map[string]Request{}}
	queue := jobs.New(d, c, slog.New(slog.DiscardHandler), jobs.Options{Node: newID(), Shared: d.Engine() == db.Postgres})
	f.Notices = New(Deps{DB: d, Jobs: queue, People: identity.New(d, c, audit.New(d, c), identity.Options{}), Tenants: tenant.New(d, ledger.New(d, c, "test"), c), Clock: c,
		Log: slog.New(slog.DiscardHandler), PublicURL: "https://pay.example", Request: f.request,
		SMTP: config.SMTP{Host: server.Host, Port: server.Port, From: "Makola <notices@pay.example>", TLS: "none", Timeout: 2 * time.Second}})
	return f
}

// start starts the node's queue until the test ends.
func (f *fixture) start() *fixture {
	f.t.Helper()
	if err := f.Jobs.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(f.t.Context()), time.Second)
		defer cancel()
		_ = f.Jobs.Stop(ctx) // a mail server that hangs keeps a handler busy
	})
	return f
}

// request returns a change request of the fixture.
func (f *fixture) request(_ context.Context, id string) (Request, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, found := f.requests[id]
	if !found {
		return r, problem.New(problem.NotFound, "act_not_found", "none")
	}
	return r, nil
}

// person makes a person with a role at the installation.
func (f *fixture) person(email string, r roles.Role) string {
	f.t.Helper()
	p, err := f.People.Ensure(f.t.Context(), email, "Somebody", []identity.Membership{{Tenant: roles.Installation, Role: r}})
	if err != nil {
		f.t.Fatal(err)
	}
	return p.ID
}

// write stores facts.
func (f *fixture) write(facts ...Fact) {
	f.t.Helper()
	err := f.DB.Write(f.t.Context(), func(tx *db.Tx) error {
		for _, one := range facts {
			Write(tx, f.Clock.Now(), one)
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// work runs one round.
func (f *fixture) work() {
	f.t.Helper()
	if err := f.Work(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// until waits until a condition is true.
func (f *fixture) until(what string, so func() bool) {
	f.t.Helper()
	clocktest.Await(f.t, what, so)
}

// states counts messages by their state.
func (f *fixture) states() map[State]int {
	f.t.Helper()
	all := map[State]int{}
	err := f.DB.Read(f.t.Context(), func(tx *db.Tx) error {
		clear(all)
		return tx.Query(`SELECT state, count(*) FROM notice_messages GROUP BY state`, nil, func(r *db.Row) error {
			var s State
			var n int
			err := r.Scan(&s, &n)
			all[s] = n
			return err
		})
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// doubts returns conditions of payments with an unknown outcome.
func doubts(from, to int) (list []Condition) {
	for i := from; i < to; i++ {
		list = append(list, Condition{Name: fmt.Sprint("payment-", i), Line: fmt.Sprintf("Payout %d to 0241234567", i)})
	}
	return list
}

// A waiting request causes one mail to each person who may approve it. The requester gets none, and the mail contains no full
// number.
func TestRequest_notifiesWhoMayApprove(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := node(t, d, mailtest.Start(t, nil), clock.Real()).start()
		requester := f.person("ama@pay.example", roles.Owner)
		f.person("kofi@pay.example", roles.Approver)
		f.person("esi@pay.example", roles.Support)
		f.requests["r1"] = Request{Title: "Deposit to a wallet", Account: "Shop\nBcc: x@evil.example 0241234567 and a very long name that goes on", Amount: 1_250_000, Requester: "ama@pay.example", RequesterID: requester,
			Approver: roles.ApproveMoney, Waits: true}
		f.write(Fact{Event: RequestWaits, Subject: "r1"})
		f.work()
		f.until("the mail", func() bool { return f.states()[Sent] == 1 })
		f.work() // the second round finds nothing new
		mails := f.server.Mails()
		if len(mails) != 1 || mails[0].To != "<kofi@pay.example>" || mails[0].Subject != "Makola: A change request awaits your approval" || mails[0].Head.Get("Bcc") != "" {
			t.Fatalf("%+v", mails)
		}
		body := mails[0].Body
		for _, want := range []string{`Deposit to a wallet, GHS 12,500.00, account "Shop Bcc: x@evil.example ...567 a...", requested by ama@pay.example`, "https://pay.example/ops/acts\n"} {
			if !strings.Contains(body, want) {
				t.Errorf("the body lacks %q:\n%s", want, body)
			}
		}
		if strings.Contains(body, "0241234567") || strings.Contains(mails[0].Head.Get("Content-Type"), "html") {
			t.Errorf("a whole number, or no plain text:\n%s", body)
		}
	})
}

// A request that was decided before the round is not mentioned.
func TestRequest_decidedMeanwhileIsSilent(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := node(t, d, mailtest.Start(t, nil), clock.Real())
		f.person("kofi@pay.example", roles.Approver)
		f.requests["r1"] = Request{Title: "Deposit to a wallet", Approver: roles.ApproveMoney}
		f.write(Fact{Event: RequestWaits, Subject: "r1"}, Fact{Event: RequestWaits, Subject: "unknown"})
		f.work()
		if n := len(f.states()); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

// Two nodes report ten thousand payments of unknown outcome at once. Each person gets one mail. Further payments wait for the
// pause, and cause one more mail.
func TestFlood_isOneMail(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.Real()
		server := mailtest.Start(t, nil)
		one, two := node(t, d, server, c).start(), node(t, d, server, c)
		one.person("ama@pay.example", roles.Owner)
		one.person("kofi@pay.example", roles.Operations)
		var both sync.WaitGroup
		for _, f := range []*fixture{one, two} {
			both.Go(func() {
				_ = f.Report(t.Context(), PaymentUnknown, "", doubts(0, 10_000)) // one of the two nodes may fail
				_ = f.Work(t.Context())
			})
		}
		both.Wait()
		one.work()
		one.until("the mails", func() bool { return one.states()[Sent] == 2 })
		if err := one.Report(t.Context(), PaymentUnknown, "", doubts(0, 10_040)); err != nil {
			t.Fatal(err)
		}
		one.work()
		mails := server.Mails()
		if len(mails) != 2 || mails[0].Subject != "Makola: The outcome of 10000 payments is unknown" {
			t.Fatalf("%d mails, %q", len(mails), mails[0].Subject)
		}
		if !strings.Contains(mails[0].Body, "and 9990 more") || len(mails[0].Body) > 2000 || strings.Contains(mails[0].Body, "0241234567") {
			t.Error(mails[0].Body)
		}
		list, err := one.Notified(t.Context(), PaymentUnknown, "payment-9999")
		if err != nil || len(list) != 2 || list[0].At.IsZero() {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := one.Notified(t.Context(), PaymentUnknown, "payment-10039"); err != nil || len(list) != 0 {
			t.Errorf("notified before a delivery: %+v, %v", list, err)
		}
	})
}

// The pause between messages of one topic grows with the number of messages in the last hour.
func TestPause_groupsWhatFollows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.Real()
		hand := clock.NewManual(c.Now())
		f := node(t, d, mailtest.Start(t, nil), hand)
		f.person("ama@pay.example", roles.Owner)
		made := func() int { return f.states()[Pending] }
		for i, want := range []struct {
			after time.Duration
			made  int
		}{{0, 1}, {time.Minute, 1}, {5 * time.Minute, 2}, {6 * time.Minute, 2}, {5 * time.Minute, 3}} {
			hand.Advance(want.after)
			if err := f.Report(t.Context(), PaymentUnknown, "", doubts(0, i+1)); err != nil {
				t.Fatal(err)
			}
			f.work()
			if n := made(); n != want.made {
				t.Errorf("step %d: %d messages, not %d", i, n, want.made)
			}
		}
	})
}

// A condition that ended and began again causes another notice.
func TestReport_conditionComesBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := node(t, d, mailtest.Start(t, nil), clock.Real())
		facts := func() (n int) {
			t.Helper()
			if err := d.Read(t.Context(), func(tx *db.Tx) error { _, err := tx.One(`SELECT count(*) FROM notices`, nil, &n); return err }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for i, step := range []struct{ conditions, facts int }{{1, 1}, {1, 1}, {0, 1}, {1, 2}} {
			if err := f.Report(t.Context(), PaymentUnknown, "", doubts(0, step.conditions)); err != nil {
				t.Fatal(err)
			}
			if n := facts(); n != step.facts {
				t.Errorf("step %d: %d facts, not %d", i, n, step.facts)
			}
		}
	})
}

// If the answer to a stored mail is lost, the mail is sent again with the same Message-ID.
func TestDeliver_lostAnswerKeepsMessageID(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		server := mailtest.Start(t, func(step mailtest.Step, n int) mailtest.Fault {
			return mailtest.Fault{Drop: step == mailtest.Accepted && n == 1}
		})
		f := quick(node(t, d, server, clock.Real())).start()
		f.person("ama@pay.example", roles.Owner)
		f.report(1)
		f.until("the mail", func() bool { return f.states()[Sent] == 1 })
		mails := server.Mails()
		if len(mails) != 2 || mails[0].MessageID != mails[1].MessageID || !strings.HasSuffix(mails[0].MessageID, "@pay.example>") || mails[0].Head.Get("Date") != mails[1].Head.Get("Date") {
			t.Errorf("%+v", mails)
		}
	})
}

// If a server greylists, closes the connection or does not answer, the mail is sent again later. If the server refuses the
// recipient permanently, it is not.
func TestDeliver_faultsOfTheServer(t *testing.T) {
	for name, test := range map[string]struct {
		fault mailtest.Fault
		at    mailtest.Step
		ends  State
		tries int
	}{
		"greylisting": {mailtest.Fault{Answer: "451 4.7.1 greylisted, try again"}, mailtest.Recipient, Sent, 2},
		"full":        {mailtest.Fault{Answer: "452 4.3.1 out of space"}, mailtest.Data, Sent, 2},
		"closed":      {mailtest.Fault{Drop: true}, mailtest.Connect, Sent, 2},
		"busy":        {mailtest.Fault{Answer: "554 go away"}, mailtest.Connect, Sent, 2},
		"hanging":     {mailtest.Fault{Hang: true}, mailtest.Connect, Sent, 2},
		"slow data":   {mailtest.Fault{Hang: true}, mailtest.Data, Sent, 2},
		"unknown":     {mailtest.Fault{Answer: "550 5.1.1 no such user"}, mailtest.Recipient, Failed, 1},
		"refused":     {mailtest.Fault{Answer: "554 5.7.1 refused"}, mailtest.Accepted, Failed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				server := mailtest.Start(t, func(step mailtest.Step, n int) mailtest.Fault {
					if step == test.at && n == 1 {
						return test.fault
					}
					return mailtest.Fault{}
				})
				f := quick(node(t, d, server, clock.Real()))
				f.SMTP.Timeout = 300 * time.Millisecond
				f.start()
				f.person("ama@pay.example", roles.Owner)
				f.report(1)
				f.until("the end of the message", func() bool { return f.states()[test.ends] == 1 })
				if n := server.Reached(mailtest.Connect); n != test.tries {
					t.Errorf("%d tries, not %d", n, test.tries)
				}
			})
		})
	}
}

// report reports payments of unknown outcome, and runs a round.
func (f *fixture) report(n int) {
	f.t.Helper()
	if err := f.Report(f.t.Context(), PaymentUnknown, "", doubts(0, n)); err != nil {
		f.t.Fatal(err)
	}
	f.work()
}

// quick shortens the pauses between attempts.
func quick(f *fixture) *fixture {
	f.pauses = []time.Duration{time.Millisecond}
	return f
}
