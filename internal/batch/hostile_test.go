package batch

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// packed makes a workbook whose sheet is written by a function.
func packed(t *testing.T, sheet func(io.Writer)) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, part := range []struct{ name, text string }{
		{"_rels/.rels", `<Relationships><Relationship Id="r1" Type="x/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
		{"xl/workbook.xml", `<workbook xmlns:r="r"><sheets><sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`},
	} {
		to, err := w.Create(part.name)
		if err == nil {
			_, err = io.WriteString(to, part.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	to, err := w.Create("xl/worksheets/sheet1.xml")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(to, "<worksheet><sheetData>")
	sheet(to)
	_, _ = io.WriteString(to, "</sheetData></worksheet>")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A hostile file is refused by one sentence, within seconds, and leaves nothing in the database.
func TestReceive_hostileFiles(t *testing.T) {
	n := newFixture(t, dbtest.Open(t, db.SQLite)).stopped("a")
	many := func(text string, times int) func(io.Writer) {
		return func(to io.Writer) {
			block := strings.Repeat(text, 1000)
			for range times / 1000 {
				_, _ = io.WriteString(to, block)
			}
		}
	}
	for name, each := range map[string]struct {
		content []byte
		want    string
	}{
		"zip bomb":               {packed(t, many(strings.Repeat(" ", 1<<10), 300<<10)), "unpacks to more than 200 MB"},
		"two million empty rows": {packed(t, many("<row/>", 2_000_000)), "damaged"},
		"17,000 columns":         {packed(t, func(to io.Writer) { many("<c><v>1</v></c>", 17_000)(to) }), "no rows"},
		"17,000 cells in a row": {packed(t, func(to io.Writer) {
			_, _ = io.WriteString(to, "<row>")
			many("<c><v>1</v></c>", 17_000)(to)
			_, _ = io.WriteString(to, "</row>")
		}), "columns"},
		"a cell of 20 MB": {packed(t, func(to io.Writer) {
			_, _ = io.WriteString(to, "<row><c><v>")
			many("1", 20<<20)(to)
			_, _ = io.WriteString(to, "</v></c></row>")
		}), "too long"},
		"a PDF named .csv": {[]byte("%PDF-1.7\nnumber,amount\n"), "is a PDF"},
	} {
		begun := time.Now()
		_, err := n.receive("ama", "Salaries", each.content)
		if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), each.want) {
			t.Errorf("%s: %v, want %q", name, err, each.want)
		}
		if n.parts() != 0 || n.countRows() != 0 {
			t.Errorf("%s: %d parts and %d rows are left", name, n.parts(), n.countRows())
		}
		t.Logf("%s: %s, %v", name, time.Since(begun).Round(time.Millisecond), err)
	}
}
