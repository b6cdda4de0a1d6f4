package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/test/dbtest"
)

// model is a ledger without a database.
type model struct {
	balances map[ledger.AccountID]int64
	legs     map[string]bool
	lines    map[ledger.AccountID]int64
}

// apply posts all transfers of a group, or none.
func (m *model) apply(group []ledger.Transfer) bool {
	before := map[ledger.AccountID]int64{}
	for _, t := range group {
		for _, id := range []ledger.AccountID{t.From, t.To} {
			if _, kept := before[id]; !kept {
				before[id] = m.balances[id]
			}
		}
		m.balances[t.From] -= t.Amount
		m.balances[t.To] += t.Amount
		if t.From.Floored() && m.balances[t.From] < 0 {
			for id, n := range before {
				m.balances[id] = n
			}
			return false
		}
	}
	for _, t := range group {
		m.legs[t.Subject+"/"+t.Leg] = true
		for _, id := range []ledger.AccountID{t.From, t.To} {
			if id.Floored() {
				m.lines[id]++
			}
		}
	}
	return true
}

// Random batches contain repeated legs and uncovered groups, and connections break. The database always equals the
// model.
func TestLedger_matchesTheModel(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		round := 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			checkAgainstModel(t, r, d, f, round)
		})
		f.Decide(nil)
		sound(t, ledger.New(d, clock.Real(), "check"))
	})
}

func checkAgainstModel(t *testing.T, r *rapid.T, d *db.DB, f *db.Faults, round int) {
	f.Decide(nil)
	asset := ledger.Asset(fmt.Sprint("ROUND", round))
	wallets := []ledger.AccountID{}
	for i := range 3 {
		wallets = append(wallets, ledger.Wallet(fmt.Sprint(round, "-", i)))
	}
	others := []ledger.AccountID{ledger.Clearing, ledger.Float("mtn"), ledger.Funding, ledger.Fees}
	ledgers := []*ledger.Ledger{ledger.New(d, clock.Real(), "a"), ledger.New(d, clock.Real(), "b")}
	m := &model{balances: map[ledger.AccountID]int64{}, legs: map[string]bool{}, lines: map[ledger.AccountID]int64{}}
	keys := []ledger.Key{{Asset: asset, ID: ledger.Clearing}}
	if err := d.Write(t.Context(), func(tx *db.Tx) error {
		for _, id := range wallets {
			ledgers[0].Create(tx, ledger.Key{Asset: asset, ID: id}, 0)
			keys = append(keys, ledger.Key{Asset: asset, ID: id})
		}
		return nil
	}); err != nil {
		r.Fatal(err)
	}
	f.Decide(func(db.Boundary) db.Fault {
		// Whether there are faults is drawn, so that a failing case is reduced to the faults that it needs.
		if rapid.IntRange(0, 7).Draw(r, "calm") > 0 {
			return db.FaultNone
		}
		return rapid.SampledFrom([]db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict}).Draw(r, "fault")
	})
	subjects := 0
	for batch := range rapid.IntRange(1, 6).Draw(r, "batches") {
		var groups [][]ledger.Transfer
		for range rapid.IntRange(1, 5).Draw(r, "groups") {
			subjects++
			var group []ledger.Transfer
			for leg := range rapid.IntRange(1, 3).Draw(r, "legs") {
				from, to := rapid.SampledFrom(others).Draw(r, "from"), rapid.SampledFrom(wallets).Draw(r, "to")
				switch rapid.IntRange(0, 2).Draw(r, "way") {
				case 0:
					from, to = to, from
				case 1:
					if to = rapid.SampledFrom(others).Draw(r, "other"); to == from {
						to = ledger.Suspense
					}
				}
				group = append(group, ledger.Transfer{
					Asset: asset, From: from, To: to, Amount: rapid.Int64Range(1, 100).Draw(r, "amount"),
					Subject: fmt.Sprint(round, "-", subjects), Leg: fmt.Sprint("leg", leg), Kind: "test", At: time.Unix(int64(batch), 0),
				})
			}
			groups = append(groups, group)
		}
		verdicts := runBatch(t.Context(), r, d, ledgers[batch%2], keys, groups)
		for i, group := range groups {
			if m.apply(group) != verdicts[i] {
				r.Fatalf("batch %d, group %d: the model and the ledger disagree", batch, i)
			}
		}
		if rapid.Bool().Draw(r, "again") { // the same legs again: they post nothing
			for i, group := range groups {
				if !verdicts[i] {
					continue
				}
				if err := move(t.Context(), d, ledgers[0], move1(group[0].Subject, group[0].Leg, ledger.Funding, ledger.Clearing, 1)); !errors.Is(err, db.ErrUnique) && !errors.Is(err, db.ErrAmbiguous) && !errors.Is(err, db.ErrUnavailable) {
					r.Fatalf("a leg was taken twice: %v", err)
				}
			}
		}
	}
	f.Decide(nil)
	compareWithModel(t, r, ledgers[1], asset, m)
}

// runBatch runs the groups in one transaction, as a group commit does, and reports which of them were posted.
func runBatch(ctx context.Context, r *rapid.T, d *db.DB, l *ledger.Ledger, keys []ledger.Key, groups [][]ledger.Transfer) []bool {
	var verdicts []bool
	landed := func(tx *db.Tx) (bool, error) {
		for i, group := range groups {
			if verdicts[i] {
				var one int64
				return tx.One(`SELECT 1 FROM transfers WHERE subject = $1 AND leg = $2`, []any{group[0].Subject, group[0].Leg}, &one)
			}
		}
		return true, nil // nothing was written
	}
	for {
		err := d.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
			page, err := l.Open(tx, keys...)
			if err != nil {
				return err
			}
			run := make([]bool, len(groups))
			for i, group := range groups {
				err := page.Add(group...)
				if err != nil && !errors.Is(err, ledger.ErrInsufficient) {
					return err
				}
				run[i] = err == nil
			}
			page.Post()
			verdicts = run // set after a whole run only: landed needs those of the run whose COMMIT is in doubt
			return nil
		})
		// If every answer is lost, the outcome is unknown. The caller then reads until it knows the outcome.
		for there := false; errors.Is(err, db.ErrAmbiguous); {
			if d.Read(ctx, func(tx *db.Tx) (failed error) { there, failed = landed(tx); return failed }) != nil {
				continue
			}
			if err = db.ErrUnavailable; there {
				err = nil
			}
		}
		if err == nil {
			return verdicts
		}
		if !errors.Is(err, db.ErrUnavailable) {
			r.Fatalf("a batch: %v", err)
		}
	}
}

func compareWithModel(t *testing.T, r *rapid.T, l *ledger.Ledger, asset ledger.Asset, m *model) {
	for id, want := range m.balances {
		key := ledger.Key{Asset: asset, ID: id}
		if got, err := l.Balance(t.Context(), key); err != nil || got != want {
			r.Fatalf("%s holds %d, the model says %d (%v)", id, got, want, err)
		}
		if !id.Floored() {
			continue
		}
		s, err := l.Stretch(t.Context(), key, time.Time{}, time.Time{})
		if err != nil || s.Closing != want || s.Total() != m.lines[id] {
			r.Fatalf("the transfers of %s: %+v (%v), the model says %d after %d", id, s, err, want, m.lines[id])
		}
		if lines, err := l.Lines(t.Context(), s, 0, 1000); err != nil || int64(len(lines)) != s.Total() {
			r.Fatalf("%s has %d lines (%v), want %d", id, len(lines), err, s.Total())
		}
	}
}

// Two nodes, each with two goroutines and no group commit, debit the same two wallets. The ledger has exactly the
// debits that were reported as covered.
func TestLedger_concurrentDebitsAreCovered(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "one", "two")
		other := ledger.New(d, clock.Real(), "node-b")
		const each = 60
		taken := make([]int64, 4)
		var wg sync.WaitGroup
		for g := range taken {
			wg.Go(func() {
				l := l
				if g%2 == 1 {
					l = other
				}
				for i := range each {
					first, second := ledger.Wallet("one"), ledger.Wallet("two")
					if (g+i)%2 == 0 { // locks must not depend on the order of the requested keys
						first, second = second, first
					}
					subject := fmt.Sprint("p", g, "-", i)
					err := move(t.Context(), d, l,
						move1(subject, "a", first, ledger.Clearing, 7), move1(subject, "b", second, ledger.Clearing, 7))
					switch {
					case err == nil:
						taken[g]++
					case !errors.Is(err, ledger.ErrInsufficient):
						t.Errorf("%s: %v", subject, err)
					}
				}
			})
		}
		wg.Wait()
		var sum int64
		for _, n := range taken {
			sum += n
		}
		if want := int64(1000 / 7); sum != want {
			t.Errorf("%d debits of 7 were covered by 1000, want %d", sum, want)
		}
		for _, name := range []string{"one", "two"} {
			if got := balance(t, l, wallet(name)); got != 1000-7*sum {
				t.Errorf("%s holds %d after %d debits", name, got, sum)
			}
		}
		if got := balance(t, l, shared(ledger.Clearing)); got != 14*sum {
			t.Errorf("clearing holds %d", got)
		}
		sound(t, l)
	})
}

// There are ten times as many callers as connections, with and without group commits. Nobody waits for a second
// connection, so nobody waits for ever.
func TestLedger_moreCallersThanConnections(t *testing.T) {
	for _, engine := range dbtest.Engines() {
		t.Run(engine.String(), func(t *testing.T) {
			o := dbtest.Options(t, engine)
			o.MaxConns = 4
			d := dbtest.OpenWith(t, o)
			l := book(t, d, "hot")
			direct := func(ctx context.Context, ts []ledger.Transfer) ([]groupcommit.Verdict[bool], error) {
				verdicts := make([]groupcommit.Verdict[bool], len(ts))
				err := d.Write(ctx, func(tx *db.Tx) error {
					page, err := l.Open(tx, wallet("hot"))
					if err != nil {
						return err
					}
					for i, m := range ts {
						verdicts[i].Err = page.Add(m)
					}
					page.Post()
					return nil
				})
				return verdicts, err
			}
			lanes := []*groupcommit.Committer[ledger.Transfer, bool]{groupcommit.New(groupcommit.Options{}, direct), groupcommit.New(groupcommit.Options{}, direct)}
			var wg sync.WaitGroup
			for c := range 40 {
				wg.Go(func() {
					m := move1(fmt.Sprint("c", c), "hold", ledger.Wallet("hot"), ledger.Clearing, 10)
					var err error
					switch c % 4 {
					case 0:
						err = move(t.Context(), d, l, m)
					case 1:
						_, err = l.Balance(t.Context(), wallet("hot"))
					default:
						_, err = lanes[c%2].Do(t.Context(), "hot", 1, m)
					}
					if err != nil {
						t.Errorf("caller %d: %v", c, err)
					}
				})
			}
			wg.Wait()
			if got := balance(t, l, wallet("hot")); got != 700 {
				t.Errorf("holds %d", got)
			}
			sound(t, l)
		})
	}
}
