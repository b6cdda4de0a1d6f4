package sheet

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
)

// paid is a row that has a value of each kind.
type paid struct {
	number, name string
	amount       int64
	count        int64
	at           time.Time
}

var paidColumns = []Column[paid]{
	{"number", func(p paid) Value { return String(p.number) }},
	{"name", func(p paid) Value { return String(p.name) }},
	{"amount", func(p paid) Value { return Amount(p.amount) }},
	{"count", func(p paid) Value { return Integer(p.count) }},
	{"at", func(p paid) Value { return Time(p.at) }},
	{"day", func(p paid) Value { return Day(p.at) }},
}

var noon = time.Date(2026, 11, 26, 12, 34, 56, 0, time.UTC)

// hostile are rows with values that spreadsheet programs would change or run.
var hostile = []paid{
	{"0241000001", "Ama;=1+2;x", 1250, 7, noon},
	{"0012345678901234", "=HYPERLINK(\"http://evil.example\")", -5, -1, noon.Add(11 * time.Hour)},
	{"1E5", "1/2", 0, most, time.Time{}},
	{"+233241000001", "two\nlines, \"quoted\"", most, 0, noon},
	{"", "_x0041_ Akɔsua\x00\u202e <b>&amp;", most + 1, most + 1, noon},
}

// written returns a file of rows.
func written[T any](t testing.TB, format Format, columns []Column[T], rows []T) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, format, columns)
	for i := 0; err == nil && i < len(rows); i++ {
		err = w.Write(rows[i])
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// CSV is for programs. It has a byte order mark and CR LF. Every text is quoted and made inert; numbers and times are
// written as they are.
func TestWriter_csv(t *testing.T) {
	t.Parallel()
	const want = markUTF8 + `"number","name","amount","count","at","day"` + "\r\n" +
		`"0241000001","Ama;'=1+2;x",12.50,7,2026-11-26T12:34:56Z,2026-11-26` + "\r\n" +
		`"0012345678901234","'=HYPERLINK(""http://evil.example"")",-0.05,-1,2026-11-26T23:34:56Z,2026-11-26` + "\r\n" +
		`"1E5","1/2",0.00,999999999999999,,` + "\r\n" +
		`"'+233241000001","two` + "\n" + `lines, ""quoted""",9999999999999.99,0,2026-11-26T12:34:56Z,2026-11-26` + "\r\n" +
		`"","_x0041_ Akɔsua` + "\ufffd\ufffd" + ` <b>&amp;",10000000000000.00,1000000000000000,2026-11-26T12:34:56Z,2026-11-26` + "\r\n"
	if got := string(written(t, CSV, paidColumns, hostile)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// No cell separator in a text, with or without quotes and spaces after it, turns a part of the text into a formula.
func TestInert_noFormulaRemains(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "Ama": "Ama", "a=b": "a=b", "a - b": "a - b", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@A": "'@A", "|x": "'|x", "%x": "'%x", "\uff1d1": "'\uff1d1",
		"a;=1": "a;'=1", "a,=1": "a,'=1", "a|=1": "a|'=1", "a\t=1": "a\t'=1", "a\n=1": "a\n'=1", "a;;-1": "a;;'-1", "a; =1": "a; '=1", "a;\u00a0@1": "a;\u00a0'@1",
		`a;"=1"`: `a;"'=1"`, `" =1`: `" '=1`, "'=1": "'=1", "==1": "'==1", "a|b": "a|b", "a;'=1;+2": "a;'=1;'+2",
	} {
		if got := inert(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// FuzzInert splits a text at any separator. No part begins with a formula, even without spaces and quotes.
func FuzzInert(f *testing.F) {
	f.Add("Ama;=1+2;x")
	f.Add("\"\t\" -1|+")
	f.Fuzz(func(t *testing.T, text string) {
		made := inert(text)
		for part := range strings.FieldsFuncSeq(made, func(r rune) bool { return strings.ContainsRune(dividers, r) }) {
			bare := strings.TrimLeft(part, " \u00a0\"")
			if bare != "" && strings.ContainsRune(strings.ReplaceAll(formulas, "|", ""), []rune(bare)[0]) {
				t.Errorf("%q of %q", part, made)
			}
		}
	})
}

// wantBook checks a workbook of the rows hostile with a library other than our writer.
func wantBook(t *testing.T, file []byte, saved bool) {
	t.Helper()
	book, err := excelize.OpenReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	name := book.GetSheetName(0)
	for cell, want := range map[string]string{
		"A1": "number", "A2": "0241000001", "B2": "Ama;=1+2;x", "A3": "0012345678901234", "B3": "=HYPERLINK(\"http://evil.example\")", "A4": "1E5", "B4": "1/2",
		"A5": "+233241000001", "B5": "two\nlines, \"quoted\"",
		"C2": "12.5", "C3": "-0.05", "D2": "7", "D3": "-1", "C6": "10000000000000.00", "D6": "1000000000000000",
	} {
		got, err := book.GetCellValue(name, cell, excelize.Options{RawCellValue: true})
		if err != nil || strings.TrimSuffix(got, "0") != strings.TrimSuffix(want, "0") {
			t.Errorf("%s is %q, want %q; %v", cell, got, want, err)
		}
	}
	for cell, kind := range map[string]bool{"A2": true, "B2": true, "A3": true, "B3": true, "A4": true, "B4": true, "C2": false, "D2": false, "E2": false, "F2": false, "C6": true} {
		got, err := book.GetCellType(name, cell)
		if isText := got == excelize.CellTypeSharedString || got == excelize.CellTypeInlineString; err != nil || isText != kind {
			t.Errorf("%s is a text: %v, %v", cell, isText, err)
		}
	}
	rows, _, err := read(t, file, Options{Columns: map[string]string{"phone_number": "number", "first_name": "name"}})
	if err != nil || len(rows) != len(hostile) {
		t.Errorf("read by ourselves: %q, %v", rows, err)
	}
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.File {
		if !strings.HasPrefix(f.Name, "xl/worksheets/") {
			continue
		}
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(part)
		if err != nil || bytes.Contains(text, []byte("<f")) {
			t.Errorf("%s holds a formula: %v", f.Name, err)
		}
	}
	if saved {
		return
	}
	for cell, want := range map[string]string{"E2": "2026-11-26T12:34:56", "F2": "2026-11-26T00:00:00", "E3": "2026-11-26T23:34:56", "E4": ""} {
		if got := cellAt(t, file, cell); got.Text != want || want != "" && got.Kind != Date {
			t.Errorf("%s is %+v, want %s", cell, got, want)
		}
	}
}

// cellAt reads one cell of columns A to Z.
func cellAt(t *testing.T, file []byte, name string) Cell {
	t.Helper()
	f, err := Open(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := f.book.open(f.book.sheets[0])
	if err != nil {
		t.Fatal(err)
	}
	for {
		one, err := rows.next()
		if err != nil {
			t.Fatal(err)
		}
		if column := int(name[0] - 'A'); fmt.Sprint(one.line) == name[1:] {
			return append(one.cells, make([]Cell, 26)...)[column]
		}
	}
}

// XLSX is for people. Texts of digits stay texts, amounts are numbers, times are dates, and nothing is a formula.
func TestWriter_xlsx(t *testing.T) {
	t.Parallel()
	wantBook(t, written(t, XLSX, paidColumns, hostile), false)
}

// Our own reader gets the same table from both formats.
func TestWriter_bothFormats(t *testing.T) {
	t.Parallel()
	columns := []Column[paid]{{"Phone No.", paidColumns[0].Value}, {"Name", paidColumns[1].Value}, {"amount", paidColumns[2].Value}}
	rows := []paid{{number: "0241000001", name: "Ama, K."}, {number: "0241000002", name: " _x0041_ \"x\""}, {number: "0241000003"}}
	text, _, err := read(t, written(t, CSV, columns, rows), Options{})
	if err != nil {
		t.Fatal(err)
	}
	book, _, err := read(t, written(t, XLSX, columns, rows), Options{})
	if err != nil || !slices.Equal(text, book) || text[0] != "2 0241000001 Ama, K." {
		t.Errorf("%q and %q, %v", text, book, err)
	}
}

// 100,000 rows are written in bounded memory.
func TestWriter_memory(t *testing.T) {
	for _, format := range []Format{CSV, XLSX} {
		before, most := liveHeap(), uint64(0)
		w, err := NewWriter(io.Discard, format, paidColumns)
		for i := 0; err == nil && i < MaxRows; i++ {
			err = w.Write(paid{fmt.Sprintf("024%07d", i), fmt.Sprint("Ama Mensah the ", i), int64(i), int64(i), noon})
			if i%25_000 == 0 {
				most = max(most, liveHeap())
			}
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil || most > before+mostHeap/2 {
			t.Errorf("%s: the heap grew by %d bytes, %v", format, most-before, err)
		}
	}
}

// failing is a writer like a client that has disconnected.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("gone")
	}
	return len(p), nil
}

// If the client disconnects at any byte, writing the file ends with an error.
func TestWriter_reportsErrors(t *testing.T) {
	t.Parallel()
	for _, format := range []Format{CSV, XLSX} {
		for left := 0; left < 300_000; left += 99_999 {
			w, err := NewWriter(&failing{left}, format, paidColumns)
			for i := 0; err == nil && i < 50_000; i++ {
				err = w.Write(paid{number: fmt.Sprintf("%x", uint64(i)*0x9e3779b97f4a7c15), at: noon})
			}
			if err == nil {
				err = w.Close()
			}
			if err == nil {
				t.Errorf("%s: a client that took %d bytes got the whole file", format, left)
			}
		}
	}
}

// LibreOffice opens our files and saves them. Leading zeros stay, and nothing becomes a formula, whichever separator
// it uses for a CSV file.
func TestLibreOffice_opensAndSaves(t *testing.T) {
	if testing.Short() {
		t.Skip("starts LibreOffice")
	}
	office, err := exec.LookPath("soffice")
	if err != nil {
		t.Skip("LibreOffice is not installed: apt-get install libreoffice-calc-nogui")
	}
	convert := func(file, to string, more ...string) string {
		folder := t.TempDir()
		args := append([]string{"--headless", "-env:UserInstallation=file://" + t.TempDir(), "--convert-to", to, "--outdir", folder}, more...)
		out, err := exec.CommandContext(t.Context(), office, append(args, file)...).CombinedOutput()
		found, _ := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%v: %s", err, out)
		}
		return found[0]
	}
	folder := t.TempDir()
	book, text := filepath.Join(folder, "payouts.xlsx"), filepath.Join(folder, "payouts.csv")
	if err := errors.Join(os.WriteFile(book, written(t, XLSX, paidColumns, hostile), 0o600), os.WriteFile(text, written(t, CSV, paidColumns, hostile), 0o600)); err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(convert(book, "xlsx:Calc MS Excel 2007 XML"))
	if err != nil {
		t.Fatal(err)
	}
	wantBook(t, saved, true)
	for _, divider := range []rune{',', ';', '\t', '|'} {
		saved, err := os.ReadFile(convert(text, "xlsx:Calc MS Excel 2007 XML", fmt.Sprintf("--infilter=CSV:%d,34,76", divider)))
		if err != nil {
			t.Fatal(err)
		}
		archive, err := zip.NewReader(bytes.NewReader(saved), int64(len(saved)))
		if err != nil {
			t.Fatal(err)
		}
		sheet, err := archive.Open("xl/worksheets/sheet1.xml")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(sheet); err != nil || bytes.Contains(text, []byte("<f")) {
			t.Errorf("divided by %q: a formula, %v: %s", divider, err, text)
		}
	}
}

// encoding/csv can read our CSV, as the libraries of other languages can.
func TestWriter_readByOthers(t *testing.T) {
	t.Parallel()
	file := strings.TrimPrefix(string(written(t, CSV, paidColumns, hostile)), markUTF8)
	rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	if err != nil || len(rows) != len(hostile)+1 || rows[4][1] != "two\nlines, \"quoted\"" {
		t.Errorf("%q, %v", rows, err)
	}
}
