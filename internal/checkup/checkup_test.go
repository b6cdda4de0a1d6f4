package checkup

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// rail is a provider whose responses the test sets.
type rail struct {
	answer provider.Outcome // response to the query of the balance
	status provider.Outcome
	held   money.Pesewas
	moved  int // number of requests that would move money
}

func (r *rail) Float(context.Context) ([]provider.Held, provider.Outcome) {
	if r.answer.Class != provider.Accepted {
		return nil, r.answer
	}
	return []provider.Held{{Account: provider.AccountDisbursement, Amount: r.held}}, r.answer
}

func (r *rail) Disburse(context.Context, provider.DisburseRequest) provider.Outcome {
	r.moved++
	return provider.Outcome{}
}

func (r *rail) DisburseStatus(context.Context, provider.StatusRequest) provider.Outcome {
	return r.status
}

func (r *rail) ParseCallback(provider.CallbackRequest) ([]provider.Hint, error) {
	return nil, errors.New("unsigned")
}

func (r *rail) AskAccount(context.Context) provider.Outcome { return r.answer }

// fixture has a provider of payments and a provider of texts with the same responses.
type fixture struct {
	*Checkup
	t     *testing.T
	rail  *rail
	binds []messaging.Bind
}

func open(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	r := &rail{answer: provider.Outcome{Class: provider.Accepted}, status: provider.Outcome{NotFound: true, Code: "404"}}
	c := clock.NewManual(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	routes := route.New(d, c, slog.New(slog.NewTextHandler(io.Discard, nil)), []string{"kwik"}, []provider.Rail{{Name: "kwik", Mode: "live", Disburser: r, Floats: r, Callbacks: r,
		Accounts: provider.Accounts{Collect: provider.AccountDisbursement}}})
	if err := routes.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := routes.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{t: t, rail: r}
	f.Checkup = New(Deps{DB: d, Clock: c, Routes: routes, Texts: []provider.TextRail{{Name: "chat", Mode: "live", Account: r}}, Book: book.NewReader(d, ledger.New(d, c, "n"), c),
		Binds: func(context.Context) ([]messaging.Bind, error) { return f.binds, nil }})
	return f
}

// finds tests a provider and returns the result of a check.
func (f *fixture) finds(name, subject string) Result {
	f.t.Helper()
	all, err := f.Test(f.t.Context(), name, "")
	if err != nil {
		f.t.Fatal(err)
	}
	stored, err := f.Latest(f.t.Context(), name)
	if err != nil || len(stored) != len(all) {
		f.t.Fatalf("%d of %d results are stored: %v", len(stored), len(all), err)
	}
	for n, r := range all {
		if (r.Fix == "") != (r.State == OK) {
			f.t.Errorf("%+v: a finding has a fix, and only a finding", r)
		}
		if stored[n] != r {
			f.t.Errorf("stored is %+v, want %+v", stored[n], r)
		}
	}
	for _, r := range all {
		if r.Subject == subject {
			return r
		}
	}
	f.t.Fatalf("no result about %s in %+v", subject, all)
	return Result{}
}

func (f *fixture) want(name, subject string, state State, fact string) {
	f.t.Helper()
	if r := f.finds(name, subject); r.State != state || !strings.Contains(r.Fact, fact) {
		f.t.Errorf("%s is %s: %s; want %s: %s", subject, r.State, r.Fact, state, fact)
	}
}

// The binds of SMPP and the providers over HTTP show their connections and the routes of texts.
func TestCheckup_texts(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	f := open(t, d)
	now := f.Clock.Now()
	f.binds = []messaging.Bind{{Mode: "live", Name: "mtn-bind", Connections: 2, Bound: 2, Since: now, SeenAt: now}, {Mode: "live", Name: "chat", Connections: 1, Bound: 1, Since: now, SeenAt: now}}
	f.want("mtn-bind", "connection", OK, "2 of 2 connections are bound")
	f.want("mtn-bind", "routes of texts", OK, "none are set")
	f.binds[0].Bound, f.binds[0].Why = 1, "ESME_RALYBND"
	f.want("mtn-bind", "connection", Warn, "1 of 2 connections are bound: ESME_RALYBND")
	f.binds[0].Bound, f.binds[0].Why = 0, "ESME_RINVPASWD"
	f.want("mtn-bind", "connection", Fail, "ESME_RINVPASWD")
	f.binds[0].SeenAt = now.Add(-time.Hour)
	f.want("mtn-bind", "connection", Warn, "no report from a node")
	f.want("chat", "credentials", OK, "accepted")
	f.binds[1].Bound, f.binds[1].Why = 0, "three requests without a response"
	f.want("chat", "connection", Warn, "three requests without a response")
	f.TextRoutes = []config.SMSRoute{{Network: "MTN", Providers: []string{"chat", "smpp"}}, {Providers: []string{"chat"}}}
	f.want("chat", "routes of texts", OK, "MTN:*:chat+smpp *:*:chat; a change of MAKOLA_SMS_ROUTES takes effect after a restart")
	f.want("mtn-bind", "routes of texts", OK, "MTN:*:chat+smpp;")
	f.TextRoutes = f.TextRoutes[1:]
	f.want("mtn-bind", "routes of texts", Warn, "no route names smpp")
}

// Each check passes for a correct configuration and fails for a wrong one. No check moves money.
func TestCheckup_findsEachFault(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.want("kwik", "credentials", OK, "accepted")
		f.want("chat", "credentials", OK, "accepted")
		f.rail.answer = provider.Outcome{Class: provider.Barred, Code: "401", Message: "Invalid key"}
		f.want("kwik", "credentials", Fail, "refused: HTTP 401 Invalid key")
		f.want("chat", "credentials", Fail, "refused: HTTP 401 Invalid key")
		f.want("kwik", "float disbursement", Warn, "reports no balance; ours is GHS 0.00")
		f.rail.answer = provider.Outcome{Class: provider.NotSent, Message: "connection refused"}
		f.want("kwik", "credentials", Fail, "no response connection refused")
		f.rail.answer = provider.Outcome{Code: "500"}
		f.want("kwik", "credentials", Warn, "no usable response: HTTP 500")
		f.rail.answer = provider.Outcome{Class: provider.Accepted}

		f.want("kwik", "status of disburse_wallet", OK, "as documented")
		f.rail.status = provider.Outcome{Code: "403"} // another product, which has its own keys
		f.want("kwik", "credentials", Fail, "refused: HTTP 403 the status query of disburse_wallet")
		f.want("kwik", "status of disburse_wallet", Warn, "no response 403")
		f.rail.status = provider.Outcome{Code: "404:3000"}
		f.want("kwik", "status of disburse_wallet", Warn, "not understood: 404:3000")

		f.want("kwik", "float disbursement", OK, "both balances are GHS 0.00")
		f.rail.held = 12_345
		f.want("kwik", "float disbursement", Warn, "the provider's balance is GHS 123.45; ours is GHS 0.00")
		f.want("kwik", "last payment", Warn, "no successful payment")
		f.want("chat", "callbacks", OK, "sends none")
		if f.rail.moved != 0 {
			t.Errorf("%d requests moved money", f.rail.moved)
		}
		if _, err := f.Test(t.Context(), "mtn", ""); !problem.Is(err, problem.Invalid) {
			t.Errorf("a provider without an account: %v", err)
		}
	})
}

// Callbacks are counted without a write for each. If the latest callback was refused, the check fails.
func TestCheckup_callbacks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d)
		f.want("kwik", "callbacks", Warn, "none verified yet")
		for range 3 {
			f.Routes.CallbackArrived("kwik", "live", false)
		}
		f.want("kwik", "callbacks", Warn, "none verified yet; 3 refused, the last at 27 Nov 2026, 12:00")
		f.Clock.Advance(time.Minute)
		f.Routes.CallbackArrived("kwik", "live", true)
		f.Routes.CallbackArrived("kwik", "test", true) // for the other mode
		f.want("kwik", "callbacks", OK, "1 verified, the last at 27 Nov 2026, 12:01; 3 refused")
		if err := f.Routes.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Clock.Advance(time.Minute)
		f.Routes.CallbackArrived("kwik", "live", true)
		f.want("kwik", "callbacks", OK, "2 verified, the last at 27 Nov 2026, 12:02; 3 refused")
		other := route.New(d, f.Clock, slog.New(slog.DiscardHandler), []string{"kwik"}, nil) // another node reads the stored counts
		if n, err := other.CallbacksOf(t.Context(), "kwik", "live"); err != nil || n.Verified != 1 || n.Refused != 3 {
			t.Errorf("%+v %v", n, err)
		}
	})
}
