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

// Messages about fields with several values.
const (
	notTexts   = "must be a list of strings"
	notObjects = "must be a list of objects"
)

// list reads an optional list of texts. It reads at most one item more than most; the caller refuses such a list. In
// a query string the list may be name=a&name=b, name[]=a&name[]=b, name[0]=a&name[1]=b or name=a,b.
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
	at := map[int]string{} // the names with an index, by index
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

// objects reads a list of at least one object. It reads at most one object more than most.
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

// rowsOf decodes the objects of an array, at most one more than most. ok is false if an item is not an object.
func rowsOf(array []byte, most int) (rows []row, ok bool) {
	for _, item := range wire.Items(array, most) {
		var noted problem.Fields // not used: the decoder of the whole body has recorded these errors
		o, err := wire.Decode(item, &noted)
		if item[0] != '{' || err != nil {
			return nil, false
		}
		rows = append(rows, row{o})
	}
	return rows, true
}

// row is one object in a list.
type row struct{ wire.Object }

// plain returns a text of the object without the spaces around it, or "" if the member is absent or not a text.
func (r row) plain(name string) string {
	value := r.Find(name)
	if value == nil || value[0] != '"' {
		return ""
	}
	return strings.TrimSpace(wire.Unquote(value))
}
