package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// all are the final statuses in these lists.
var all = []string{"success", "failed", "declined", "invalid"}

// A model is the expected content of a list, oldest entry first.
type model struct {
	List
	entries []entry
}

type entry struct {
	at     time.Time
	status string // empty: not final
}

// append adds entries in one transaction, as their owner does.
func (m *model) append(t testing.TB, d *db.DB, entries []entry) {
	t.Helper()
	var placed []entry
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		placed = slices.Clone(entries)
		ends, counts := Ends{}, Tally{}
		ends.Add(m.List)
		if err := tx.Gather(ends.LockQuery()); err != nil {
			return err
		}
		for i := range placed {
			seq, at := ends.Append(m.List, placed[i].at)
			if want := int64(len(m.entries) + i + 1); seq != want {
				t.Errorf("an entry has the number %d, not %d", seq, want)
			}
			placed[i].at = at
			counts.Begins(m.List, seq, placed[i].status)
		}
		ends.Defer(tx)
		counts.Defer(tx, 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	m.entries = append(m.entries, placed...)
}

// change returns entries a new status in one transaction.
func (m *model) change(t testing.TB, d *db.DB, shard int, changes map[int]string) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		counts := Tally{}
		for i, to := range changes {
			counts.Changes(m.List, int64(i+1), m.entries[i].status, to)
		}
		counts.Defer(tx, shard)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, to := range changes {
		m.entries[i].status = to
	}
}

// want computes a page by looking at every entry.
func (m *model) want(f Filter) (seqs []int64, total int64) {
	for i, e := range slices.Backward(m.entries) {
		d := clock.Day(e.at)
		switch {
		case len(f.Status.Finals) > 0 && slices.Contains(f.Status.Finals, e.status) == f.Status.Rest:
		case !f.From.IsZero() && d < clock.Day(f.From):
		case !f.To.IsZero() && d > clock.Day(f.To):
		default:
			if total++; total > f.Offset && total <= f.Offset+f.Size {
				seqs = append(seqs, int64(i+1))
			}
		}
	}
	return seqs, total
}

func (m *model) compare(t *testing.T, d *db.DB, f Filter) {
	t.Helper()
	err := d.ReadSnapshot(t.Context(), func(tx *db.Tx) error {
		seqs, total, err := Read(tx, m.List, start.AddDate(1, 0, 0)).Page(f)
		if err != nil {
			return err
		}
		if want, of := m.want(f); total != of || !slices.Equal(seqs, want) {
			t.Fatalf("%+v: %d in total and %v, want %d and %v", f, total, seqs, of, want)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
}

// randomFilter returns filters with pages at any position, also past the end.
func (m *model) randomFilter(r *rand.Rand) Filter {
	f := Filter{Size: 1 + r.Int64N(100)}
	switch n := r.IntN(6); {
	case n < 3:
		f.Status.Finals = []string{all[r.IntN(len(all))]}
	case n == 3:
		f.Status = Status{Finals: all, Rest: true}
	}
	anyDay := func() time.Time {
		span := m.entries[len(m.entries)-1].at.Sub(m.entries[0].at) + 72*time.Hour
		return m.entries[0].at.Add(time.Duration(r.Int64N(int64(span))) - 36*time.Hour).Truncate(24 * time.Hour)
	}
	if r.IntN(2) == 0 {
		f.From = anyDay()
	}
	if r.IntN(2) == 0 {
		f.To = anyDay()
		if f.To.Before(f.From) {
			f.From, f.To = f.To, f.From
		}
	}
	_, total := m.want(f)
	f.Offset = r.Int64N(total+f.Size+1) / f.Size * f.Size
	return f
}

// TestPage_matchesTheModel makes random appends and changes, in lists whose sizes cross blocks of all levels, and
// compares the pages with a model.
func TestPage_matchesTheModel(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := rand.New(rand.NewPCG(3, 14))
		for _, size := range []int{1, 2, 59, 60, 61, 200, 1441, int(blockRows[topLevel]) + 100} {
			m := &model{List: List{fmt.Sprintf("tenant-%d", size), "collection"}}
			at := start
			for len(m.entries) < size {
				var batch []entry
				for range min(1+r.IntN(1+size/10), size-len(m.entries)) {
					batch = append(batch, entry{at: at})
					at = at.Add(time.Duration(r.IntN(int(20*24*time.Hour) / size)))
				}
				m.append(t, d, batch)
				changes := map[int]string{}
				for i := range m.entries {
					if m.entries[i].status == "" && r.IntN(2) == 0 {
						changes[i] = []string{"success", "success", "success", "failed", "declined"}[r.IntN(5)]
					}
					if m.entries[i].status == "failed" && r.IntN(20) == 0 {
						changes[i] = "success" // the status changes a second time
					}
				}
				m.change(t, d, r.IntN(3), changes)
			}
			if size > 1000 { // a rare status at distant positions
				m.change(t, d, 1, map[int]string{3: "invalid", 70: "invalid", size / 2: "invalid", size - 1: "invalid"})
			}
			for range 100 {
				m.compare(t, d, m.randomFilter(r))
			}
		}
	})
}

func TestPage_missingListIsEmpty(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		m := &model{List: List{"nobody", "payout"}}
		for _, f := range []Filter{
			{Size: 15}, {Size: 15, Status: Status{Finals: []string{"success"}}}, {Size: 15, Offset: 120, Status: Status{Finals: all, Rest: true}},
			{Size: 15, From: start, To: start},
		} {
			m.compare(t, d, f)
		}
	})
}

// TestAppend_concurrentStartHasNoGap appends the first entries of one list from many concurrent transactions. No
// number is missing or used twice.
func TestAppend_concurrentStartHasNoGap(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const writers, each = 6, 5
		list := List{"busy", "payout"}
		numbers := make(chan int64, writers*each)
		done := make(chan error, writers)
		for range writers {
			go func() {
				done <- func() error {
					for range each {
						var seq int64
						write := func(tx *db.Tx) error {
							ends := Ends{}
							ends.Add(list)
							if err := tx.Gather(ends.LockQuery()); err != nil {
								return err
							}
							seq, _ = ends.Append(list, start)
							ends.Defer(tx)
							return nil
						}
						err := d.Write(t.Context(), write)
						if err != nil && strings.Contains(err.Error(), db.ErrGuard.Error()) {
							err = d.Write(t.Context(), write) // as a group commit does
						}
						if err != nil {
							return err
						}
						numbers <- seq
					}
					return nil
				}()
			}()
		}
		for range writers {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		close(numbers)
		var got []int64
		for n := range numbers {
			got = append(got, n)
		}
		slices.Sort(got)
		for i, n := range got {
			if n != int64(i+1) {
				t.Fatalf("the numbers are %v", got)
			}
		}
		err := d.Read(t.Context(), func(tx *db.Tx) error {
			total, err := Total(tx, list)
			if everything, failed := CountAll(tx); failed != nil || err != nil || total != writers*each || everything != total {
				t.Errorf("%d entries of %d, not %d: %v, %v", total, everything, writers*each, err, failed)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestCheck_usesBlockRows checks that the numbers in the check's statements equal blockRows.
func TestCheck_usesBlockRows(t *testing.T) {
	blocks := fmt.Sprintf("CASE level WHEN 0 THEN %d WHEN 1 THEN %d ELSE %d END", blockRows[0], blockRows[1], blockRows[2])
	if !strings.Contains(strayCounters, blocks) {
		t.Errorf("strayCounters does not contain %q", blocks)
	}
	if leaf := fmt.Sprintf("(seq - 1) / %d, -(CAST(1 AS BIGINT) << CAST((seq - 1) %% %d AS INT))", leafRows, leafRows); !strings.Contains(wrongLeaves, leaf) {
		t.Errorf("wrongLeaves does not contain %q", leaf)
	}
}
