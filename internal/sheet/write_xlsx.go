package sheet

import (
	"archive/zip"
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// bookWriter writes XLSX for people as a stream. Texts stay texts, even if they consist of digits. Numbers and dates
// are stored as such, and there are no formulas.
type bookWriter struct {
	archive *zip.Writer
	sheet   *bufio.Writer
	sheets  int // number of sheets begun so far
	line    int
}

// Styles of cells, in the order of cellXfs. Text cells have the text format, so that an edited cell stays a text.
const (
	styleHead = iota + 1
	styleText
	styleAmount
	styleInteger
	styleTime
	styleDay
)

// most is the largest number of which a spreadsheet keeps all digits.
const most = 999_999_999_999_999

const (
	xmlHead   = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	mainSpace = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
	relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	packages  = "http://schemas.openxmlformats.org/package/2006"
	kinds     = "application/vnd.openxmlformats-officedocument.spreadsheetml."
)

// stylesXML is the part with the styles, which is the same in all workbooks.
var stylesXML = `<styleSheet ` + mainSpace + `><numFmts count="2">` +
	`<numFmt numFmtId="164" formatCode="yyyy\-mm\-dd\ hh:mm:ss"/><numFmt numFmtId="165" formatCode="yyyy\-mm\-dd"/></numFmts>` +
	`<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts>` +
	`<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>` +
	`<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>` +
	`<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="7">` +
	styleXML(0, 0) + styleXML(49, 1) + styleXML(49, 0) + styleXML(4, 0) + styleXML(1, 0) + styleXML(164, 0) + styleXML(165, 0) +
	`</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`

// partOf returns the name of the nth sheet's part, counted from 1.
func partOf(n int) string { return fmt.Sprintf("xl/worksheets/sheet%d.xml", n) }

type bookPart struct{ name, text string }

// partsOf returns all parts of a workbook with these sheets, except the sheets.
func partsOf(names []string) []bookPart {
	var types, list, targets strings.Builder
	for i, name := range names {
		n := i + 1
		fmt.Fprintf(&types, `<Override PartName="/%s" ContentType="%sworksheet+xml"/>`, partOf(n), kinds)
		fmt.Fprintf(&list, `<sheet name="%s" sheetId="%d" r:id="rId%d"/>`, name, n, n)
		fmt.Fprintf(&targets, `<Relationship Id="rId%d" Type="%s/worksheet" Target="worksheets/sheet%d.xml"/>`, n, relations, n)
	}
	return []bookPart{
		{"[Content_Types].xml", `<Types xmlns="` + packages + `/content-types">` +
			`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Default Extension="xml" ContentType="application/xml"/>` +
			`<Override PartName="/xl/workbook.xml" ContentType="` + kinds + `sheet.main+xml"/>` +
			`<Override PartName="/xl/styles.xml" ContentType="` + kinds + `styles+xml"/>` + types.String() + `</Types>`},
		{"_rels/.rels", `<Relationships xmlns="` + packages + `/relationships"><Relationship Id="rId1" Type="` + relations + `/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
		{"xl/workbook.xml", `<workbook ` + mainSpace + ` xmlns:r="` + relations + `"><sheets>` + list.String() + `</sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", `<Relationships xmlns="` + packages + `/relationships">` + targets.String() +
			fmt.Sprintf(`<Relationship Id="rId%d" Type="%s/styles" Target="styles.xml"/></Relationships>`, len(names)+1, relations)},
		{"xl/styles.xml", stylesXML},
	}
}

func styleXML(format, font int) string {
	return fmt.Sprintf(`<xf numFmtId="%d" fontId="%d" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/>`, format, font)
}

// newBookWriter writes everything before the rows of the first sheet, including its headings, which stay visible when
// the sheet is scrolled.
func newBookWriter(to io.Writer, names []string, head []Value) (*bookWriter, error) {
	w := &bookWriter{archive: zip.NewWriter(to)}
	for _, p := range partsOf(names) {
		part, err := w.archive.Create(p.name)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(part, xmlHead+p.text); err != nil {
			return nil, err
		}
	}
	return w, w.begin(head)
}

// begin begins the next sheet.
func (w *bookWriter) begin(head []Value) error {
	w.sheets++
	part, err := w.archive.Create(partOf(w.sheets))
	if err != nil {
		return err
	}
	w.sheet, w.line = bufio.NewWriter(part), 0
	fmt.Fprintf(w.sheet, `%s<worksheet %s><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>`+
		`</sheetView></sheetViews><cols><col min="1" max="%d" width="22" customWidth="1"/></cols><sheetData>`, xmlHead, mainSpace, len(head))
	return w.rowOf(head, styleHead)
}

func (w *bookWriter) row(values []Value) error { return w.rowOf(values, styleText) }

func (w *bookWriter) rowOf(values []Value, text int) error {
	w.line++
	fmt.Fprintf(w.sheet, `<row r="%d">`, w.line)
	for i, v := range values {
		switch style, number := v.stored(); {
		case style == styleText && v.text == "", number == "" && style != styleText:
		case style == styleText:
			w.text(i, text, v.text)
		default:
			fmt.Fprintf(w.sheet, `<c r="%s%d" s="%d"><v>%s</v></c>`, letters(i), w.line, style, number)
		}
	}
	_, err := w.sheet.WriteString("</row>")
	return err
}

// text writes a text cell. It cuts a text that is too long for a cell.
func (w *bookWriter) text(column, style int, text string) {
	characters := []rune(visible(text))
	text = string(characters[:min(len(characters), maxCell-1)])
	fmt.Fprintf(w.sheet, `<c r="%s%d" s="%d" t="inlineStr"><is><t xml:space="preserve">`, letters(column), w.line, style)
	_ = xml.EscapeText(w.sheet, []byte(escape.ReplaceAllString(text, "_x005F$0"))) // the end of the row returns an error
	_, _ = w.sheet.WriteString("</t></is></c>")
}

// stored returns the style of a value, and its number if a spreadsheet can store it exactly.
func (v *Value) stored() (style int, number string) {
	switch v.kind {
	case valueAmount, valueInteger:
		style, number = styleInteger, strconv.FormatInt(v.number, 10)
		if v.kind == valueAmount {
			style, number = styleAmount, cedis(v.number)
		}
		if v.number > most || v.number < -most {
			v.text, style = number, styleText
		}
		return style, number
	case valueTime:
		return styleTime, serial(v.at)
	case valueDay:
		return styleDay, serial(v.at.Truncate(24 * time.Hour))
	}
	return styleText, ""
}

// serial returns a time as days since the beginning of 1900, as spreadsheets count them, or "" for the zero time.
func serial(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	const epoch = 25_569 // days from then to 1970
	return strconv.FormatFloat(epoch+float64(at.Unix())/86_400, 'f', 8, 64)
}

// letters returns the name of a column, counted from 0.
func letters(column int) string {
	name := ""
	for column++; column > 0; column = (column - 1) / 26 {
		name = string(rune('A'+(column-1)%26)) + name
	}
	return name
}

// end ends a sheet.
func (w *bookWriter) end() error {
	if _, err := w.sheet.WriteString("</sheetData></worksheet>"); err != nil {
		return err
	}
	return w.sheet.Flush()
}

func (w *bookWriter) close() error {
	if err := w.end(); err != nil {
		return err
	}
	return w.archive.Close()
}

// TextSheet is a sheet with texts only. Its first row has the headings. The name must not contain a character that
// XML escapes.
type TextSheet struct {
	Name string
	Rows [][]string
}

// WriteSheets writes an XLSX with several sheets.
func WriteSheets(to io.Writer, sheets ...TextSheet) error {
	names := make([]string, len(sheets))
	for i, sheet := range sheets {
		names[i] = sheet.Name
	}
	var w *bookWriter
	for _, sheet := range sheets {
		for i, row := range sheet.Rows {
			values := make([]Value, len(row))
			for j, text := range row {
				values[j] = String(text)
			}
			var err error
			switch {
			case i > 0:
				err = w.row(values)
			case w == nil:
				w, err = newBookWriter(to, names, values)
			default:
				if err = w.end(); err == nil {
					err = w.begin(values)
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return w.close()
}
