// Package booktest writes many payments through the book, in large transactions on a manual clock, without providers and HTTP. Tests of
// whole books and benchmarks of large ones begin with it.
package booktest

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/webhook"
)

// setOfPayments is how many payments one transaction accepts or settles.
const setOfPayments = 1000

// Loader writes payments into a database.
type Loader struct {
	Clock  *clock.Clock // manual: the time of the payments
	Ledger *ledger.Ledger
	Rail   string // of the payments; New sets one that does not exist
	book   *book.Book
	db     *db.DB
	jobs   *jobs.Queue
	t      testing.TB
	n      int
}

// New returns a loader whose clock begins at a time. It runs no jobs.
func New(t testing.TB, d *db.DB, from time.Time) *Loader {
	t.Helper()
	c := clock.NewManual(from)
	log := slog.New(slog.DiscardHandler)
	l := ledger.New(d, c, "load")
	q := jobs.New(d, c, log, jobs.Options{Node: "load", LeaseFor: time.Hour, Heartbeat: time.Hour})
	secret, err := config.NewSecret(make([]byte, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	hooks := webhook.New(d, q, c, log, webhook.Options{Secret: secret, Development: true})
	b := book.New(book.Deps{DB: d, Ledger: l, Tenants: tenant.New(d, l, c), Jobs: q, Webhooks: hooks, Clock: c}, book.Hooks{
		RequestOpen: func(book.Payment) bool { return false }, Opened: func(book.Payment) {}, Closed: func(string) {},
		RefundRefused: func(book.Payment, error) {}, Account: func(book.Payment) string { return "" },
	})
	return &Loader{Clock: c, Ledger: l, Rail: "load", book: b, db: d, jobs: q, t: t}
}

// Close ends the loader.
func (l *Loader) Close() { l.book.Close() }

// Tenant creates an account with money in its wallet.
func (l *Loader) Tenant(name string, amount money.Pesewas) tenant.Tenant {
	l.t.Helper()
	tenants := tenant.New(l.db, l.Ledger, l.Clock)
	var made tenant.Tenant
	err := l.db.Write(l.t.Context(), func(tx *db.Tx) (err error) {
		made, err = tenants.Create(tx, tenant.Tenant{Name: name, Mode: tenant.Test, CollectionsEnabled: true})
		return err
	})
	if err == nil {
		err = l.db.Write(l.t.Context(), func(tx *db.Tx) error {
			page, err := l.Ledger.Open(tx, made.Wallet())
			if err != nil {
				return err
			}
			err = page.Add(ledger.Transfer{Asset: made.Money(), From: ledger.Funding, To: ledger.Wallet(made.ID), Amount: int64(amount), Subject: "fund " + made.ID,
				Leg: book.LegFinal, Kind: "fund", At: l.Clock.Now()})
			page.Post()
			return err
		})
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return made
}

// Load accepts payments of one account, with a pause of the clock between two payments, and returns them as accepted. Every fifth
// payment is a collection, the others are payouts. All except the last ones are settled, and one of 25 fails. Their provider does
// not exist, so a server on the same database leaves the last ones open.
func (l *Loader) Load(of tenant.Tenant, n, open int, pause time.Duration) (all []book.Payment) {
	l.t.Helper()
	for left := n; left > 0; left -= setOfPayments {
		set := l.accept(of, min(left, setOfPayments), pause)
		l.settle(set[:len(set)-min(len(set), max(0, open-max(0, left-len(set))))])
		if all = append(all, set...); len(all) > 2*setOfPayments {
			all = all[:setOfPayments:setOfPayments] // the first ones are enough for every caller
		}
	}
	return all
}

func (l *Loader) accept(of tenant.Tenant, n int, pause time.Duration) []book.Payment {
	ops, set := make([]*book.Op, n), make([]book.Payment, n)
	for i := range n {
		l.n++
		l.Clock.Advance(pause)
		pay := book.Payment{ID: book.NewID(l.Clock.Now()), Tenant: of.ID, Kind: book.KindPayout, Mode: string(of.Mode), Channel: "MTN", Rail: l.Rail,
			Reference: fmt.Sprintf("load-%09d", l.n), ProviderReference: uuid.NewString(), Amount: 10 * money.Cedi, Charges: 10, FeeBearer: book.BearerMerchant,
			Account: fmt.Sprintf("2332%08d", l.n%90_000_000), AccountName: "AMA MENSAH", Key: "load", Status: book.StatusPending, CreatedAt: l.Clock.Now(), Attempt: 1, Submissions: 1}
		if l.n%5 == 0 {
			pay.Kind = book.KindCollection
		}
		set[i], ops[i] = pay, &book.Op{Accept: &book.Acceptance{Payment: pay}}
	}
	for i, r := range l.commit(ops) {
		set[i] = r
	}
	return set
}

func (l *Loader) settle(set []book.Payment) {
	if len(set) == 0 {
		return
	}
	ops := make([]*book.Op, len(set))
	for i, pay := range set {
		s := &book.Settlement{Payment: pay, Event: book.EventSucceeded, At: l.Clock.Now(), Outcome: provider.Outcome{Class: provider.Accepted, State: provider.Success, UpstreamID: fmt.Sprint(1_000_000_000 + i)}}
		if i%25 == 24 {
			s.Event, s.Reason = book.EventFailed, string(provider.ReasonFunds)
		}
		ops[i] = &book.Op{Settle: s}
	}
	l.commit(ops)
}

func (l *Loader) commit(ops []*book.Op) []book.Payment {
	l.t.Helper()
	verdicts, err := l.book.Commit(l.t.Context(), 0, ops)
	if err != nil {
		l.t.Fatal(err)
	}
	rows := make([]book.Payment, len(verdicts))
	for i, v := range verdicts {
		if v.Err != nil {
			l.t.Fatal(v.Err)
		}
		rows[i] = v.Value.Payment
	}
	return rows
}
