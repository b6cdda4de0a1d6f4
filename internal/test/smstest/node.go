// Package smstest is a node for the tests of messaging and its packages: the parts under them, and an operator whose
// responses a test decides.
package smstest

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/recovery"
	"github.com/makola/makola/internal/tenant"
)

// Patience is the longest wait of a test. Only a failing test reaches it.
const Patience = 3 * time.Minute

// Morning is when the clock of a node starts.
var Morning = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// Node is one node without messaging, on a test's database.
type Node struct {
	T        *testing.T
	DB       *db.DB
	Clock    *clock.Clock
	Queue    *jobs.Queue
	Ledger   *ledger.Ledger
	Tenants  *tenant.Store
	Recovery *recovery.Recovery
	Log      *slog.Logger
	Secret   config.Secret
	Tenant   tenant.Tenant // the account of the test
}

// Options vary a node.
type Options struct {
	Name  string       // empty: one
	Clock *clock.Clock // nil: a manual clock that shows Morning
	Log   *slog.Logger // nil: discards
}

// New makes a node. Its queue runs after Start.
func New(t *testing.T, d *db.DB, o Options) *Node {
	t.Helper()
	secret, err := config.NewSecret([]byte("a master key of thirty-two octets"))
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{T: t, DB: d, Clock: o.Clock, Log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), Secret: secret}
	if n.Clock == nil {
		n.Clock = clock.NewManual(Morning)
	}
	name := cmp.Or(o.Name, "one")
	n.Ledger = ledger.New(d, n.Clock, name)
	n.Queue = jobs.New(d, n.Clock, n.Log, jobs.Options{Node: name, LeaseFor: time.Hour, Heartbeat: time.Hour})
	n.Recovery = recovery.New(d, n.Clock, n.Log)
	n.Tenants = tenant.New(d, n.Ledger, n.Clock)
	return n
}

// Start starts the queue, and stops it with the test.
func (n *Node) Start() {
	n.T.Helper()
	if err := n.Queue.Start(n.T.Context()); err != nil {
		n.T.Fatal(err)
	}
	n.T.Cleanup(func() {
		if err := n.Queue.Stop(context.Background()); err != nil {
			n.T.Errorf("stop: %v", err)
		}
	})
}

// Customer makes a live account.
func (n *Node) Customer(id string) (made tenant.Tenant) {
	n.T.Helper()
	n.Write(func(tx *db.Tx) (err error) {
		made, err = n.Tenants.Create(tx, tenant.Tenant{ID: id, Name: id, Mode: tenant.Live})
		return err
	})
	return made
}

// Write runs a transaction.
func (n *Node) Write(fn func(*db.Tx) error) {
	n.T.Helper()
	if err := n.DB.Write(n.T.Context(), fn); err != nil {
		n.T.Fatal(err)
	}
}

// Count reads one number.
func (n *Node) Count(sql string, args ...any) (count int64) {
	n.T.Helper()
	_, err := n.DB.ReadOne(n.T.Context(), sql, args, &count)
	if err != nil {
		n.T.Fatal(err)
	}
	return count
}

// The clock of a node moves by leastRetry and later at most by mostRetry when work stalls.
const (
	stalled    = 20 * time.Second // only an overloaded machine takes so long
	leastRetry = 100 * time.Millisecond
	mostRetry  = 10 * time.Second
)

// Quiet waits until no job is due.
func (n *Node) Quiet() {
	n.T.Helper()
	n.QuietOr(stalled)
}

// QuietOr is Quiet that also moves the clock when work stalls. If a busy database refused a step, the step waits by
// the clock for its next try, and nothing else moves the clock.
func (n *Node) QuietOr(stretch time.Duration) {
	n.T.Helper()
	retry := leastRetry
	for until := time.Now().Add(Patience); ; n.Clock.Advance(retry) {
		ctx, cancel := context.WithTimeout(n.T.Context(), stretch)
		err := n.Queue.Quiet(ctx)
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			n.T.Fatalf("never quiet: %v; %+v", err, n.Queue.Counts())
		}
		retry = min(2*retry, mostRetry)
	}
}

// Pass advances the clock and waits until no job is due.
func (n *Node) Pass(d time.Duration) {
	n.T.Helper()
	n.Clock.Advance(d)
	n.Quiet()
}

// Balance reads the SMS credits of the account.
func (n *Node) Balance() int64 {
	n.T.Helper()
	balance, err := n.Ledger.Balance(n.T.Context(), n.Tenant.SMSCredits())
	if err != nil {
		n.T.Fatal(err)
	}
	return balance
}

// WantBalance checks the SMS credits of the account.
func (n *Node) WantBalance(want int64) {
	n.T.Helper()
	if got := n.Balance(); got != want {
		n.T.Errorf("%d credits are left, expected %d", got, want)
	}
}

// WantSound checks the books of the ledger and the problems that another check found.
func (n *Node) WantSound(problems []string, err error) {
	n.T.Helper()
	if err != nil {
		n.T.Fatal(err)
	}
	books, err := n.Ledger.Check(n.T.Context())
	if err != nil {
		n.T.Fatal(err)
	}
	for _, p := range append(problems, books.Problems...) {
		n.T.Error(p)
	}
}

// Receipt makes a receipt for an operator's id.
func (n *Node) Receipt(id, to string, state provider.Delivery) provider.Receipt {
	return provider.Receipt{UpstreamID: id, State: state, Code: "000", At: n.Clock.Now(), To: msisdn.MSISDN(to)}
}

// Numbers returns different numbers.
func Numbers(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("23324%07d", i)
	}
	return list
}

// Runs returns the runs of equal values in order, as "2 delivered, 1 invalid".
func Runs[S ~string](values []S) string {
	var runs []string
	n := 0
	for i, v := range values {
		n++
		if i+1 == len(values) || values[i+1] != v {
			runs = append(runs, fmt.Sprintf("%d %s", n, v))
			n = 0
		}
	}
	return strings.Join(runs, ", ")
}
