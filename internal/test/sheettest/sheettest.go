// Package sheettest makes hostile files for the tests of everything that reads tables.
//
// Payouts by file and statements read the same formats. A new attack is written here once, and every reader must
// refuse it within its limits of size, memory and time.
package sheettest

import (
	"archive/zip"
	"bytes"
	"io"
	"strings"
	"testing"
)

// A File is a hostile file, with a part of the sentence that refuses it.
type File struct {
	Content []byte
	Want    string
}

// Hostile returns files that must be refused within seconds and leave nothing behind, by name.
func Hostile(t testing.TB) map[string]File {
	t.Helper()
	return map[string]File{
		"zip bomb":               {workbook(t, "", strings.Repeat(" ", 1<<10), 300<<10, ""), "unpacks to more than 200 MB"},
		"two million empty rows": {workbook(t, "", "<row/>", 2_000_000, ""), "damaged"},
		"17,000 cells in a row":  {workbook(t, "<row>", "<c><v>1</v></c>", 17_000, "</row>"), "columns"},
		"17,000 loose cells":     {workbook(t, "", "<c><v>1</v></c>", 17_000, ""), "no rows"},
		"a cell of 20 MB":        {workbook(t, "<row><c><v>", "1", 20<<20, "</v></c></row>"), "too long"},
		"a PDF":                  {[]byte("%PDF-1.7\nnumber,amount\n"), "is a PDF"},
	}
}

// workbook makes an XLSX file whose sheet is a text that repeats between two others.
func workbook(t testing.TB, before, text string, times int, after string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, part := range []struct{ name, text string }{
		{"_rels/.rels", `<Relationships><Relationship Id="r1" Type="x/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
		{"xl/workbook.xml", `<workbook xmlns:r="r"><sheets><sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`},
		{"xl/worksheets/sheet1.xml", "<worksheet><sheetData>" + before},
	} {
		to, err := w.Create(part.name)
		if err == nil {
			_, err = io.WriteString(to, part.text)
		}
		if err == nil && part.name == "xl/worksheets/sheet1.xml" {
			block := strings.Repeat(text, 1000)
			for range times / 1000 {
				_, _ = io.WriteString(to, block)
			}
			_, err = io.WriteString(to, after+"</sheetData></worksheet>")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
