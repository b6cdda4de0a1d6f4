package relocation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
)

// A shape describes how the rows of one table are copied.
type shape struct {
	table   string
	columns []shapeColumn
	key     []int // indexes of the primary key's columns in columns
}

type shapeColumn struct {
	name, kind string
	required   bool // NOT NULL
}

const sqlShape = `SELECT name, type, "notnull", pk FROM pragma_table_info($1) ORDER BY cid`

// shapeOf reads the shape of a table from SQLite, which stores the types from the migrations.
func shapeOf(t *db.Tx, table string) (shape, error) {
	s := shape{table: table}
	places := map[int64]int{}
	err := t.Query(sqlShape, []any{table}, func(r *db.Row) error {
		var c shapeColumn
		var required, place int64
		if err := r.Scan(&c.name, &c.kind, &required, &place); err != nil {
			return err
		}
		if !slices.Contains([]string{"TEXT", "INTEGER", "BLOB"}, c.kind) {
			return fmt.Errorf("relocation: %s.%s has the type %q, which cannot be copied", table, c.name, c.kind)
		}
		c.required = required == 1
		if place > 0 {
			places[place] = len(s.columns)
		}
		s.columns = append(s.columns, c)
		return nil
	})
	for i := range places {
		if i > int64(len(places)) {
			return s, fmt.Errorf("relocation: the primary key of %s has a gap", table)
		}
	}
	for i := range int64(len(places)) {
		s.key = append(s.key, places[i+1])
	}
	if err == nil && len(s.key) == 0 {
		err = fmt.Errorf("relocation: the table %s has no primary key, so its rows cannot be copied in order", table)
	}
	return s, err
}

func (s shape) names(of []int) string {
	names := make([]string, len(of))
	for i, c := range of {
		names[i] = s.columns[c].name
	}
	return strings.Join(names, ", ")
}

func (s shape) all() []int {
	all := make([]int, len(s.columns))
	for i := range all {
		all[i] = i
	}
	return all
}

func places(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(list, ", ")
}

// scan reads the given columns of a row as values that can be arguments of a statement.
func (s shape) scan(r *db.Row, of []int) ([]any, error) {
	dest := make([]any, len(of))
	for i, c := range of {
		switch s.columns[c].kind {
		case "INTEGER":
			dest[i] = new(*int64)
		case "TEXT":
			dest[i] = new(*string)
		default:
			dest[i] = new([]byte)
		}
	}
	if err := r.Scan(dest...); err != nil {
		return nil, err
	}
	values := make([]any, len(of))
	for i, c := range of {
		switch v := dest[i].(type) {
		case **int64:
			if *v != nil {
				values[i] = **v
			}
		case **string:
			if *v != nil {
				values[i] = **v
			}
		case *[]byte:
			switch {
			case *v != nil:
				values[i] = *v
			case s.columns[c].required:
				values[i] = []byte{} // the driver may return nil for an empty value
			}
		}
	}
	return values, nil
}

// after reads at most limit rows after the given key, in the order of the key. A limit of 0 means all rows, and a nil
// key means from the first row.
func (s shape) after(t *db.Tx, key []any, limit int, each func([]any) error) error {
	sql := "SELECT " + s.names(s.all()) + " FROM " + s.table
	if key != nil {
		sql += " WHERE (" + s.names(s.key) + ") > (" + places(len(key)) + ")"
	}
	sql += " ORDER BY " + s.names(s.key)
	if limit > 0 {
		sql += fmt.Sprintf(" LIMIT %d", limit)
	}
	return t.Query(sql, key, func(r *db.Row) error {
		row, err := s.scan(r, s.all())
		if err != nil {
			return err
		}
		return each(row)
	})
}

// last returns the greatest key of a table, or nil if the table is empty.
func (s shape) last(t *db.Tx) (key []any, err error) {
	order := make([]string, len(s.key))
	for i, c := range s.key {
		order[i] = s.columns[c].name + " DESC"
	}
	err = t.Query("SELECT "+s.names(s.key)+" FROM "+s.table+" ORDER BY "+strings.Join(order, ", ")+" LIMIT 1", nil, func(r *db.Row) error {
		key, err = s.scan(r, s.key)
		return err
	})
	return key, err
}

// carriedRows is the number of rows that one transaction of carry writes.
const carriedRows = 500

// carry copies the rows of a table from a SQLite database to the same table of another database. Nothing else may
// write to either. It copies a limited number of rows at a time, in the order of the primary key. It starts after the
// last row of the target. It can therefore be repeated after any interruption, even after a COMMIT without a
// response. require may defer guards to each transaction. progress receives the number of rows of each.
func carry(ctx context.Context, from, to *db.DB, table string, require func(*db.Tx), progress func(rows int)) error {
	if from.Engine() != db.SQLite {
		return errors.New("relocation: rows can only be copied from SQLite")
	}
	var s shape
	if err := from.Read(ctx, func(t *db.Tx) (err error) { s, err = shapeOf(t, table); return err }); err != nil {
		return err
	}
	insert := "INSERT INTO " + table + " (" + s.names(s.all()) + ") VALUES (" + places(len(s.columns)) + ")"
	for {
		var key []any
		if err := to.Read(ctx, func(t *db.Tx) (err error) { key, err = s.last(t); return err }); err != nil {
			return err
		}
		var rows [][]any
		err := from.Read(ctx, func(t *db.Tx) error {
			rows = nil
			return s.after(t, key, carriedRows, func(row []any) error { rows = append(rows, row); return nil })
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		err = to.Write(ctx, func(t *db.Tx) error {
			require(t)
			for _, row := range rows {
				t.Defer(insert, 1, row...)
			}
			return nil
		})
		if errors.Is(err, db.ErrAmbiguous) {
			continue // the next pass continues after the target's last row
		}
		if err != nil {
			return fmt.Errorf("relocation: copy the table %s: %w", table, err)
		}
		progress(len(rows))
	}
}

// contents describes the rows of a table: their number, and a digest in the order of the primary key. The digest is
// the same on both engines.
type contents struct {
	rows   int64
	digest [sha256.Size]byte
}

// contentsOf returns the contents of a table of a SQLite database and of its copy.
func contentsOf(ctx context.Context, from, to *db.DB, table string) (source, target contents, err error) {
	var s shape
	if err := from.Read(ctx, func(t *db.Tx) (err error) { s, err = shapeOf(t, table); return err }); err != nil {
		return source, target, err
	}
	if err := from.ReadWhole(ctx, func(t *db.Tx) (err error) { source, err = s.sum(t); return err }); err != nil {
		return source, target, err
	}
	err = to.ReadWhole(ctx, func(t *db.Tx) (err error) { target, err = s.sum(t); return err })
	return source, target, err
}

func (s shape) sum(t *db.Tx) (sum contents, err error) {
	h := sha256.New()
	err = s.after(t, nil, 0, func(row []any) error {
		sum.rows++
		for _, v := range row {
			digestValue(h, v)
		}
		return nil
	})
	h.Sum(sum.digest[:0])
	return sum, err
}

// digestValue writes a value with its type and length, so that different rows never give the same bytes.
func digestValue(h hash.Hash, v any) {
	var b []byte
	switch v := v.(type) {
	case nil:
		b = []byte{0}
	case int64:
		b = binary.BigEndian.AppendUint64([]byte{1}, uint64(v))
	case string:
		b = append(binary.BigEndian.AppendUint64([]byte{2}, uint64(len(v))), v...)
	case []byte:
		b = append(binary.BigEndian.AppendUint64([]byte{3}, uint64(len(v))), v...)
	}
	h.Write(b)
}
