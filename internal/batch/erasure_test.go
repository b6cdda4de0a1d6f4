package batch

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/test/dbtest"
)

// A person is erased from drafts and from finished batches. Frozen rows keep the number until the batch has ended. After ninety
// days all people are erased, and the books agree.
func TestErase_whenOver(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		over := n.requested("Over", fileFrom(1, 3))
		if err := n.start(over); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		requested := n.requested("Requested", strings.Replace(fileFrom(2, 3), "0240020001,MTN,2.00", "0240010001,MTN,5.00", 1))
		draft, err := n.upload("Draft", strings.Replace(fileFrom(3, 3), "0240030002", "0240010001", 1))
		if err != nil {
			t.Fatal(err)
		}
		seen, erased := 0, 0
		err = OfNumber(t.Context(), d, "233240010001", func(named Named) error {
			seen++
			gone, err := Erase(t.Context(), d, named)
			if gone {
				erased++
			}
			return err
		})
		if err != nil || seen != 3 || erased != 2 {
			t.Errorf("%d rows were found, %d erased (%v)", seen, erased, err)
		}
		if rows, err := n.Rows(t.Context(), draft.Tenant, draft.ID, 1); err != nil || rows[1].State != RowDropped || rows[1].Account != "" || rows[1].Given != (Given{}) {
			t.Errorf("the row of the draft is %+v (%v)", rows[1], err)
		}
		if err := errors.Join(n.start(requested)); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		n.leap(keepTime)
		for _, b := range []Batch{over, requested} {
			rows, err := n.Rows(t.Context(), b.Tenant, b.ID, 1)
			if err != nil || len(rows) != 3 || rows[0].Account != "" || rows[2].Account != "" || rows[0].Amount == 0 {
				t.Errorf("%s: %+v (%v)", b.Name, rows, err)
			}
		}
		n.sound()
	})
}

// Batches are listed newest first, page by page, and their results are a table with the given columns.
func TestResults_asTable(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		var ids []string
		for place, name := range []string{"First", "Second", "Third"} {
			b := n.requested(name, fileFrom(place, 2))
			ids = append(ids, b.ID)
			f.clock.Advance(time.Second)
		}
		first, err := n.List(t.Context(), f.tenant.ID, "", 2)
		if err != nil || len(first) != 2 || first[0].ID != ids[2] {
			t.Fatalf("%d batches (%v)", len(first), err)
		}
		rest, err := n.List(t.Context(), f.tenant.ID, first[1].ID, 2)
		if err != nil || len(rest) != 1 || rest[0].ID != ids[0] {
			t.Fatalf("%d batches on the second page (%v)", len(rest), err)
		}
		if err := n.start(rest[0]); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		var csv bytes.Buffer
		if err := n.WriteResults(t.Context(), &csv, sheet.CSV, f.tenant.ID, ids[0]); err != nil {
			t.Fatal(err)
		}
		if text := csv.String(); !strings.Contains(text, "0240000001") || !strings.Contains(text, `"success"`) || !strings.Contains(text, "b-"+rest[0].Code+"-2") {
			t.Error(text)
		}
		if _, err := n.Get(t.Context(), "another", ids[0]); err == nil {
			t.Error("another tenant reads the batch")
		}
	})
}
