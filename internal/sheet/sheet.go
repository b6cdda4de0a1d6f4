// Package sheet reads tables that people upload, CSV and XLSX, and writes tables for download.
//
// A file of at most MaxBytes is first copied to a temporary file, so that it can be read twice. Table reads the whole
// file, chooses the columns and reports anything unusual. Only then are its rows used, so a refused file has changed
// nothing. Memory is limited for any content: one row at a time is in memory, the texts of a workbook are on disk,
// and everything that unpacks has a limit.
//
// A form lists the fields of a kind of file. Their columns are found by headings. If several headings fit, the form
// of the cells decides. The caller may also choose the columns, such as by a person's mapping.
//
// The value of a workbook's cell is the stored value, never the displayed text. A value that a spreadsheet has
// damaged is refused where it is used. Examples are an error, a date instead of a text, and a number of more digits
// than a spreadsheet keeps.
//
// Files: sheet.go (a file), preview.go (its beginning), rows.go (its rows as they are), split.go (its parts in a
// database), table.go (a form, its columns and its rows), headings.go, text.go and records.go (CSV), workbook.go,
// part.go, cells.go, numbers.go and styles.go (XLSX), columns.go, write_csv.go and write_xlsx.go (downloads).
package sheet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/makola/makola/internal/problem"
)

// Limits of the files that can be read.
const (
	MaxBytes   = 20 << 20 // of a file
	MaxRows    = 100_000  // rows of a table, without the headings
	MaxColumns = 200
	maxCell    = 32 << 10 // bytes of a cell
	maxLine    = 64 << 10 // bytes of a line of text, and of all cells of a row
)

// File is an uploaded file in a temporary file. Close deletes it.
type File struct {
	spool *os.File
	size  int64
	book  *workbook // nil: the file is text
	text  textEncoding
}

// Open copies a file and detects its format. For an unreadable file, or one without a table, the error is Invalid.
func Open(from io.Reader) (*File, error) {
	spool, err := os.CreateTemp("", "makola-table-*")
	if err != nil {
		return nil, fmt.Errorf("sheet: copy the uploaded file: %w", err)
	}
	f := &File{spool: spool}
	if err := f.fill(from); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Close deletes the copy.
func (f *File) Close() error {
	return errors.Join(f.spool.Close(), os.Remove(f.spool.Name()))
}

// refuse returns the error for a file that cannot be used. why follows the word "file".
func refuse(why string) error { return problem.Field("file", why) }

// errDamaged is returned for a workbook that is not well formed.
func errDamaged() error {
	return refuse("is a damaged workbook: open it in a spreadsheet program and save it again")
}

func (f *File) fill(from io.Reader) error {
	var err error
	if f.size, err = io.Copy(f.spool, io.LimitReader(from, MaxBytes+1)); err != nil {
		return fmt.Errorf("sheet: copy the uploaded file: %w", err)
	}
	if f.size > MaxBytes {
		return refuse(fmt.Sprintf("must be at most %d MB: divide it", MaxBytes>>20))
	}
	start := make([]byte, min(f.size, sniffed))
	if _, err := f.spool.ReadAt(start, 0); err != nil {
		return fmt.Errorf("sheet: read the uploaded file: %w", err)
	}
	if bytes.HasPrefix(start, []byte("PK\x03\x04")) {
		f.book, err = openWorkbook(f.spool, f.size)
		return err
	}
	if err := f.foreign(start); err != nil {
		return err
	}
	f.text, err = encodingOf(io.NewSectionReader(f.spool, 0, f.size), start)
	return err
}

// foreignKinds has the first bytes of other file formats, and what the user should do.
var foreignKinds = []struct{ start, why string }{
	{"%PDF", "is a PDF: ask for the same table as XLSX or CSV"},
	{"\x1f\x8b", "is compressed: unpack it first"},
	{"Rar!", "is compressed: unpack it first"},
	{"7z\xbc\xaf", "is compressed: unpack it first"},
	{"<", "is a web page or XML: open it in a spreadsheet program and save it as .xlsx"},
	{"{\\rtf", "is a text document: save the table as XLSX or CSV"},
}

// compoundFile begins the files of Excel versions before 2007, and all workbooks with a password.
const compoundFile = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// foreign returns an error for a file of another format. The error names the format.
func (f *File) foreign(start []byte) error {
	if bytes.HasPrefix(start, []byte(compoundFile)) {
		whole, err := io.ReadAll(io.NewSectionReader(f.spool, 0, f.size))
		if err != nil {
			return fmt.Errorf("sheet: read the uploaded file: %w", err)
		}
		if bytes.Contains(whole, []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")) {
			return refuse("is protected by a password: save it without one")
		}
		return refuse("is an .xls file of an old Excel: open it and save it as .xlsx")
	}
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(start, []byte(markUTF8)), " \t\r\n")
	for _, kind := range foreignKinds {
		if bytes.HasPrefix(trimmed, []byte(kind.start)) {
			return refuse(kind.why)
		}
	}
	return nil
}

// Kind is the kind of a cell's value.
type Kind int

// The kinds of cells. In a CSV file all cells are texts.
const (
	Text    Kind = iota
	Number       // decimal digits, or the stored text if digits are lost
	Date         // as 2006-01-02T15:04:05
	Boolean      // true or false
	Error        // such as #N/A
)

// Cell is one value. Why is the reason why it cannot be used as a text or number; it is empty if it can.
type Cell struct {
	Text string
	Kind Kind
	Why  string
}

// record is one row of a file.
type record struct {
	line   int // line of the text, or number of the row
	hidden bool
	cells  []Cell
}

func (r record) empty() bool {
	for _, c := range r.cells {
		if c.Text != "" || c.Why != "" {
			return false
		}
	}
	return true
}

// BadRow is a row that cannot be read. The next row may be readable.
type BadRow struct {
	Line int
	Why  string // text that follows the row's number
}

func (b *BadRow) Error() string { return b.Why }

// records returns the rows of a file one by one. next returns a record, a BadRow, io.EOF or an error of the file.
type records interface{ next() (record, error) }
