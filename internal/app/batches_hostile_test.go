package app

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
)

// workbook is an XLSX file whose sheet is a text that repeats between two others.
func workbook(t *testing.T, before, text string, times int, after string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, part := range []struct{ name, text string }{
		{"_rels/.rels", `<Relationships><Relationship Id="r1" Type="x/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
		{"xl/workbook.xml", `<workbook xmlns:r="r"><sheets><sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", `<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`},
		{"xl/worksheets/sheet1.xml", ""},
	} {
		to, err := w.Create(part.name)
		if err == nil && part.text != "" {
			_, err = io.WriteString(to, part.text)
		} else if err == nil {
			_, _ = io.WriteString(to, "<worksheet><sheetData>"+before)
			for range times / 1000 {
				_, _ = io.WriteString(to, strings.Repeat(text, 1000))
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

// storedOfFiles counts what uploads and batches store.
func (b *browsed) storedOfFiles() (n int64) {
	b.t.Helper()
	err := b.db.Read(b.t.Context(), func(tx *db.Tx) error {
		_, err := tx.One(`SELECT (SELECT count(*) FROM batches) + (SELECT count(*) FROM batch_rows) + (SELECT count(*) FROM batch_files)`, nil, &n)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// bounded runs a request with hostile content. It must be answered within five seconds, take less than 200 MB, and store nothing.
func (b *browsed) bounded(name string, request func() page) page {
	b.t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	p := request()
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	if grown := int64(after.Sys) - int64(before.Sys); took > 5*time.Second || grown > 200<<20 {
		b.t.Errorf("%s: answered after %v, with %d MB more", name, took, grown>>20)
	}
	if n := b.storedOfFiles(); n != 0 {
		b.t.Errorf("%s: %d rows are left", name, n)
	}
	return p
}

// A hostile file is refused on the upload page in a sentence, and hostile JSON by the interface. Nothing of either is stored.
func TestBatchPages_hostileFiles(t *testing.T) {
	b := browse(t)
	b.signIn(b.nextLink())
	for name, each := range map[string]struct {
		content []byte
		want    string
	}{
		"zip bomb":               {workbook(t, "", strings.Repeat(" ", 1<<10), 300<<10, ""), "unpacks to more than 200 MB"},
		"two million empty rows": {workbook(t, "", "<row/>", 2_000_000, ""), "damaged"},
		"17,000 columns":         {workbook(t, "<row>", "<c><v>1</v></c>", 17_000, "</row>"), "columns"},
		"a cell of 20 MB":        {workbook(t, "<row><c><v>", "1", 20<<20, "</v></c></row>"), "too long"},
		"a PDF":                  {[]byte("%PDF-1.7\nnumber,amount\n"), "is a PDF"},
		"formulas without rows":  {[]byte("number,amount\n"), "no rows"},
		"20 MB and one octet":    {bytes.Repeat([]byte("1"), 20<<20+1), "20 MB"},
	} {
		p := b.bounded(name, func() page { return b.sendsFile("Salaries", "salaries.csv", each.content) })
		if (p.StatusCode != http.StatusUnprocessableEntity && p.StatusCode != http.StatusRequestEntityTooLarge) || !strings.Contains(p.text, each.want) {
			t.Errorf("%s: %d, want %q: %.300s", name, p.StatusCode, each.want, p.text)
		}
	}
	row := `{"account_number": "0240000001", "channel": "MTN", "amount": 1}`
	for name, body := range map[string]string{
		"more than 4 MB":     `{"name": "Salaries", "rows": [` + strings.Repeat(row+",", 80_000) + row + `]}`,
		"too many rows":      `{"name": "Salaries", "rows": [` + strings.Repeat("{},", 100_000) + `{}]}`,
		"deep nesting":       `{"name": "Salaries", "rows": ` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"a huge exponent":    `{"name": "Salaries", "rows": [{"account_number": "0240000001", "channel": "MTN", "amount": 1e999999999}]}`,
		"a control octet":    `{"name": "Sala\u0000ries", "rows": [` + row + `]}`,
		"a row of 1 MB":      `{"name": "Salaries", "rows": [{"account_number": "` + strings.Repeat("1", 1<<20) + `", "channel": "MTN", "amount": 1}]}`,
		"no JSON":            "%PDF-1.7",
		"a formula as a sum": `{"name": "Salaries", "rows": [{"account_number": "0240000001", "channel": "MTN", "amount": "=1+1"}]}`,
	} {
		p := b.bounded(name, func() page {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.ready.APIURL+"/payment-api/batches", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("x-api-key", b.ready.APIKey)
			r.Header.Set("Content-Type", "application/json")
			return b.read(r)
		})
		if p.StatusCode < 400 || p.StatusCode >= 500 || !strings.Contains(p.text, `"message"`) {
			t.Errorf("%s: %d %.300s", name, p.StatusCode, p.text)
		}
	}
}
