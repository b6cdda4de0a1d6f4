package engine

import (
	"encoding/json"
	"fmt"
	"time"
)

// Statement is one SQL text that is translated for an engine, with its arguments.
type Statement struct {
	SQL  string
	Args []any
	Each func(*Row) error // nil if no rows are expected
	Want int64            // number of rows that must be affected; negative: any
	Rows int64            // number of rows that were affected
	// Repeat, if not nil, makes SQLite run the statement several times, which is its form of a set. Repeat returns
	// the arguments of the ith run, and nil after the last.
	Repeat func(i int) []any
}

// Row is the current row of a reading statement.
type Row struct {
	scanner scanner
	isBool  func(i int) bool // nil on SQLite, which stores booleans as integers
}

type scanner interface{ Scan(dest ...any) error }

// NewRow returns the current row of a driver's scanner. isBool reports whether a column is a boolean in the driver.
// If it is nil, no column is.
func NewRow(s scanner, isBool func(i int) bool) *Row { return &Row{scanner: s, isBool: isBool} }

// Scan reads the columns of the row. In addition to the driver's types, it reads integers into bool and time.Time
// (microseconds; 0 is the zero time), and text into json.RawMessage.
func (r *Row) Scan(dest ...any) error {
	var fixed []any
	var after []func()
	for i, d := range dest {
		switch d := d.(type) {
		case *bool:
			if r.isBool != nil && r.isBool(i) {
				continue
			}
			var n int64
			if fixed == nil {
				fixed = append([]any(nil), dest...)
			}
			fixed[i] = &n
			after = append(after, func() { *d = n != 0 })
		case *time.Time:
			var n *int64
			if fixed == nil {
				fixed = append([]any(nil), dest...)
			}
			fixed[i] = &n
			after = append(after, func() {
				*d = time.Time{}
				if n != nil {
					*d = FromMicros(*n)
				}
			})
		case *json.RawMessage:
			if fixed == nil {
				fixed = append([]any(nil), dest...)
			}
			fixed[i] = (*[]byte)(d)
		}
	}
	if fixed == nil {
		fixed = dest
	}
	if err := r.scanner.Scan(fixed...); err != nil {
		return fmt.Errorf("db: read a row: %w", err)
	}
	for _, fn := range after {
		fn()
	}
	return nil
}

// Micros converts a time to its stored form: microseconds since 1970 in UTC. The zero time is stored as 0, which
// means "never" in every table.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros converts stored microseconds to a time in UTC. 0 becomes the zero time.
func FromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
