package sheet

import (
	"fmt"
	"io"
	"slices"
)

// Preview is the beginning of a file with the proposed columns for a form. A person confirms them.
type Preview struct {
	Report
	Headed  bool           // the first row has headings
	Names   []string       // of the columns: their headings, or "column 1"
	Columns map[string]int // proposed column by field, counted from 0
	Sample  [][]string     // texts of the first rows
	rows    int            // maximum number of rows in the sample
}

// maxShownCell is the maximum number of characters of a cell in a preview.
const maxShownCell = 60

// Preview reads the whole file once and proposes columns for a form. Unlike Table it accepts headings that do not fit
// the form. name selects a sheet of a workbook. If it is empty, the first visible sheet with content is used.
func (f *File) Preview(form Form, name string, rows int) (*Preview, error) {
	p := &Preview{Columns: map[string]int{}, rows: rows}
	t := &Table{form: form, preview: p}
	open, err := f.source(t, Options{Sheet: name})
	if err != nil {
		return nil, err
	}
	if err := t.survey(open, nil); err != nil {
		return nil, err
	}
	if t.Rows == 0 {
		return nil, refuse("has no rows")
	}
	p.Report, p.Headed = t.Report, t.columns.heading != nil
	width := len(t.columns.heading)
	for _, row := range p.Sample {
		width = max(width, len(row))
	}
	for i := range width {
		text := t.columns.name(i)
		if text == "" || i >= len(t.columns.heading) {
			text = fmt.Sprintf("column %d", i+1)
		}
		p.Names = append(p.Names, shortened(text))
	}
	for i, column := range t.columns.chosen {
		if column >= 0 && column < width {
			p.Columns[form.Fields[i].Name] = column
		}
	}
	return p, nil
}

// show adds a row to the sample.
func (p *Preview) show(one record) {
	if p == nil || len(p.Sample) == p.rows || len(one.cells) == 0 {
		return
	}
	texts := make([]string, len(one.cells))
	for i, cell := range one.cells {
		texts[i] = shortened(cell.Text)
	}
	p.Sample = append(p.Sample, texts)
}

func shortened(text string) string {
	runes := []rune(text)
	if len(runes) <= maxShownCell {
		return text
	}
	return string(runes[:maxShownCell-1]) + "…"
}

// HeadingKey returns the headings in a form in which two files can be compared. Without headings it returns the
// number of columns.
func (p *Preview) HeadingKey() []string {
	if !p.Headed {
		return []string{fmt.Sprintf("%d columns", len(p.Names))}
	}
	keys := slices.Clone(p.Names)
	for i, text := range keys {
		keys[i] = plainHeading(text)
	}
	return keys
}

// Content returns the bytes of the original file.
func (f *File) Content() io.Reader { return io.NewSectionReader(f.spool, 0, f.size) }
