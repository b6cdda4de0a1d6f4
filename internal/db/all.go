package db

import "context"

// All returns the rows of a statement. scan reads one row.
func All[T any](t *Tx, sql string, args []any, scan func(row *T, r *Row) error) (list []T, err error) {
	err = t.Query(sql, args, func(r *Row) error {
		var row T
		err := scan(&row, r)
		list = append(list, row)
		return err
	})
	return list, err
}

// ReadAll is All in a transaction of its own, which only reads.
func ReadAll[T any](ctx context.Context, d *DB, sql string, args []any, scan func(row *T, r *Row) error) ([]T, error) {
	return Get(ctx, d, func(t *Tx) ([]T, error) { return All(t, sql, args, scan) })
}

// Get returns the result of fn, which runs in a transaction of its own that only reads.
func Get[T any](ctx context.Context, d *DB, fn func(*Tx) (T, error)) (result T, err error) {
	err = d.Read(ctx, func(t *Tx) (err error) {
		result, err = fn(t)
		return err
	})
	return result, err
}

// ReadOne is Tx.One in a transaction of its own, which only reads.
func (d *DB) ReadOne(ctx context.Context, sql string, args []any, dest ...any) (found bool, err error) {
	return Get(ctx, d, func(t *Tx) (bool, error) { return t.One(sql, args, dest...) })
}

// Exec is Tx.Exec in a transaction of its own.
func (d *DB) Exec(ctx context.Context, sql string, args ...any) (changed int64, err error) {
	err = d.Write(ctx, func(t *Tx) (err error) {
		changed, err = t.Exec(sql, args...)
		return err
	})
	return changed, err
}
