package audit

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
)

// testSet is the number of entries or links in a set.
const testSet = 50

// ended runs the whole check until it ends, and returns its result.
func (f *fixture) ended() Whole {
	f.t.Helper()
	for range 100 {
		if err := f.Work(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		w, err := f.Whole(f.t.Context())
		if err != nil {
			f.t.Fatal(err)
		}
		if w.BegunAt.IsZero() {
			return w
		}
	}
	f.t.Fatal("the whole check did not end")
	return Whole{}
}

// filled links entries for several sets.
func (f *fixture) filled(entries int) {
	f.t.Helper()
	f.set = testSet
	f.write(entries)
	f.link(entries)
}

// steps checks so many sets of the whole check, as a process does before it is killed, and stores the position.
func (f *fixture) steps(n int) whole {
	f.t.Helper()
	w, err := f.whole(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if w.stage == "" {
		w = whole{version: w.version, stage: stageEntries, result: w.result, begunAt: f.clock.Now(), endedAt: w.endedAt}
	}
	for range n {
		if err := f.step(f.t.Context(), &w); err != nil {
			f.t.Fatal(err)
		}
	}
	write(f.t, f.db, func(tx *db.Tx) error { return f.keep(tx, w) })
	return w
}

// A fault anywhere is found by the next whole check, also behind the position of the one that runs. A mended log is clean after the
// next check, which begins at once.
func TestWork_findsFaultsAnywhere(t *testing.T) {
	const links = 2*testSet + 20
	each(t, 0, func(f *fixture) {
		f.filled(links)
		if w := f.ended(); len(w.Faults) != 0 || w.EndedAt.IsZero() {
			t.Fatalf("as linked: %+v", w)
		}
		entry := `(SELECT entry FROM audit_chain WHERE number = $1)`
		for name, c := range map[string]struct {
			breaks, mends string
			number        int64
			kind          Kind
		}{
			"the first entry":   {`UPDATE audit_log SET actor = 'esi' WHERE id = ` + entry, `UPDATE audit_log SET actor = 'ama@example.com' WHERE id = ` + entry, 1, Changed},
			"an entry within":   {`UPDATE audit_log SET reason = 'none' WHERE id = ` + entry, `UPDATE audit_log SET reason = 'asked' WHERE id = ` + entry, testSet + 7, Changed},
			"a link at the end": {`UPDATE audit_chain SET linked_at = linked_at + 1 WHERE number = $1`, `UPDATE audit_chain SET linked_at = linked_at - 1 WHERE number = $1`, links, Changed},
			"a link of a set's end": {`UPDATE audit_chain SET hash = substr(hash, 64) || substr(hash, 1, 63) WHERE number = $1`,
				`UPDATE audit_chain SET hash = substr(hash, 2) || substr(hash, 1, 1) WHERE number = $1`, testSet + 1, Changed},
			"an entry without a link": {`INSERT INTO audit_log (tenant, id, at, actor, action, subject, reason, details, linked) VALUES ('', '00', $1, 'esi', 'x', '', '', '{}', 1)`,
				`DELETE FROM audit_log WHERE id = '00' AND at = $1`, 1, Inserted},
		} {
			f.clock.Advance(wholeEvery)
			f.steps(4) // the check that runs has passed entries and the first links
			f.alter(c.breaks, c.number)
			f.ended()
			f.clock.Advance(wholeEvery)
			if w := f.ended(); len(w.Faults) == 0 || w.Faults[0].Kind != c.kind {
				t.Errorf("%s: %+v", name, w)
			}
			f.alter(c.mends, c.number)
			if w := f.ended(); len(w.Faults) != 0 {
				t.Errorf("%s: mended: %+v", name, w)
			}
		}
	})
}

// Another process goes on from the stored position. It does not trust a position that was not written with the key, or that is old.
func TestWork_resumes(t *testing.T) {
	const links = 2*testSet + 20
	each(t, 0, func(f *fixture) {
		f.filled(links)
		if done, err := f.StartKey(t.Context(), noneOlder); err != nil || !done {
			t.Fatal(done, err)
		}
		position := func() (string, int64) {
			t.Helper()
			w, err := New(f.db, f.clock).Keyed(ring(t, 1)).whole(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return w.stage, w.head.Number
		}
		f.steps(4)
		if stage, number := position(); stage != stageLinks || number != testSet {
			t.Errorf("goes on at %s %d", stage, number)
		}
		f.steps(1)
		if stage, number := position(); stage != stageLinks || number != 2*testSet {
			t.Errorf("goes on at %s %d", stage, number)
		}
		f.alter(`UPDATE audit_whole SET number = $1`, int64(links-1))
		if stage, number := position(); stage != "" || number != 0 {
			t.Errorf("trusts a position without the key: %s %d", stage, number)
		}
		f.steps(4)
		f.clock.Advance(wholeAge + time.Second)
		if stage, _ := position(); stage != "" {
			t.Errorf("goes on with an old check: %s", stage)
		}
		if w := f.ended(); len(w.Faults) != 0 || !w.EndedAt.Equal(f.clock.Now()) {
			t.Errorf("%+v", w)
		}
		before := f.clock.Now()
		f.clock.Advance(time.Hour)
		if w := f.ended(); !w.EndedAt.Equal(before) {
			t.Errorf("a check began that is not due: %+v", w)
		}
		f.alter(`UPDATE audit_whole SET ended_at = ended_at + $1`, int64(time.Hour/time.Microsecond))
		if w := f.ended(); !w.EndedAt.Equal(f.clock.Now()) || len(w.Faults) != 0 {
			t.Errorf("trusts an end without the key: %+v", w)
		}
	})
}
