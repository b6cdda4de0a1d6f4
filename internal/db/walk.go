package db

import "context"

// Walk reads what a statement gives of a large table in the order of a key, a bounded number of rows at a time, each set in a
// transaction of its own. sql ends with a LIMIT, the last of its arguments, which Walk gives; args are those before it, of the
// rows that follow a key, whose zero value comes before the first. scan reads a row, its key into key, and says whether it is
// wanted; each gets the wanted rows of a set.
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

// WalkNaming is Walk for a statement that gives an id, which is the key, and a text: each gets the ids beside a given text.
func WalkNaming(ctx context.Context, d *DB, sql string, limit int, text string, each func(ids []string) error) error {
	return Walk(ctx, d, sql, limit, func(after string) []any { return []any{after} }, func(r *Row, id *string) (string, bool, error) {
		var found string
		err := r.Scan(id, &found)
		return *id, found == text, err
	}, each)
}

// Prune runs a statement that deletes or clears at most so many rows, until it changes fewer, each time in a transaction of its
// own. sql ends with a LIMIT, the last of its arguments, which Prune gives; args are those before it.
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
