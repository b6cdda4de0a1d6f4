package db

import "context"

// Walk reads the rows of a statement over a large table in the order of a key, at most limit at a time. Each set is
// read in a transaction of its own.
//
// sql must end with a LIMIT as its last argument, which Walk adds. args returns the other arguments, for the rows
// after a key; the zero key starts. scan reads a row and its key, and reports whether the caller wants the row. each
// receives the wanted rows of a set.
func Walk[K, R any](ctx context.Context, d *DB, sql string, limit int, args func(after K) []any, scan func(r *Row, key *K) (row R, wanted bool, err error), each func([]R) error) error {
	var after K
	for n := limit; n == limit; {
		var rows []R
		key := after
		err := d.Read(ctx, func(t *Tx) error {
			rows, n = nil, 0
			return t.Query(sql, append(args(after), limit), func(r *Row) error {
				row, wanted, err := scan(r, &key)
				if n++; wanted {
					rows = append(rows, row)
				}
				return err
			})
		})
		if err == nil && len(rows) > 0 {
			err = each(rows)
		}
		if err != nil {
			return err
		}
		after = key
	}
	return nil
}

// WalkNaming walks a statement that returns an id and a text, ordered by id. It calls each with the ids of the rows
// whose text equals text.
func WalkNaming(ctx context.Context, d *DB, sql string, limit int, text string, each func(ids []string) error) error {
	return Walk(ctx, d, sql, limit, func(after string) []any { return []any{after} }, func(r *Row, id *string) (string, bool, error) {
		var found string
		err := r.Scan(id, &found)
		return *id, found == text, err
	}, each)
}

// Prune repeats a statement that deletes or clears at most limit rows, until it changes fewer. Each repetition has a
// transaction of its own. sql must end with a LIMIT as its last argument, which Prune adds after args.
func Prune(ctx context.Context, d *DB, sql string, limit int, args ...any) error {
	args = append(args, limit)
	for changed := int64(limit); changed == int64(limit); {
		if err := d.Write(Bulk(ctx, ""), func(t *Tx) (err error) {
			changed, err = t.Exec(sql, args...)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
