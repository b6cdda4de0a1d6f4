package engine

import (
	"encoding/json"
	"fmt"
	"time"
)

// Statement is one SQL text in the spelling of an engine with its arguments, ready for an exchange.
type Statement struct {
	SQL  string
	Args []any
	Each func(*Row) error // nil when no rows are expected
	Want int64            // the row count that must be affected; negative: any
	Rows int64            // the row count that was affected
	// Repeat, where set, gives the arguments of the same statement again and
	// again (SQLite's form of a set); it returns nil at the end.
	Repeat func(i int) []any
}

// Row is the current row of a reading statement.
type Row struct {
	scanner scanner
	isBool  func(i int) bool // nil on SQLite: integers serve as booleans
}

type scanner interface{ Scan(dest ...any) error }

// NewRow returns the current row of a driver's scanner. isBool reports which columns are booleans already; nil is
// none.
func NewRow(s scanner, isBool func(i int) bool) *Row { return &Row{scanner: s, isBool: isBool} }

// Scan reads the columns of the row. In addition to the drivers' types it reads integers into bool and time.Time
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

// Micros converts a time to the stored form: microseconds since 1970 in UTC. The zero time is 0, which every table
// reads as "never".
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros turns stored microseconds back into a time in UTC; 0 is the zero
// time.
func FromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
