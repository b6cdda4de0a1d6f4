package sheet

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"github.com/makola/makola/internal/problem"
)

// mostHeap is the maximum memory that a table may use at any moment, whatever its file contains.
const mostHeap = 8 << 20

// liveHeap returns the bytes in use.
func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// oneHundredThousand returns a file with MaxRows rows.
func oneHundredThousand(t *testing.T, workbook bool) []byte {
	t.Helper()
	var out bytes.Buffer
	if !workbook {
		out.WriteString("phone,number,first_name,email\n")
		for i := range MaxRows {
			fmt.Fprintf(&out, "024%07d,%d,Ama Mensah the %d,ama%d@example.com\n", i, i, i, i)
		}
		return out.Bytes()
	}
	book := excelize.NewFile()
	w, err := book.NewStreamWriter("Sheet1")
	if err != nil {
		t.Fatal(err)
	}
	_ = w.SetRow("A1", []any{"phone", "number", "first_name", "email"})
	for i := range MaxRows {
		if err := w.SetRow(fmt.Sprintf("A%d", i+2), []any{fmt.Sprintf("024%07d", i), i, fmt.Sprint("Ama Mensah the ", i), fmt.Sprintf("ama%d@example.com", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(), book.Write(&out)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// 100,000 rows are read in bounded memory, both while the columns are chosen and while the rows are used.
func TestTable_memory(t *testing.T) {
	for name, workbook := range map[string]bool{"CSV": false, "XLSX": true} {
		file := oneHundredThousand(t, workbook)
		before, most, calls := liveHeap(), uint64(0), 0
		sample := func() {
			if calls++; calls%50_000 == 1 {
				most = max(most, liveHeap())
			}
		}
		form := Form{Fields: slices.Clone(people.Fields)}
		form.Fields[0].Looks = func(text string) bool {
			sample()
			return phone.MatchString(text)
		}
		f, err := Open(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		table, err := f.Table(form, Options{})
		if err != nil || table.Rows != MaxRows || len(table.Choices) != 1 {
			t.Fatalf("%s: %v, %+v", name, err, table)
		}
		for range MaxRows {
			if row, err := table.Next(); err != nil || len(row.Cell("phone_number").Text) != 10 {
				t.Fatalf("%s: %+v, %v", name, row, err)
			}
			sample()
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		runtime.KeepAlive(file)
		if calls < 3*MaxRows || most > before+mostHeap {
			t.Errorf("%s: the heap grew by %d bytes in %d looks", name, most-before, calls)
		}
		t.Logf("%s: %d bytes", name, int64(most)-int64(before))
	}
}

// A workbook that is very large when unpacked is refused before it is unpacked.
func TestOpen_bombs(t *testing.T) {
	part := func(name, text string) []byte {
		all := parts(heading)
		all[name] = text
		return zipped(t, all)
	}
	entries := map[string]string{}
	for i := range 30_000 {
		entries[fmt.Sprint("an entry of no bytes with a long name ", i)] = ""
	}
	for name, each := range map[string]struct {
		file []byte
		says string
	}{
		"4 GB are declared":    {declared(t, 4<<30), "more than 200 MB"},
		"more than declared":   {declared(t, 100), "damaged"},
		"a cell of 4 MB":       {part("xl/worksheets/sheet1.xml", "<worksheet><sheetData><row><c><v>"+strings.Repeat("1", 4<<20)+"</v></c></row></sheetData></worksheet>"), "too long"},
		"an attribute of 4 MB": {part("xl/workbook.xml", `<workbook a="`+strings.Repeat("1", 4<<20)+`"/>`), "too long"},
		"a deep sheet":         {part("xl/worksheets/sheet1.xml", "<worksheet>"+strings.Repeat("<c>", 1<<20)+strings.Repeat("</c>", 1<<20)+"</worksheet>"), "damaged"},
		"a deep text":          {part("xl/sharedStrings.xml", "<sst><si>"+strings.Repeat("<t>", 1<<20)+strings.Repeat("</t>", 1<<20)+"</si></sst>"), "damaged"},
		"many texts":           {part("xl/sharedStrings.xml", "<sst>"+strings.Repeat("<si/>", maxTexts+1)+"</sst>"), "different texts"},
		"many sheets":          {part("xl/workbook.xml", `<workbook xmlns:r="r"><sheets>`+strings.Repeat(`<sheet r:id="r1"/>`, maxSheets+1)+"</sheets></workbook>"), "damaged"},
		"many entries":         {zipped(t, entries), "damaged"},
		"an entity":            {part("xl/sharedStrings.xml", `<!DOCTYPE s [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><sst><si><t>&b;</t></si></sst>`), "damaged"},
		"a column too far":     {part("xl/worksheets/sheet1.xml", `<worksheet><sheetData><row><c r="ZZZ1"><v>1</v></c></row></sheetData></worksheet>`), "damaged"},
		"201 columns":          {workbookOf(t, `<row><c r="GS1"><v>1</v></c></row>`), "more than 200 columns"},
		"a row too far":        {workbookOf(t, `<row r="1048577"><c><v>1</v></c></row>`), "damaged"},
	} {
		before := liveHeap()
		_, _, err := read(t, each.file, Options{})
		after := liveHeap()
		if !problem.Is(err, problem.Invalid) || !strings.Contains(fmt.Sprint(err), each.says) {
			t.Errorf("%s: %v, want %q", name, err, each.says)
		}
		if after > before+mostHeap {
			t.Errorf("%s: the heap grew by %d bytes", name, after-before)
		}
	}
}

// declared returns a workbook whose sheet is 1,000,000 spaces, but declares another size.
func declared(t *testing.T, size uint64) []byte {
	t.Helper()
	text := parts("")
	delete(text, "xl/worksheets/sheet1.xml")
	var packed, out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range text {
		part, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(part, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	inner := zip.NewWriter(&packed)
	sheet := "<worksheet>" + strings.Repeat(" ", 1_000_000) + "</worksheet>"
	part, err := inner.Create("x")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(part, sheet)
	if err := inner.Close(); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := archive.File[0].OpenRaw()
	if err != nil {
		t.Fatal(err)
	}
	to, err := w.CreateRaw(&zip.FileHeader{Name: "xl/worksheets/sheet1.xml", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE([]byte(sheet)),
		CompressedSize64: archive.File[0].CompressedSize64, UncompressedSize64: size})
	if err == nil {
		_, err = io.Copy(to, raw)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzOpen reads any file. The result is rows or a refusal, never a panic or an internal error.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("phone,name\n0241000001,\"Ama\n"))
	f.Add([]byte("sep=;\nphone;name\n=\"0241000001\";Ama\n"))
	f.Add([]byte("\xff\xfep\x00h\x00o\x00n\x00e\x00\n\x00"))
	f.Add([]byte(compoundFile))
	f.Add(workbookOf(f, heading+`<row><c t="s"><v>1</v></c><c s="1"><v>45000</v></c></row>`))
	f.Fuzz(func(t *testing.T, file []byte) {
		if rows, report, err := read(t, file, Options{}); err != nil && !problem.Is(err, problem.Invalid) {
			t.Errorf("%v after %d rows of %+v", err, len(rows), report)
		}
	})
}

// FuzzSheetXML reads any sheet in a valid workbook. FuzzOpen seldom gets so far, because archives have checksums.
func FuzzSheetXML(f *testing.F) {
	f.Add(`<row r="2" hidden="1"><c r="A2" t="s"><v>1</v></c><c r="C2" t="e"><v>#N/A</v></c></row>`)
	f.Add(`<row><c t="inlineStr"><is><r><t>a</t></r></is></c><c><f>1</f><v>2.5E+3</v></c><c s="1"><v>59.5</v></c></row>`)
	f.Fuzz(func(t *testing.T, sheet string) {
		if _, _, err := read(t, workbookOf(t, heading+sheet), Options{}); err != nil && !problem.Is(err, problem.Invalid) {
			t.Error(err)
		}
	})
}

// FuzzSameTable reads one table as CSV and as XLSX. The rows must be equal.
func FuzzSameTable(f *testing.F) {
	f.Add("0241000001\tAma\n\n0241000002\t=\"x\"\tkofi@example.com\n")
	f.Add(" 0241000003 \t_x0041_ \"quoted\", and; so on\n'\t\t\n")
	f.Fuzz(func(t *testing.T, table string) {
		if len(table) > maxCell || !utf8.ValidString(table) || strings.ContainsFunc(table, notInXML) {
			t.Skip()
		}
		rows := [][]string{{"phone", "first_name", "email"}}
		for _, line := range strings.Split(table, "\n") {
			rows = append(rows, strings.Split(line, "\t")[:min(3, strings.Count(line, "\t")+1)])
		}
		var text, book bytes.Buffer
		out := csv.NewWriter(&text)
		if err := out.WriteAll(rows); err != nil {
			t.Fatal(err)
		}
		file := excelize.NewFile()
		for i, row := range rows {
			for j, value := range row {
				name, _ := excelize.CoordinatesToCellName(j+1, i+1)
				if err := file.SetCellStr("Sheet1", name, escape.ReplaceAllString(value, "_x005F$0")); err != nil {
					t.Skip(err)
				}
			}
		}
		if err := file.Write(&book); err != nil {
			t.Fatal(err)
		}
		fromText, a, err := read(t, text.Bytes(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		fromBook, b, err := read(t, book.Bytes(), Options{})
		if err != nil || !slices.Equal(withoutLines(fromText), withoutLines(fromBook)) || a.Rows != b.Rows {
			t.Errorf("%q and %q, %v", fromText, fromBook, err)
		}
	})
}

func notInXML(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' || r >= 0xfffd }

func withoutLines(rows []string) []string {
	texts := make([]string, len(rows))
	for i, row := range rows {
		_, texts[i], _ = strings.Cut(row, " ")
	}
	return texts
}
