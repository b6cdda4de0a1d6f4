package console

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/sheet"
)

// exportMost is the maximum number of rows of a file.
const exportMost = 100_000

// errEnough ends an export that has reached its maximum.
var errEnough = errors.New("console: the maximum number of rows is reached")

// Suffixes of the paths of files. A route has the first in its pattern, and serves paths with either.
const (
	csvSuffix  = "." + string(sheet.CSV)
	xlsxSuffix = "." + string(sheet.XLSX)
)

// withFormats adds the XLSX twin of each route that returns a file.
func withFormats(routes []Route) []Route {
	for _, r := range routes {
		if r.File {
			r.Path = strings.TrimSuffix(r.Path, csvSuffix) + xlsxSuffix
			routes = append(routes, r)
		}
	}
	return routes
}

// FileLinks returns the addresses of a list as files.
func FileLinks(base, query string) page.Files {
	return page.Files{XLSX: base + xlsxSuffix + "?" + query, CSV: base + csvSuffix + "?" + query}
}

// Exported returns a file of at most exportMost rows, in the format that the address names. all calls each for every row.
func Exported[T any](v *Visit, name string, columns []Column[T], all func(each func(T) error) error) Answer {
	return exported(v, name, filed(columns), all, exportMost)
}

// ExportedWhole is Exported for a list whose length was checked before.
func ExportedWhole[T any](v *Visit, name string, columns []sheet.Column[T], all func(each func(T) error) error) Answer {
	return exported(v, name, columns, all, math.MaxInt)
}

func exported[T any](v *Visit, name string, columns []sheet.Column[T], all func(each func(T) error) error, most int) Answer {
	format := sheet.CSV
	if strings.HasSuffix(v.Route.Path, xlsxSuffix) {
		format = sheet.XLSX
	}
	return Answer{File: name + "." + string(format), Media: format.MediaType(), Write: func(w http.ResponseWriter) error {
		out, err := sheet.NewWriter(w, format, columns)
		if err != nil {
			return err
		}
		rows := 0
		err = all(func(row T) error {
			if rows++; rows > most {
				return errEnough
			}
			return out.Write(row)
		})
		if errors.Is(err, errEnough) {
			err = out.Note("This file is not complete. Use filters to export fewer rows.")
		}
		if err != nil {
			return err
		}
		return out.Close()
	}}
}

// FileName returns the name of a file, with its list, account and days: payouts-kejetia-traders-2026-11-01-to-2026-11-26.
func (v *Visit) FileName(list, account string, from, to time.Time) string {
	parts := []string{list}
	switch {
	case v.Route.Site == Tenants:
		parts = append(parts, fileWord(v.Tenant.Name))
	case account != "":
		parts = append(parts, fileWord(v.NameOf(account)))
	default:
		parts = append(parts, "all-accounts")
	}
	if !from.IsZero() {
		parts = append(parts, from.Format(DayFormat))
	}
	if today := v.console.Clock.Now().UTC(); to.IsZero() || to.After(today) {
		to = today
	}
	return strings.Join(append(parts, "to", to.Format(DayFormat)), "-")
}

// maxFileWord is the most characters of an account's name in the name of a file.
const maxFileWord = 40

// fileWord replaces the characters of a name that some systems do not allow in the name of a file.
func fileWord(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	word := strings.Join(words, "-")
	return strings.Trim(word[:min(len(word), maxFileWord)], "-")
}

// ByPage calls each for every row of a list, newest first. read returns at most fileRows rows that are older than the
// row with the given id.
func ByPage[T any](id func(T) string, read func(before string, limit int) ([]T, error), each func(T) error) error {
	for before := ""; ; {
		list, err := read(before, fileRows)
		if err != nil {
			return err
		}
		for _, one := range list {
			if err := each(one); err != nil {
				return err
			}
		}
		if len(list) < fileRows {
			return nil
		}
		before = id(list[fileRows-1])
	}
}

// fileRows is the number of rows of a file that one query reads.
const fileRows = 500
