package sheet

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/makola/makola/internal/problem"
)

var phone = regexp.MustCompile(`^'?(0|\+?233)?[25][0-9]{8}(\.0)?$`)

// people is a form like that for contacts.
var people = Form{Fields: []Field{
	{Name: "phone_number", Required: true, Looks: phone.MatchString, Headings: []string{"phone", "phone no", "mobile number", "mobile phone", "phone 1 value", "number", "contact"}},
	{Name: "first_name", Headings: []string{"name"}},
	{Name: "email"},
}}

// read returns the rows of a file as texts with line, phone number and name. A bad row is its line and a question
// mark.
func read(t testing.TB, file []byte, o Options) (rows []string, report Report, err error) {
	t.Helper()
	f, err := Open(bytes.NewReader(file))
	if err != nil {
		return nil, report, err
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	table, err := f.Table(people, o)
	if err != nil {
		return nil, report, err
	}
	for {
		row, err := table.Next()
		var bad *BadRow
		switch {
		case errors.Is(err, io.EOF):
			if len(rows) != table.Rows {
				t.Errorf("%d rows were counted, and %d read", table.Rows, len(rows))
			}
			return rows, table.Report, nil
		case errors.As(err, &bad):
			rows = append(rows, fmt.Sprintf("%d ?", bad.Line))
			continue
		case err != nil:
			return rows, table.Report, err
		}
		number, err := row.Text("phone_number")
		if err != nil {
			rows = append(rows, fmt.Sprintf("%d ?", row.Line))
			continue
		}
		name, _ := row.Text("first_name")
		rows = append(rows, strings.TrimSpace(fmt.Sprintf("%d %s %s", row.Line, number, name)))
	}
}

func utf16Text(t *testing.T, order unicode.Endianness, mark unicode.BOMPolicy, text string) string {
	t.Helper()
	out, err := unicode.UTF16(order, mark).NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A text file is read whatever program wrote it.
func TestTable_textForms(t *testing.T) {
	t.Parallel()
	latin, err := charmap.Windows1252.NewEncoder().String("phone,name\n0241000001,Zoé\n")
	if err != nil {
		t.Fatal(err)
	}
	const plain = "Phone,Name\n0241000001,Akɔsua\n"
	for name, each := range map[string]struct{ file, rows string }{
		"comma":                {plain, "2 0241000001 Akɔsua"},
		"semicolon":            {"Phone;Name\r\n0241000001;Ama\r\n", "2 0241000001 Ama"},
		"tab":                  {"phone\tname\n0241000001\tAma, the first\n", "2 0241000001 Ama, the first"},
		"an empty cell by tab": {"name\tphone\n\t0241000001\n", "2 0241000001"},
		"sep":                  {"sep=;\r\nPhone;Name\r\n0241000001;Ama, the first\r\n", "3 0241000001 Ama, the first"},
		"sep in quotes":        {"\"sep=;\"\nPhone;Name\n0241000001;Ama\n", "3 0241000001 Ama"},
		"mark":                 {markUTF8 + plain, "2 0241000001 Akɔsua"},
		"UTF-16 LE":            {utf16Text(t, unicode.LittleEndian, unicode.UseBOM, plain), "2 0241000001 Akɔsua"},
		"UTF-16 BE":            {utf16Text(t, unicode.BigEndian, unicode.UseBOM, plain), "2 0241000001 Akɔsua"},
		"LE without a mark":    {utf16Text(t, unicode.LittleEndian, unicode.IgnoreBOM, plain), "2 0241000001 Akɔsua"},
		"BE without a mark":    {utf16Text(t, unicode.BigEndian, unicode.IgnoreBOM, plain), "2 0241000001 Akɔsua"},
		"Windows-1252":         {latin, "2 0241000001 Zoé"},
		"UTF-8 with a bad row": {"phone,name\n0241000001,Akɔsua\n0241000002,\xff\n", "2 0241000001 Akɔsua|3 ?"},
		"quoted heading":       {"\"Name, in full\",\"Phone\"\n\"Mensah, Ama\",0241000001\n", "2 0241000001"},
		"heading over lines":   {"\"Phone\nNo.\",Name\n0241000001,Ama\n", "3 0241000001 Ama"},
		"no heading":           {"0241000001;Mensah, Ama\n", "1 0241000001 Mensah, Ama"},
		"a longer row":         {"0241000001\n0241000002,Kofi\n", "1 0241000001|2 0241000002 Kofi"},
		"key not first":        {"Ama,0241000001\nKofi,0241000002\n", "1 0241000001 Ama|2 0241000002 Kofi"},
		"empty rows":           {"phone,name\n,\n\n ,\n0241000001,Ama\n,,,\n", "5 0241000001 Ama"},
		"ends of CR":           {"phone,name\r0241000001,Ama\r", "2 0241000001 Ama"},
		"a formula of text":    {"phone,name\n=\"0241000001\",\"Ama, K.\"\n\"=\"\"0241000002\"\"\",Kofi\n", "2 0241000001 Ama, K.|3 0241000002 Kofi"},
		"a quote left open":    {"phone,name\n0241000001,\"Ama\n0241000002,Kofi\n", "2 ?|3 0241000002 Kofi"},
		"a field of lines":     {"phone,name\n0241000001,\"Ama\n\nMensah\"\n0241000002,Kofi\n", "2 0241000001 Ama\n\nMensah|5 0241000002 Kofi"},
		"a line too long":      {"phone\n0241000001\n" + strings.Repeat("x", maxLine+1) + "\n0241000002\n", "2 0241000001|3 ?|4 0241000002"},
		"too many columns":     {"phone\n0241000001" + strings.Repeat(",", MaxColumns) + "\n0241000002\n", "2 ?|3 0241000002"},
	} {
		rows, _, err := read(t, []byte(each.file), Options{})
		if got := strings.Join(rows, "|"); err != nil || got != each.rows {
			t.Errorf("%s: %q, want %q; %v", name, got, each.rows, err)
		}
	}
}

// A column is found by any of its headings. If several columns match, the one with the most numbers is taken, and the
// choice is reported.
func TestTable_headings(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]struct {
		file    string
		columns map[string]string
		rows    string
		note    string
	}{
		"Phone No.":         {"Phone No.,Name\n0241000001,Ama\n", nil, "2 0241000001 Ama", ""},
		"Mobile Number":     {"Name,Mobile Number\nAma,0241000001\n", nil, "2 0241000001 Ama", ""},
		"Mobile Phone":      {"MOBILE  PHONE,Name\n0241000001,Ama\n", nil, "2 0241000001 Ama", ""},
		"Google":            {"Name,Phone 1 - Type,Phone 1 - Value\nAma,Mobile,0241000001\n", nil, "2 0241000001 Ama", ""},
		"Contact":           {"Contact,Name\n0241000001,Ama\n", nil, "2 0241000001 Ama", ""},
		"Contact and Phone": {"Contact,Phone\nAma,0241000001\n", nil, "2 0241000001", `phone_number is read from "Phone", not from "Contact"`},
		"Number and Phone":  {"Phone,Number\nSamsung,0241000001\nTecno,0241000002\n", nil, "2 0241000001|3 0241000002", `phone_number is read from "Number", not from "Phone"`},
		"a tie":             {"Number,Phone\n0241000001,0241000002\n", nil, "2 0241000002", `phone_number is read from "Phone", not from "Number"`},
		"given":             {"Cell,Name,Phone\n0241000001,Ama,Nokia\n", map[string]string{"phone_number": "cell"}, "2 0241000001 Ama", ""},
		"given to another":  {"Phone,Name,Nick\n0241000001,Mensah,Ama\n", map[string]string{"first_name": "Nick", "email": "Name"}, "2 0241000001 Ama", ""},
	} {
		rows, report, err := read(t, []byte(each.file), Options{Columns: each.columns})
		if got := strings.Join(rows, "|"); err != nil || got != each.rows || strings.Join(report.Notes(), "|") != each.note {
			t.Errorf("%s: %q, want %q; %q; %v", name, got, each.rows, report.Notes(), err)
		}
	}
}

// zipped returns an archive of parts.
func zipped(t testing.TB, parts map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range parts {
		part, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(part, text)
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

// parts returns the parts of a workbook with one sheet.
func parts(sheet string) map[string]string {
	const relation = `<Relationship Id="%s" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/>`
	return map[string]string{
		"_rels/.rels":     "<Relationships>" + fmt.Sprintf(relation, "r1", "officeDocument", "xl/workbook.xml") + "</Relationships>",
		"xl/workbook.xml": `<workbook xmlns:r="r"><sheets><sheet name="One" sheetId="1" r:id="r1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": "<Relationships>" + fmt.Sprintf(relation, "r1", "worksheet", "worksheets/sheet1.xml") +
			fmt.Sprintf(relation, "r2", "sharedStrings", "/xl/sharedStrings.xml") + fmt.Sprintf(relation, "r3", "styles", "styles.xml") + "</Relationships>",
		"xl/sharedStrings.xml": `<sst><si><t>Phone</t></si><si><r><t>0241</t></r><r><t>000001</t></r><rPh><t>x</t></rPh></si></sst>`,
		"xl/styles.xml": `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[Red]dd\ mmm;@"/><numFmt numFmtId="165" formatCode="0.00&quot; days&quot;"/></numFmts>
			<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>`,
		"xl/worksheets/sheet1.xml": `<worksheet><sheetData>` + sheet + `</sheetData><mergeCells><row><c><v>1</v></c></row></mergeCells></worksheet>`,
	}
}

func workbookOf(t testing.TB, sheet string) []byte { return zipped(t, parts(sheet)) }

const heading = `<row><c t="s"><v>0</v></c><c t="inlineStr"><is><t>Name</t></is></c></row>`

// The value of a workbook's cell is its stored value. A value that a spreadsheet has damaged is refused.
func TestTable_storedValues(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		`<c t="s"><v>1</v></c>`:                                             "2 0241000001",
		`<c t="str"><f>A1</f><v>0241000002</v></c>`:                         "2 0241000002",
		`<c><v>241000001</v></c>`:                                           "2 241000001",
		`<c><v>233241000001.0</v></c>`:                                      "2 233241000001",
		`<c><v>2.33241000001E+11</v></c>`:                                   "2 233241000001",
		`<c><v>2.33E+11</v></c>`:                                            "2 ?",
		`<c><v>1234567890123456</v></c>`:                                    "2 ?",
		`<c t="inlineStr"><is><t>1234567890123456</t></is></c>`:             "2 1234567890123456",
		`<c><v>1200.1000000000001</v></c>`:                                  "2 1200.1",
		`<c><v>-0.30000000000000004</v></c>`:                                "2 -0.3",
		`<c><v>1.5E-3</v></c>`:                                              "2 0.0015",
		`<c s="1"><v>45000</v></c>`:                                         "2 ?",
		`<c s="2"><v>45000</v></c>`:                                         "2 ?",
		`<c s="3"><v>45000</v></c>`:                                         "2 45000",
		`<c t="e"><v>#N/A</v></c>`:                                          "2 ?",
		`<c><f>1+1</f></c>`:                                                 "2 ?",
		`<c t="b"><v>1</v></c>`:                                             "2 true",
		`<c><v>twelve</v></c>`:                                              "2 ?",
		`<c t="inlineStr"><is><t>_x005F_x0041_ a_x000D_</t></is></c>`:       "2 _x0041_ a",
		`<c t="str"><v>` + strings.Repeat("x", maxCell+1) + `</v></c>`:      "2 ?",
		`<c r="A2"/><c r="B2" t="str"><v> </v></c><c r="IV2" s="1"/>`:       "",
		`<c r="B2" t="str"><v>Ama</v></c>`:                                  "2  Ama",
		`<c r="A2"><v>0</v></c></row><row r="9" hidden="1"><c><v>7</v></c>`: "2 0|9 7",
	} {
		rows, _, err := read(t, workbookOf(t, heading+`<row>`+cell+`</row>`), Options{})
		if got := strings.Join(rows, "|"); err != nil || got != want {
			t.Errorf("%s: %q, want %q; %v", cell, got, want, err)
		}
	}
}

// The report counts the parts of a file that a person may have overlooked: hidden rows, other sheets, and cells with errors.
func TestTable_report(t *testing.T) {
	t.Parallel()
	book := excelize.NewFile()
	for cell, value := range map[string]any{"A1": "Phone", "B1": "Name", "A2": "0241000001", "A4": "0241000002", "A5": 241000003} {
		if err := book.SetCellValue("Sheet1", cell, value); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = book.NewSheet("Old")
	_, _ = book.NewSheet("First")
	_ = book.SetCellValue("Old", "A1", "0241000009")
	_ = book.SetRowVisible("Sheet1", 4, false)
	_ = book.MoveSheet("First", "Sheet1") // this sheet is empty, so the next one is read
	var out bytes.Buffer
	if err := book.Write(&out); err != nil {
		t.Fatal(err)
	}
	rows, report, err := read(t, out.Bytes(), Options{})
	if got := strings.Join(rows, "|"); err != nil || got != "2 0241000001|4 0241000002|5 241000003" {
		t.Fatalf("%q, %v", got, err)
	}
	if report.Rows != 3 || report.Hidden != 1 || report.Sheet != "Sheet1" || !slices.Equal(report.Others, []string{"First", "Old"}) || len(report.Notes()) != 2 {
		t.Errorf("%+v", report)
	}
	if rows, _, err := read(t, out.Bytes(), Options{Sheet: "Old"}); err != nil || strings.Join(rows, "|") != "1 0241000009" {
		t.Errorf("the sheet that was chosen: %v, %v", rows, err)
	}
	_, report, err = read(t, workbookOf(t, heading+`<row><c t="e"><v>#REF!</v></c><c t="e"><v>#N/A</v></c></row>`), Options{})
	if err != nil || report.Errors != 2 {
		t.Errorf("%+v, %v", report, err)
	}
}

// A file that is not a table is refused. The error names its format and the fix.
func TestOpen_refusals(t *testing.T) {
	t.Parallel()
	cut := parts(heading + `<row><c><v>241000001</v></c></row>`)
	cut["xl/worksheets/sheet1.xml"] = strings.TrimSuffix(cut["xl/worksheets/sheet1.xml"], "</worksheet>")
	back := workbookOf(t, `<row r="5"/><row r="4"/>`)
	whole := workbookOf(t, heading)
	for name, each := range map[string]struct {
		file []byte
		o    Options
		says string
	}{
		"empty":             {nil, Options{}, "has no rows"},
		"blank":             {[]byte("\n,,\n"), Options{}, "has no rows"},
		"no numbers":        {[]byte("a,b\nc,d\n"), Options{}, `no column for phone_number; its headings are "a", "b"`},
		"not CSV":           {[]byte("\"a"), Options{}, "begins with a row"},
		"too large":         {bytes.Repeat([]byte("0241000001\n"), MaxBytes/11+1), Options{}, "at most 20 MB"},
		"too many rows":     {append([]byte("phone\n"), bytes.Repeat([]byte("0241000001\n"), MaxRows+1)...), Options{}, "at most 100000 rows"},
		"xls":               {[]byte(compoundFile + strings.Repeat("\x00", 600)), Options{}, ".xls"},
		"password":          {[]byte(compoundFile + strings.Join(strings.Split("EncryptedPackage", ""), "\x00") + "\x00"), Options{}, "password"},
		"ods":               {zipped(t, map[string]string{"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}), Options{}, ".ods"},
		"xlsb":              {zipped(t, map[string]string{"xl/workbook.bin": ""}), Options{}, ".xlsb"},
		"archive":           {zipped(t, map[string]string{"phones.csv": "0241000001"}), Options{}, "unpack"},
		"page":              {[]byte(markUTF8 + " <html><table>"), Options{}, "web page"},
		"pdf":               {[]byte("%PDF-1.7"), Options{}, "PDF"},
		"binary":            {[]byte("0241\x00\x00\x00000001"), Options{}, "neither text nor a workbook"},
		"a cut sheet":       {zipped(t, cut), Options{}, "damaged"},
		"a cut archive":     {whole[:len(whole)-30], Options{}, "damaged"},
		"rows that go back": {back, Options{}, "damaged"},
		"an unknown sheet":  {whole, Options{Sheet: "Two"}, `no sheet "Two"; its sheets are "One"`},
		"a sheet of text":   {[]byte("0241000001"), Options{Sheet: "Two"}, "not a workbook"},
		"an unknown field":  {whole, Options{Columns: map[string]string{"tel": "Phone"}}, `no field "tel"`},
		"another heading":   {whole, Options{Columns: map[string]string{"phone_number": "Cell"}}, `no heading "Cell"; its headings are "Phone", "Name"`},
		"a lost column":     {whole, Options{Columns: map[string]string{"first_name": "Phone"}}, "no column for phone_number"},
	} {
		_, _, err := read(t, each.file, each.o)
		if !problem.Is(err, problem.Invalid) || !strings.Contains(fmt.Sprint(err), each.says) {
			t.Errorf("%s: %v, want %q", name, err, each.says)
		}
	}
}

// No copy of a file remains, whether the file was refused or used.
func TestOpen_removesItsCopy(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	for _, file := range []string{"%PDF", "0241000001", string(workbookOf(t, heading))} {
		_, _, _ = read(t, []byte(file), Options{})
		if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) > 0 {
			t.Errorf("%q: %v is left, %v", file[:4], left, err)
		}
	}
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
}
