package app

import (
	"bytes"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/test/sheettest"
)

// storedOfFiles counts the rows that uploads and batches have stored.
func (b *browsed) storedOfFiles() (n int64) {
	b.t.Helper()
	_, err := b.db.ReadOne(b.t.Context(), `SELECT (SELECT count(*) FROM batches) + (SELECT count(*) FROM batch_rows) + (SELECT count(*) FROM batch_files)`, nil, &n)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// bounded sends a request with hostile content. The request must be answered within five seconds, use less than 200 MB, and store
// nothing.
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

// The upload page refuses a hostile file with one sentence, and the interface refuses hostile JSON. Nothing is stored.
func TestBatchPages_hostileFiles(t *testing.T) {
	b := browse(t)
	b.signIn(b.nextLink())
	files := sheettest.Hostile(t)
	files["formulas without rows"] = sheettest.File{Content: []byte("number,amount\n"), Want: "no rows"}
	files["20 MB and one octet"] = sheettest.File{Content: bytes.Repeat([]byte("1"), 20<<20+1), Want: "20 MB"}
	for name, each := range files {
		p := b.bounded(name, func() page { return b.sendsFile("Salaries", "salaries.csv", each.Content) })
		if (p.StatusCode != http.StatusUnprocessableEntity && p.StatusCode != http.StatusRequestEntityTooLarge) || !strings.Contains(p.text, each.Want) {
			t.Errorf("%s: %d, want %q: %.300s", name, p.StatusCode, each.Want, p.text)
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
