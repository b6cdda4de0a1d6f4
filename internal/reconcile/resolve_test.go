package reconcile

import (
	"errors"
	"fmt"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// Exceptions are written off as they were selected. People who imported their lines cannot do this. They stay resolved while the
// difference is the same.
func TestWriteOff_asSelected(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		text := mtnHeading
		for i := range 3 {
			text += moved(fmt.Sprint(70+i), "", "Successful", fmt.Sprintf("%d.00", i+1), "")
		}
		f.must(mtn, text)
		f.match()
		n, err := f.Select(t.Context(), Filter{Source: mtn, Kind: TheirsOnly, Most: 200})
		if err != nil || len(n.List) != 2 || n.Sum != 300 || fmt.Sprint(n.Uploaders()) != "[person]" {
			t.Fatalf("selected %+v, %v", n, err)
		}
		ids := []string{n.List[0].ID, n.List[1].ID}
		writeOff := func(digest string) error {
			return d.Write(t.Context(), func(tx *db.Tx) error { return f.WriteOff(tx, ids, digest, "act") })
		}
		if err := writeOff("another"); !problem.Is(err, problem.Invalid) {
			t.Errorf("another digest: %v", err)
		}
		f.mustFind(TheirsOnly, TheirsOnly, TheirsOnly)
		if err := writeOff(n.Digest); err != nil {
			t.Fatal(err)
		}
		if err := writeOff(n.Digest); !problem.Is(err, problem.Invalid) {
			t.Errorf("a second time: %v", err)
		}
		if err := f.Recheck(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.mustFind(TheirsOnly)
		if n := f.count("statement_exceptions"); n != 3 {
			t.Errorf("%d exceptions are stored", n)
		}
	})
}

// If the provider has changed a line since the selection, its exception is not written off.
func TestWriteOff_lineThatChanged(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.must(mtn, mtnHeading+moved("70", "", "Successful", "1.00", ""))
		f.match()
		n, err := f.Select(t.Context(), Filter{Source: mtn, Kind: TheirsOnly})
		if err != nil {
			t.Fatal(err)
		}
		f.must(mtn, mtnHeading+moved("70", "", "Successful", "9.00", ""))
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return f.WriteOff(tx, []string{n.List[0].ID}, n.Digest, "act") }); !problem.Is(err, problem.Invalid) {
			t.Errorf("written off with %v", err)
		}
	})
}

// The tables allow one match for a line, and one for a movement of a payment.
func TestMatches_tableGuards(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		add := func(line, payment string) error {
			_, err := d.Exec(t.Context(), insertMatch, line, payment, string(LegMovement), string(RuleReference), "", f.clock.Now())
			return err
		}
		if err := add("a", "p"); err != nil {
			t.Fatal(err)
		}
		for _, pair := range [][2]string{{"a", "q"}, {"b", "p"}} {
			if err := add(pair[0], pair[1]); !errors.Is(err, db.ErrUnique) {
				t.Errorf("line %s and payment %s: %v", pair[0], pair[1], err)
			}
		}
	})
}
