package installation

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

var start = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)

func secretOf(t *testing.T, b byte) config.Secret {
	t.Helper()
	s, err := config.NewSecret(bytes.Repeat([]byte{b}, config.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMasterKey_mismatchIsRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := New(d, clock.NewManual(start))
		if err := a.CheckSecret(t.Context(), secretOf(t, 2)); err != nil {
			t.Fatalf("a command before the first start: %v", err)
		}
		if err := a.Check(t.Context(), secretOf(t, 1)); err != nil {
			t.Fatalf("the first start: %v", err)
		}
		if err := a.Check(t.Context(), secretOf(t, 1)); err != nil {
			t.Fatalf("the same key again: %v", err)
		}
		if err := New(d, clock.Real()).Check(t.Context(), secretOf(t, 2)); !errors.Is(err, ErrWrongSecret) {
			t.Fatalf("another key: %v", err)
		}
		if err := a.CheckSecret(t.Context(), secretOf(t, 1)); err != nil {
			t.Fatalf("a command with the same key: %v", err)
		}
		if err := a.CheckSecret(t.Context(), secretOf(t, 2)); !errors.Is(err, ErrWrongSecret) {
			t.Fatalf("a command with another key: %v", err)
		}
	})
}

func TestMasterKey_concurrentFirstStarts(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const starts = 8
		var wg sync.WaitGroup
		var won, refused atomic.Int64
		for i := range starts {
			wg.Go(func() {
				switch err := New(d, clock.Real()).Check(t.Context(), secretOf(t, byte(i+1))); {
				case err == nil:
					won.Add(1)
				case errors.Is(err, ErrWrongSecret):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || refused.Load() != starts-1 {
			t.Fatalf("%d keys won and %d were refused", won.Load(), refused.Load())
		}
	})
}

func TestMasterKey_lostCommitAnswer(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		a := New(d, clock.NewManual(start))
		f.At(db.BoundaryCommit, 1, db.FaultAfter)
		if err := a.Check(t.Context(), secretOf(t, 1)); err != nil {
			t.Fatalf("a claim whose answer was lost: %v", err)
		}
		if err := a.Check(t.Context(), secretOf(t, 2)); !errors.Is(err, ErrWrongSecret) {
			t.Fatalf("another key: %v", err)
		}
	})
}
