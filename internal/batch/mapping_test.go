package batch

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// receive uploads a file. A person then confirms its columns.
func (n *node) receive(requester, name string, content []byte) (Received, error) {
	n.f.t.Helper()
	return n.Receive(n.f.t.Context(), Upload{Tenant: n.f.tenant.ID, Name: name, Requester: requester}, bytes.NewReader(content))
}

// confirm makes a draft of a received file.
func (n *node) confirm(r Received, m Mapping) (Batch, error) {
	n.f.t.Helper()
	b, _, err := n.Confirm(n.f.t.Context(), Upload{Tenant: r.Tenant, Requester: r.Requester}, r.ID, m)
	return b, err
}

const countParts = `SELECT count(*) FROM batch_file_parts`

// parts counts the stored parts of files.
func (n *node) parts() (count int) {
	n.f.t.Helper()
	if _, err := n.db.ReadOne(n.f.t.Context(), countParts, nil, &count); err != nil {
		n.f.t.Fatal(err)
	}
	return count
}

// If no alias matches a heading, a person maps it, with the first ten rows in view. The choice is proposed for the next file with
// the same headings. If a heading has changed, the differences are named.
func TestConfirm_mapsAndRemembers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		text := "Colour,Who,Line of the person,Firm,Cedis in full\n"
		for i := range 12 {
			text += fmt.Sprintf("red,Person %d,024000%04d,MTN,%d.50\n", i, i, i+1)
		}
		text += ",,,,84.00\n"
		r, err := n.receive("ama", "Salaries", []byte(text))
		if err != nil || len(r.Preview.Sample) != 10 || r.Preview.Rows != 13 || !slices.Equal(r.Preview.Names, []string{"Colour", "Who", "Line of the person", "Firm", "Cedis in full"}) {
			t.Fatalf("%+v (%v)", r.Preview, err)
		}
		if _, found, err := n.Remember(t.Context(), r); found || err != nil {
			t.Errorf("columns of a first file are remembered (%v)", err)
		}
		if _, err := n.Received(t.Context(), r.Tenant, "kofi", r.ID); !problem.Is(err, problem.NotFound) {
			t.Errorf("another person finds the file: %v", err)
		}
		for name, columns := range map[string]map[string]int{"no amount": {"number": 2}, "a column twice": {"number": 2, "amount": 2}, "a column too far": {"number": 2, "amount": 5}} {
			if _, err := n.confirm(r, Mapping{Columns: columns}); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		chosen := map[string]int{"number": 2, "network": 3, "amount": 4, "name": 1}
		b, err := n.confirm(r, Mapping{Columns: chosen})
		if err != nil || b.Lines != 12 || b.Name != "Salaries" || !slices.Equal(b.Notes, []string{"line 14 has the total GHS 84.00, which equals the sum of the rows"}) {
			t.Fatalf("%+v (%v)", b, err)
		}
		if rows, err := n.Rows(t.Context(), b.Tenant, b.ID, 1); err != nil || rows[11].Account != "233240000011" || rows[11].Amount != 1250 || rows[11].Name != "Person 11" || rows[11].State != RowReady {
			t.Errorf("%+v (%v)", rows, err)
		}
		if n.parts() != 0 {
			t.Error("the file was kept")
		}
		next, err := n.receive("kofi", "Salaries December", []byte(strings.ReplaceAll(text, "84.00", "85.00")))
		if err != nil {
			t.Fatal(err)
		}
		if old, found, err := n.Remember(t.Context(), next); !found || !old.Same() || !maps.Equal(old.Columns, chosen) || err != nil {
			t.Errorf("%+v, %t (%v)", old, found, err)
		}
		changed, err := n.receive("kofi", "Salaries January", []byte(strings.Replace(text, "Colour,Who,Line", "Who,Net of all,Line", 1)))
		if err != nil {
			t.Fatal(err)
		}
		old, found, err := n.Remember(t.Context(), changed)
		if !found || !slices.Equal(old.New, []string{"net of all"}) || !slices.Equal(old.Gone, []string{"colour"}) || old.Columns["name"] != 0 || old.Columns["number"] != 2 || err != nil {
			t.Errorf("%+v, %t (%v)", old, found, err)
		}
		if n.parts() != 1 {
			t.Errorf("%d files are kept of one person", n.parts())
		}
		n.f.clock.Advance(fileTime + sweepEvery)
		if err := n.sweep(t.Context()); err != nil || n.parts() != 0 {
			t.Errorf("%d files are kept after their time (%v)", n.parts(), err)
		}
		if _, err := n.confirm(changed, Mapping{Columns: chosen}); !problem.Is(err, problem.NotFound) {
			t.Errorf("a file that was deleted: %v", err)
		}
	})
}

// The columns of common files are proposed automatically, also for Telecel's own bulk file and for a file without headings.
func TestReceive_proposesColumns(t *testing.T) {
	n := newFixture(t, dbtest.Open(t, db.SQLite)).stopped("a")
	for text, want := range map[string]map[string]int{
		"MSISDN,Amount,Telco\n233201234567,10.00,AT Money\n":                              {"number": 0, "amount": 1, "network": 2},
		"Employee Name,Net Pay,MoMo No.,Network,Staff ID\nAma,10,0241234567,MTN MoMo,7\n": {"number": 2, "amount": 1, "network": 3, "name": 0, "reference": 4},
		"0241234567,10,MTN\n0241234568,11,MTN\n":                                          {"number": 0, "amount": 1, "network": 2},
		"Sum,Where\n10,here\n":                                                            {},
	} {
		r, err := n.receive("ama", "Salaries", []byte(text))
		if err != nil || !maps.Equal(r.Preview.Columns, want) {
			t.Errorf("%q: %v, want %v (%v)", text, r.Preview.Columns, want, err)
		}
		if len(want) == 0 {
			continue
		}
		b, err := n.confirm(r, Mapping{Columns: want})
		if err != nil {
			t.Fatal(err)
		}
		if rows, err := n.Rows(t.Context(), b.Tenant, b.ID, 1); err != nil || rows[0].State != RowReady {
			t.Errorf("%q: %+v (%v)", text, rows[0], err)
		}
	}
}

// planted returns a workbook with two sheets, a hidden row and an error.
func planted(t *testing.T) []byte {
	t.Helper()
	book := excelize.NewFile()
	rows := [][]any{{"Phone", "Network", "Amount"}, {"0240000001", "MTN", 10}, {"0240000002", "MTN", 20}, {"0240000003", "MTN"}}
	for i, row := range rows {
		if err := book.SetSheetRow("Sheet1", fmt.Sprint("A", i+1), &row); err != nil {
			t.Fatal(err)
		}
	}
	_, err := book.NewSheet("December")
	err = errors.Join(err, book.SetRowVisible("Sheet1", 3, false), book.SetCellFormula("Sheet1", "C4", "=NOW()+A1"),
		book.SetSheetRow("December", "A1", &[]any{"MSISDN", "Telco", "GHS"}), book.SetSheetRow("December", "A2", &[]any{"0240000009", "MTN", 90}))
	var out bytes.Buffer
	if err := errors.Join(err, book.Write(&out)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Hidden rows, cells with an error and other sheets are counted, and used or ignored as the person chooses.
func TestConfirm_hiddenErrorsSheets(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		columns := map[string]int{"number": 0, "network": 1, "amount": 2}
		for name, each := range map[string]struct {
			Mapping
			ready, bad int
			amount     money.Pesewas
		}{
			"keep all":    {Mapping{Columns: columns}, 2, 1, 30 * money.Cedi},
			"skip hidden": {Mapping{Columns: columns, SkipHidden: true}, 1, 1, 10 * money.Cedi},
			"skip both":   {Mapping{Columns: columns, SkipHidden: true, SkipErrors: true}, 1, 0, 10 * money.Cedi},
			"other sheet": {Mapping{Columns: columns, Sheet: "December"}, 1, 0, 90 * money.Cedi},
		} {
			r, err := n.receive("ama", name, planted(t))
			if err != nil || r.Preview.Hidden != 1 || r.Preview.Errors != 1 || !slices.Equal(r.Preview.Others, []string{"December"}) {
				t.Fatalf("%+v (%v)", r.Preview, err)
			}
			if each.Sheet != "" {
				if other, err := n.PreviewSheet(t.Context(), r, each.Sheet); err != nil || other.Preview.Sheet != each.Sheet || other.Preview.Columns["amount"] != 2 {
					t.Errorf("%+v (%v)", other.Preview, err)
				}
			}
			b, err := n.confirm(r, each.Mapping)
			if err != nil {
				t.Fatal(err)
			}
			if is, err := n.Count(t.Context(), b); err != nil || is.Rows[RowReady] != each.ready || is.Rows[RowBad] != each.bad || is.Amount != each.amount {
				t.Errorf("%s: %+v (%v); %q", name, is, err, b.Notes)
			}
		}
	})
}

// If a file is refused, or storing it is interrupted, no parts of it remain.
func TestReceive_leavesNothing(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		n := newFixture(t, d).stopped("a")
		for name, text := range map[string]string{"pdf": "%PDF-1.7", "empty": "", "a heading alone": "number,amount\n", "too many": strings.Repeat("0241234567,MTN,1\n", MaxRows+1)} {
			if _, err := n.receive("ama", "Salaries", []byte(text)); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		commits := 0
		f.Decide(func(at db.Boundary) db.Fault {
			if at == db.BoundaryCommit {
				if commits++; commits == 2 {
					return db.FaultBefore
				}
			}
			return db.FaultNone
		})
		_, err := n.receive("ama", "Salaries", []byte(file(10)))
		f.Decide(nil)
		if err == nil || n.parts() != 0 || n.countRows() != 0 {
			t.Errorf("%d parts are left (%v)", n.parts(), err)
		}
	})
}

// A person's new file replaces the previous one. If it is confirmed twice, the draft is the same.
func TestConfirm_sameFileOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := newFixture(t, d).stopped("a")
		columns := map[string]int{"name": 0, "number": 1, "network": 2, "amount": 3}
		first, err := n.receive("ama", "Salaries", []byte(file(5)))
		if err != nil {
			t.Fatal(err)
		}
		second, err := n.receive("ama", "Salaries", []byte(file(5)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.confirm(first, Mapping{Columns: columns}); !problem.Is(err, problem.NotFound) {
			t.Error(err)
		}
		b, err := n.confirm(second, Mapping{Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		again, err := n.upload("Salaries", file(5))
		if err != nil || again.ID != b.ID {
			t.Errorf("the same file is another draft (%v)", err)
		}
	})
}
