package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/test/dbtest"
)

// order books an amount into a wallet as an operator's action does: a row with the reference, and the transfer. The
// row also shows whether a COMMIT without an answer took effect.
func order(ctx context.Context, d *db.DB, l *ledger.Ledger, b ledger.Booking) error {
	landed := func(tx *db.Tx) (bool, error) {
		var one int
		return tx.One(`SELECT 1 FROM transfers WHERE subject = $1`, []any{b.Request}, &one)
	}
	return d.WriteRecognising(ctx, landed, func(tx *db.Tx) error {
		page, err := l.Open(tx, b.Account)
		if err != nil {
			return err
		}
		if err := page.Add(move1(b.Request, "fund", ledger.Funding, b.Account.ID, b.Amount)); err != nil {
			return err
		}
		page.Post()
		return l.Book(tx, b)
	})
}

func TestBook_referenceOnceAKind(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "kojo", "abena")
		slip := ledger.Booking{Kind: "wallet.fund", Reference: "slip 17", Account: wallet("kojo"), Amount: 250, Request: "act-1"}
		if err := order(t.Context(), d, l, slip); err != nil {
			t.Fatal(err)
		}
		again := slip
		again.Account, again.Amount, again.Request = wallet("abena"), 300, "act-2"
		var taken *ledger.TakenError
		if err := order(t.Context(), d, l, again); !errors.As(err, &taken) || !errors.Is(err, db.ErrUnique) {
			t.Fatalf("the same reference: %v", err)
		}
		slip.At = start
		if taken.By != slip {
			t.Errorf("it was taken by %+v, not %+v", taken.By, slip)
		}
		again.Kind = "wallet.adjust"
		if err := order(t.Context(), d, l, again); err != nil {
			t.Errorf("the same reference of another kind: %v", err)
		}
		if kojo, abena := balance(t, l, wallet("kojo")), balance(t, l, wallet("abena")); kojo != 1250 || abena != 1300 {
			t.Errorf("the wallets hold %d and %d", kojo, abena)
		}
		for _, bad := range []ledger.Booking{{Kind: "x", Amount: 1}, {Reference: "x", Amount: 1}, {Kind: "x", Reference: "x"}} {
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return l.Book(tx, bad) }); err == nil {
				t.Errorf("%+v was booked", bad)
			}
		}
	})
}

func TestBook_concurrentOrdersMoveOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "kojo", "abena")
		var moved, refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				b := ledger.Booking{Kind: "wallet.fund", Reference: "slip 17", Account: wallet([]string{"kojo", "abena"}[i%2]), Amount: 5, Request: fmt.Sprint("act-", i)}
				switch err := order(t.Context(), d, l, b); {
				case err == nil:
					moved.Add(1)
				case errors.Is(err, db.ErrUnique):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if sum := balance(t, l, wallet("kojo")) + balance(t, l, wallet("abena")); moved.Load() != 1 || refused.Load() != 7 || sum != 2005 {
			t.Errorf("%d moved, %d were refused, the wallets hold %d", moved.Load(), refused.Load(), sum)
		}
		sound(t, l)
	})
}

// After a lost answer to COMMIT, nothing is booked twice, and our own row is not mistaken for that of another
// request.
func TestBook_lostCommitAnswer(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) {
		l := book(t, d, "kojo")
		for i, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
			b := ledger.Booking{Kind: "wallet.fund", Reference: fmt.Sprint("slip ", i), Account: wallet("kojo"), Amount: 100, Request: fmt.Sprint("act-", i)}
			faults.At(db.BoundaryCommit, 1, fault)
			if err := order(t.Context(), d, l, b); err != nil {
				t.Fatalf("fault %d: %v", fault, err)
			}
			b.Request += " again"
			if err := order(t.Context(), d, l, b); !errors.Is(err, db.ErrUnique) {
				t.Errorf("fault %d, the repeat: %v", fault, err)
			}
			if got, want := balance(t, l, wallet("kojo")), int64(1100+100*i); got != want {
				t.Errorf("fault %d: the wallet holds %d, not %d", fault, got, want)
			}
		}
		sound(t, l)
	})
}

func TestAlike_sameKindAccountAndAmount(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := book(t, d, "kojo", "abena")
		slip := ledger.Booking{Kind: "wallet.fund", Reference: "slip 17", Account: wallet("kojo"), Amount: 250, Request: "act-1"}
		if err := order(t.Context(), d, l, slip); err != nil {
			t.Fatal(err)
		}
		other, more, adjust := slip, slip, slip
		other.Account, more.Amount, adjust.Kind = wallet("abena"), 251, "wallet.adjust"
		for name, c := range map[string]struct {
			b     ledger.Booking
			since time.Time
			want  bool
		}{
			"the same":        {slip, start, true},
			"long ago":        {slip, start.Add(time.Microsecond), false},
			"another account": {other, start, false},
			"another amount":  {more, start, false},
			"another kind":    {adjust, start, false},
		} {
			got, found, err := l.BookedAlike(t.Context(), c.b, c.since)
			if err != nil || found != c.want || found && got.Reference != "slip 17" {
				t.Errorf("%s: %+v, %v, %v", name, got, found, err)
			}
		}
		if _, found, err := l.Booked(t.Context(), "wallet.fund", "slip 18"); found || err != nil {
			t.Errorf("a reference that nobody used: %v, %v", found, err)
		}
	})
}
