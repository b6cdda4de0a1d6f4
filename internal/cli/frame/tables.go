package frame

import (
	"fmt"
	"io"

	"github.com/makola/makola/internal/sheet"
)

// TableFlags are the flags of a command that reads a file with a table.
type TableFlags struct {
	Column map[string]string `name:"column" mapsep:"none" placeholder:"FIELD=HEADING" help:"Read a field from the column with this heading, such as phone_number=Cell. May be repeated."`
	Sheet  string            `name:"sheet" placeholder:"NAME" help:"Sheet of a workbook. Default: the first sheet that has rows."`
}

// Options returns the flags as options of the reader of tables.
func (f TableFlags) Options() sheet.Options { return sheet.Options{Columns: f.Column, Sheet: f.Sheet} }

// Note prints the unusual points of a file.
func Note(to io.Writer, report sheet.Report) {
	for _, text := range report.Notes() {
		fmt.Fprintln(to, Cell(text))
	}
}
