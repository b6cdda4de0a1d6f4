package console

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/makola/makola/internal/sheet"
)

// A file has at most 100,000 rows. If there are more, its last line reports this.
func TestExported_stopsAtTheLimit(t *testing.T) {
	t.Parallel()
	columns := []Column[int64]{{Name: "n", Value: sheet.Integer}}
	for path, count := range map[string]func(*testing.T, []byte) string{
		"/ops/payments.csv": func(_ *testing.T, file []byte) string { return string(file) },
		"/ops/payments.xlsx": func(t *testing.T, file []byte) string {
			archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
			if err != nil {
				t.Fatal(err)
			}
			part, err := archive.Open("xl/worksheets/sheet1.xml")
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(part)
			if err != nil {
				t.Fatal(err)
			}
			return strings.ReplaceAll(string(text), "</row>", "\r\n")
		},
	} {
		for _, tt := range []struct{ has, rows, asked int }{{100_000, 100_001, 100_000}, {100_001, 100_002, 100_001}, {200_000, 100_002, 100_001}} {
			v, w, asked := &Visit{Route: &Route{Path: path}}, httptest.NewRecorder(), 0
			a := Exported(v, "payments", columns, func(each func(int64) error) error {
				for asked < tt.has {
					asked++
					if err := each(int64(asked)); err != nil {
						return err
					}
				}
				return nil
			})
			if err := a.Write(w); err != nil {
				t.Fatal(err)
			}
			text := count(t, w.Body.Bytes())
			if rows := strings.Count(text, "\r\n"); rows != tt.rows || asked != tt.asked || strings.Contains(text, "This file is not complete") != (tt.has > 100_000) {
				t.Errorf("%s: %d rows of %d, after %d", path, rows, tt.has, asked)
			}
		}
	}
}

// The name of a file is made from an account's name, whatever characters it contains.
func TestFileName_fromAnyAccountName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Kejetia Traders & Co.": "kejetia-traders-co", "../../etc": "etc", "a\"b\r\nX: y": "a-b-x-y", "Akɔsua": "ak-sua", "\u202e": "", strings.Repeat("ab ", 40): strings.TrimSuffix(strings.Repeat("ab-", 13), "-") + "-a",
	} {
		if got := fileWord(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
