// Package sheet reads tables that people upload, CSV and XLSX, and writes tables for download.
//
// A file is first copied to a temporary one, within MaxBytes, so that it can be read twice. Table reads it whole,
// chooses the columns and reports anything unusual. Only then are its rows used, so a refused file has changed
// nothing. Memory is bounded whatever the file contains: one row at a time, the texts of a workbook on disk, and a
// limit on everything that unpacks.
//
// A form lists the fields of a kind of file. Their columns are found by headings, by the look of the cells if several
// headings fit, or by the caller's choice. A person's mapping of columns is such a choice.
//
// A cell of a workbook is its stored value, never the displayed text. A value that a spreadsheet has damaged is
// refused where it is used: an error, a date instead of a text, a number of more digits than a spreadsheet keeps.
//
// Files: sheet.go (a file), preview.go (its beginning), rows.go (its rows as they are), split.go (its parts in a database), table.go (a form, its columns and its rows), headings.go, text.go and records.go (CSV),
// workbook.go, part.go, cells.go, numbers.go and styles.go (XLSX), columns.go, write_csv.go and write_xlsx.go (downloads).
package sheet

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/makola/makola/internal/problem"
)

// Limits of the files that are read.
const (
	MaxBytes   = 20 << 20 // of a file
	MaxRows    = 100_000  // of a table, the heading not counted
	MaxColumns = 200
	maxCell    = 32 << 10 // bytes of a cell
	maxLine    = 64 << 10 // bytes of a line of text, and of the cells of a row
)

// File is a file that somebody gave, in a temporary file that Close removes.
type File struct {
	spool *os.File
	size  int64
	book  *workbook // nil: the file is text
	text  textEncoding
}

// Open copies a file and detects its format. An unreadable file, or one without a table, is Invalid.
func Open(from io.Reader) (*File, error) {
	spool, err := os.CreateTemp("", "makola-table-*")
	if err != nil {
		return nil, fmt.Errorf("sheet: copying the file: %w", err)
	}
	f := &File{spool: spool}
	if err := f.fill(from); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Close removes the copy.
func (f *File) Close() error {
	return errors.Join(f.spool.Close(), os.Remove(f.spool.Name()))
}

// refuse returns the error of a file that cannot be used; why fits behind "file".
func refuse(why string) error { return problem.Field("file", why) }

// errDamaged is returned for a workbook that breaks its own rules.
func errDamaged() error {
	return refuse("is a damaged workbook: open it in a spreadsheet program and save it again")
}

func (f *File) fill(from io.Reader) error {
	var err error
	if f.size, err = io.Copy(f.spool, io.LimitReader(from, MaxBytes+1)); err != nil {
		return fmt.Errorf("sheet: copying the file: %w", err)
	}
	if f.size > MaxBytes {
		return refuse(fmt.Sprintf("must be at most %d MB: divide it", MaxBytes>>20))
	}
	start := make([]byte, min(f.size, sniffed))
	if _, err := f.spool.ReadAt(start, 0); err != nil {
		return fmt.Errorf("sheet: reading the copy: %w", err)
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

// foreignKinds are beginnings of files that are no tables that can be read, with what to do.
var foreignKinds = []struct{ start, why string }{
	{"%PDF", "is a PDF: ask for the same table as XLSX or CSV"},
	{"\x1f\x8b", "is compressed: unpack it first"},
	{"Rar!", "is compressed: unpack it first"},
	{"7z\xbc\xaf", "is compressed: unpack it first"},
	{"<", "is a web page or XML, whatever its name: open it in a spreadsheet program and save it as .xlsx"},
	{"{\\rtf", "is a text document: save the table as XLSX or CSV"},
}

// compoundFile begins what Excel wrote before 2007, and every workbook with a password.
const compoundFile = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

// foreign refuses files of other formats by name.
func (f *File) foreign(start []byte) error {
	if bytes.HasPrefix(start, []byte(compoundFile)) {
		whole, err := io.ReadAll(io.NewSectionReader(f.spool, 0, f.size))
		if err != nil {
			return fmt.Errorf("sheet: reading the copy: %w", err)
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

// The kinds of cells. All cells of a CSV file are texts.
const (
	Text    Kind = iota
	Number       // in decimal digits, or as it was stored where digits are lost
	Date         // as 2006-01-02T15:04:05
	Boolean      // true or false
	Error        // such as #N/A
)

// Cell is one value. Why is the reason it cannot be used as a text or number; empty: it can.
type Cell struct {
	Text string
	Kind Kind
	Why  string
}

// record is one row of a file.
type record struct {
	line   int // in the text, or the number of the row
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

// BadRow is a row that cannot be read; the next may be.
type BadRow struct {
	Line int
	Why  string // behind the row
}

func (b *BadRow) Error() string { return b.Why }

// records gives the rows of a file one by one: a record, a BadRow, io.EOF or the error of the file.
type records interface{ next() (record, error) }
