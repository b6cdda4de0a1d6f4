package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/makola/makola/internal/api/wire"
	"github.com/makola/makola/internal/problem"
)

// Texts about fields that hold several values.
const (
	notTexts   = "must be a list of strings"
	notObjects = "must be a list of objects"
)

// list is an optional list of texts. Of one that is longer than most only one more is read: who takes the list refuses
// it. In a query string it comes as name=a&name=b, as name[]=a&name[]=b, as
// name[0]=a&name[1]=b or as name=a,b.
func (f *form) list(name string, most int) []string {
	var texts []string
	if f.query != nil {
		for _, value := range f.values(name) {
			texts = append(texts, strings.Split(value, ",")...)
		}
	} else {
		value := f.object.Find(name)
		if value == nil || value[0] == 'n' || string(value) == `""` || f.fields.Has(name) {
			return nil
		}
		if value[0] != '[' {
			f.bad(name, notTexts)
			return nil
		}
		for _, item := range wire.Items(value, most) {
			if item[0] != '"' {
				f.bad(name, notTexts)
				return nil
			}
			texts = append(texts, wire.Unquote(item))
		}
	}
	kept := texts[:0]
	for _, text := range texts {
		switch text = strings.TrimSpace(text); {
		case !utf8.ValidString(text):
			f.bad(name, badUnicode)
		case wire.HasControl(text, false):
			f.bad(name, badText)
		case text != "":
			kept = append(kept, text)
		}
	}
	return kept
}

// values returns the values of a name in the query string, with or without brackets, in the order of the indexes.
func (f *form) values(name string) []string {
	all := slices.Concat(f.query[name], f.query[name+"[]"])
	at := map[int]string{} // the names with an index
	for given := range f.query {
		index, ok := strings.CutPrefix(given, name+"[")
		if n, err := strconv.Atoi(strings.TrimSuffix(index, "]")); ok && err == nil && n >= 0 && given == name+"["+strconv.Itoa(n)+"]" {
			at[n] = given
		}
	}
	for _, n := range slices.Sorted(maps.Keys(at)) {
		all = append(all, f.query[at[n]]...)
	}
	return all
}

// objects is a list of objects, at least one, read as far as list reads one.
func (f *form) objects(name string, most int) []row {
	value := f.object.Find(name)
	if f.fields.Has(name) {
		return nil
	}
	if value == nil || value[0] == 'n' || string(value) == `""` {
		f.bad(name, required)
		return nil
	}
	if value[0] != '[' {
		f.bad(name, notObjects)
		return nil
	}
	var rows []row
	ok := true
	f.scans.do(len(value), func() { rows, ok = rowsOf(value, most) })
	switch {
	case !ok:
		f.bad(name, notObjects)
		return nil
	case len(rows) == 0:
		f.bad(name, "must not be empty")
	}
	return rows
}

// rowsOf decodes the objects of an array, at most one more than most; ok is false when an item is no object.
func rowsOf(array []byte, most int) (rows []row, ok bool) {
	for _, item := range wire.Items(array, most) {
		var noted problem.Fields // by the decoder of the whole body already
		o, err := wire.Decode(item, &noted)
		if item[0] != '{' || err != nil {
			return nil, false
		}
		rows = append(rows, row{o})
	}
	return rows, true
}

// row is one object of a list.
type row struct{ wire.Object }

// plain gives a text member; anything else is as good as absent, and a row without a number is reported.
func (r row) plain(name string) string {
	value := r.Find(name)
	if value == nil || value[0] != '"' {
		return ""
	}
	return strings.TrimSpace(wire.Unquote(value))
}
