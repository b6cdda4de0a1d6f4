package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/test/dbtest"
)

var start = time.Date(2026, 3, 6, 9, 0, 0, 0, time.UTC)

func wallet(name string) ledger.Key {
	return ledger.Key{Asset: ledger.GHS, ID: ledger.Wallet(name)}
}

func shared(id ledger.AccountID) ledger.Key { return ledger.Key{Asset: ledger.GHS, ID: id} }

// book creates a ledger with wallets that hold 1000 each.
func book(t testing.TB, d *db.DB, names ...string) *ledger.Ledger {
	t.Helper()
	l := ledger.New(d, clock.NewManual(start), "node-a")
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for _, name := range names {
			l.Create(tx, wallet(name), 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := move(t.Context(), d, l, move1("fund-"+name, "final", ledger.Funding, ledger.Wallet(name), 1000)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func move1(subject, leg string, from, to ledger.AccountID, amount int64) ledger.Transfer {
	return ledger.Transfer{Asset: ledger.GHS, From: from, To: to, Amount: amount, Subject: subject, Leg: leg, Kind: "test", At: start}
}

// move runs the transfers in one transaction.
func move(ctx context.Context, d *db.DB, l *ledger.Ledger, transfers ...ledger.Transfer) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		var keys []ledger.Key
		for _, t := range transfers {
			keys = append(keys, ledger.Key{Asset: t.Asset, ID: t.From}, ledger.Key{Asset: t.Asset, ID: t.To})
		}
		page, err := l.Open(tx, keys...)
		if err != nil {
			return err
		}
		if err := page.Add(transfers...); err != nil {
			return err
		}
		page.Post()
		return nil
	})
}

func balance(t testing.TB, l *ledger.Ledger, key ledger.Key) int64 {
	t.Helper()
	n, err := l.Balance(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func sound(t testing.TB, l *ledger.Ledger) ledger.Report {
	t.Helper()
	report, err := l.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Errorf("check: %s", p)
	}
	sums, err := l.Imbalance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for asset, sum := range sums {
		if sum != 0 {
			t.Errorf("%s is out of balance by %d", asset, sum)
		}
	}
	return report
}

func TestTransfer_movesBetweenTwoAccounts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "kofi")
		err := move(t.Context(), d, l,
			move1("p1", "hold", ledger.Wallet("kofi"), ledger.Clearing, 300),
			move1("p1", "fee", ledger.Wallet("kofi"), ledger.Clearing, 3))
		if err != nil {
			t.Fatal(err)
		}
		if err := move(t.Context(), d, l,
			move1("p1", "final", ledger.Clearing, ledger.Float("mtn"), 300),
			move1("p1", "final_fee", ledger.Clearing, ledger.Fees, 3)); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[ledger.Key]int64{
			wallet("kofi"): 697, shared(ledger.Clearing): 0, shared(ledger.Float("mtn")): 300, shared(ledger.Fees): 3, shared(ledger.Funding): -1000,
		} {
			if got := balance(t, l, key); got != want {
				t.Errorf("%s holds %d, want %d", key.ID, got, want)
			}
		}
		report := sound(t, l)
		if report.Transfers != 5 || report.Wallets != 1 {
			t.Errorf("the check looked at %d transfers of %d wallets", report.Transfers, report.Wallets)
		}
		list, err := l.OfSubject(t.Context(), "p1")
		if err != nil || len(list) != 4 || list[0].At != start {
			t.Errorf("of the subject: %v, %v", list, err)
		}
		accounts, err := l.TrialBalance(t.Context())
		if err != nil || len(accounts) != 5 {
			t.Errorf("trial balance: %v, %v", accounts, err)
		}
	})
}

func TestTransfer_legOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "ama")
		refund := move1("p1", "final", ledger.Clearing, ledger.Wallet("ama"), 40)
		success := move1("p1", "final", ledger.Clearing, ledger.Float("mtn"), 40)
		if err := move(t.Context(), d, l, move1("p1", "hold", ledger.Wallet("ama"), ledger.Clearing, 40)); err != nil {
			t.Fatal(err)
		}
		if err := move(t.Context(), d, l, refund); err != nil {
			t.Fatal(err)
		}
		for _, again := range []ledger.Transfer{refund, success} {
			if err := move(t.Context(), d, l, again); !errors.Is(err, db.ErrUnique) {
				t.Fatalf("a second final: %v", err)
			}
		}
		if got := balance(t, l, wallet("ama")); got != 1000 {
			t.Errorf("holds %d", got)
		}
		sound(t, l)
	})
}

func TestTransfer_refusedLeavesNoRows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "esi", "yaw")
		esi := ledger.Wallet("esi")
		// The second transfer of a pair is not covered, so neither is posted.
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			page, err := l.Open(tx, wallet("esi"), wallet("nobody"), wallet("esi"))
			if err != nil {
				return err
			}
			if page.Exists(wallet("nobody")) || !page.Exists(wallet("esi")) {
				t.Error("Exists is wrong")
			}
			if err := page.Add(move1("a", "hold", esi, ledger.Clearing, 990), move1("a", "fee", esi, ledger.Clearing, 11)); !errors.Is(err, ledger.ErrInsufficient) {
				t.Errorf("an uncovered pair: %v", err)
			}
			if page.Balance(wallet("esi")) != 1000 || !page.Covers(wallet("esi"), 1000) || page.Covers(wallet("esi"), 1001) {
				t.Errorf("the refused pair left a trace: %d", page.Balance(wallet("esi")))
			}
			if err := page.Add(move1("b", "hold", ledger.Wallet("nobody"), ledger.Clearing, 1)); !errors.Is(err, ledger.ErrNoAccount) {
				t.Errorf("no account: %v", err)
			}
			if err := page.Add(move1("b", "hold", ledger.Wallet("yaw"), ledger.Clearing, 1)); !errors.Is(err, ledger.ErrNoAccount) {
				t.Errorf("a wallet that is not locked: %v", err)
			}
			for _, wrong := range []ledger.Transfer{
				move1("c", "hold", esi, ledger.Clearing, 0), move1("c", "hold", esi, ledger.Clearing, -5),
				move1("c", "hold", esi, esi, 5), move1("c", "hold", esi, ledger.Wallet("yaw"), 5), move1("", "hold", esi, ledger.Clearing, 5),
			} {
				if err := page.Add(wrong); err == nil {
					t.Errorf("accepted %+v", wrong)
				}
			}
			// Money that comes in covers a later transfer of the same page.
			if err := page.Add(move1("d", "in", ledger.Float("mtn"), esi, 500), move1("d", "hold", esi, ledger.Clearing, 1500)); err != nil {
				t.Errorf("covered by what came in: %v", err)
			}
			page.Post()
			if page.Add(move1("e", "hold", esi, ledger.Clearing, 1)) == nil {
				t.Error("added after Post")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := balance(t, l, wallet("esi")); got != 0 {
			t.Errorf("holds %d", got)
		}
		if _, err := l.Balance(t.Context(), wallet("nobody")); !errors.Is(err, ledger.ErrNoAccount) {
			t.Errorf("balance of nobody: %v", err)
		}
		sound(t, l)
	})
}

func TestFloor_mayBeNegative(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d)
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			l.Create(tx, wallet("credit"), -200)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := move(t.Context(), d, l, move1("a", "hold", ledger.Wallet("credit"), ledger.Clearing, 200)); err != nil {
			t.Fatal(err)
		}
		if err := move(t.Context(), d, l, move1("b", "hold", ledger.Wallet("credit"), ledger.Clearing, 1)); !errors.Is(err, ledger.ErrInsufficient) {
			t.Fatalf("under the floor: %v", err)
		}
		if got := balance(t, l, wallet("credit")); got != -200 {
			t.Errorf("holds %d", got)
		}
	})
}

func TestStatement_orderedBySequence(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "efua")
		for i := range 25 {
			m := move1(fmt.Sprint("p", i), "hold", ledger.Wallet("efua"), ledger.Clearing, 10)
			m.At = start.Add(time.Duration(i+1) * time.Hour)
			if i == 10 { // on a node whose clock is behind
				m.At = start.Add(-24 * time.Hour)
			}
			if err := move(t.Context(), d, l, m); err != nil {
				t.Fatal(err)
			}
		}
		s, lines := stretch(t, l, time.Time{}, time.Time{}, 0, 100)
		if s.Opening != 0 || s.Closing != 750 || s.Total() != 26 || len(lines) != 26 {
			t.Fatalf("the whole: %+v", s)
		}
		running := s.Opening
		for i, line := range lines {
			if running += line.Change; running != line.Balance || line.Sequence != int64(i+1) || i > 0 && line.At.Before(lines[i-1].At) {
				t.Errorf("line %d: %+v", i, line)
			}
		}
		// From hour 5 (inclusive) to hour 20 (exclusive): numbers 6 to 20, including the late transfer.
		s, lines = stretch(t, l, start.Add(5*time.Hour), start.Add(20*time.Hour), 10, 10)
		if s.Opening != 960 || s.Closing != 810 || s.Total() != 15 || len(lines) != 5 || lines[0].Sequence != 16 {
			t.Fatalf("a stretch: %+v", s)
		}
		for _, empty := range []struct{ from, to time.Time }{{start.Add(100 * time.Hour), time.Time{}}, {start.Add(time.Minute), start.Add(2 * time.Minute)}, {start.Add(3 * time.Hour), start.Add(time.Hour)}} {
			if s, lines := stretch(t, l, empty.from, empty.to, 0, 10); s.Total() != 0 || len(lines) != 0 || s.Opening != s.Closing {
				t.Fatalf("an empty stretch: %+v", s)
			}
		}
		if _, err := l.Stretch(t.Context(), wallet("nobody"), time.Time{}, time.Time{}); !errors.Is(err, ledger.ErrNoAccount) {
			t.Fatal(err)
		}
	})
}

// stretch reads a period of efua's transfers and some of its lines.
func stretch(t *testing.T, l *ledger.Ledger, from, to time.Time, skip int64, size int) (ledger.Stretch, []ledger.Line) {
	t.Helper()
	s, err := l.Stretch(t.Context(), wallet("efua"), from, to)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := l.Lines(t.Context(), s, skip, size)
	if err != nil {
		t.Fatal(err)
	}
	return s, lines
}

// The tables refuse rows that the program never writes.
func TestSchema_refusesInvalidRows(t *testing.T) {
	writes := map[string]string{
		"a balance below the floor":   `UPDATE wallets SET balance = floor - 1 WHERE id = 'wallet:kojo'`,
		"a floor above the balance":   `UPDATE wallets SET floor = balance + 1 WHERE id = 'wallet:kojo'`,
		"a transfer of nothing":       `UPDATE transfers SET amount = 0 WHERE subject = 'p1'`,
		"a transfer to where it was":  `UPDATE transfers SET to_account = from_account WHERE subject = 'p1'`,
		"a wallet's number twice":     `UPDATE transfers SET sequence = 1 WHERE subject = 'p1'`,
		"a wallet that takes no part": `UPDATE transfers SET wallet = 'wallet:abena' WHERE subject = 'p1'`,
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "kojo", "abena")
		if err := move(t.Context(), d, l, move1("p1", "hold", ledger.Wallet("kojo"), ledger.Clearing, 50)); err != nil {
			t.Fatal(err)
		}
		for name, sql := range writes {
			if _, err := d.Exec(t.Context(), sql); err == nil {
				t.Errorf("%s was written", name)
			}
		}
		sound(t, l)
	})
}

func TestCheck_findsEachFault(t *testing.T) {
	breaks := map[string]string{
		"a wallet's balance":        `UPDATE wallets SET balance = balance + 1 WHERE id = 'wallet:kojo'`,
		"a wallet's sequence":       `UPDATE wallets SET sequence = sequence + 1 WHERE id = 'wallet:kojo'`,
		"a transfer's amount":       `UPDATE transfers SET amount = amount + 1 WHERE subject = 'p1'`,
		"a balance after":           `UPDATE transfers SET balance = balance - 1 WHERE subject = 'p1'`,
		"a lost transfer":           `DELETE FROM transfers WHERE subject = 'p1'`,
		"a lost settlement":         `DELETE FROM transfers WHERE subject = 'p2'`,
		"a lost wallet":             `DELETE FROM wallets WHERE id = 'wallet:kojo'`,
		"a shard":                   `UPDATE shards SET balance = balance - 1 WHERE id = 'clearing'`,
		"money moved between books": `UPDATE shards SET asset = 'TEST_GHS' WHERE id = 'clearing'`,
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "kojo", "abena")
		if err := move(t.Context(), d, l, move1("p1", "hold", ledger.Wallet("kojo"), ledger.Clearing, 50)); err != nil {
			t.Fatal(err)
		}
		if err := move(t.Context(), d, l, move1("p2", "final", ledger.Clearing, ledger.Fees, 20)); err != nil {
			t.Fatal(err)
		}
		sound(t, l)
		stop := errors.New("stop")
		for name, sql := range breaks {
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				if n, err := tx.Exec(sql); err != nil || n != 1 {
					return fmt.Errorf("%d rows: %w", n, err)
				}
				report, err := l.CheckIn(tx)
				if err != nil {
					return err
				}
				if report.OK() {
					t.Errorf("%s: not found", name)
				}
				return stop // roll back
			})
			if !errors.Is(err, stop) {
				t.Errorf("%s: %v", name, err)
			}
		}
		sound(t, l)
	})
}
