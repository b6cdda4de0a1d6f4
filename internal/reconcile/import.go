package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/sheet"
	"github.com/makola/makola/internal/usertext"
)

// Upload is the origin of a file.
type Upload struct {
	Source    string // its name
	FileName  string
	By        string // id of the person
	ByName    string
	Answers   Layout // for the first file of a source: answers to questions, and the columns that the person chose
	Confirmed bool   // the person confirmed how the first file of a source is read
}

// Imported is the result of an import.
type Imported struct {
	Statement Statement
	Repeated  bool // the file was imported before: nothing changed
	// Reading is the proposed way to read the first file of a source. Nothing is stored before a person confirms it
	// and answers its questions.
	Reading *Reading
}

// setLines is how many lines are compared at once. pacedLines is how many of them one transaction writes, because other
// writers of SQLite wait for it.
const (
	setLines   = 500
	pacedLines = 200
)

// Import stores the lines of a file. A file that cannot be used is Invalid, with the row and column, and leaves nothing behind.
func (s *store) Import(ctx context.Context, u Upload, file *sheet.File) (Imported, error) {
	source, err := s.Source(ctx, u.Source)
	if err != nil {
		return Imported{}, err
	}
	digest, err := digestOf(file)
	if err != nil {
		return Imported{}, err
	}
	old, found, err := s.statement(ctx, selectByDigest, source.ID, digest)
	if err != nil || found && old.Done {
		return Imported{Statement: old, Repeated: found}, err
	}
	p, _ := ProfileOf(source.Profile)
	r, err := survey(file, p, source.Layout, u.Answers)
	if err != nil {
		return Imported{}, err
	}
	if len(r.Questions) > 0 || source.Layout == nil && !u.Confirmed {
		return Imported{Reading: &r.Reading}, nil
	}
	t := &taking{store: s, reader: r, source: source, days: map[int64]int{}}
	t.Statement = Statement{ID: newID(), Source: source.ID, FileName: usertext.Cut(usertext.Visible(u.FileName), 100), Digest: digest, Uploader: u.By, UploaderName: u.ByName,
		Lines: r.Lines, First: r.First, Last: r.Last, Chains: r.Chains, UploadedAt: s.clock.Now()}
	if found {
		t.ID, t.resumed = old.ID, true
	}
	return t.run(ctx)
}

func digestOf(file *sheet.File) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, file.Content()); err != nil {
		return "", fmt.Errorf("reconcile: read the file: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// taking is an import in progress.
type taking struct {
	*store
	*reader
	Statement
	source  Source
	resumed bool          // the statement is there, and some of its lines
	days    map[int64]int // lines without an id of the provider, by day
	fresh   []bool        // by set: check found no stored line that may be one of it
}

func (t *taking) run(ctx context.Context) (done Imported, err error) {
	if err := t.claim(ctx, t.source, t.ID); err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, t.release(ctx, t.source, t.ID)) }()
	if err := t.check(ctx); err != nil {
		return done, err
	}
	if err := t.write(ctx); err != nil {
		return done, err
	}
	done.Statement, err = t.store.Statement(ctx, t.ID)
	return done, err
}

// sets returns the lines of the file in sets.
func (t *taking) sets(do func([]Line) error) error {
	set := make([]Line, 0, setLines)
	err := t.lines(func(l Line) error {
		l.Source, l.Statement = t.source.ID, t.ID
		set = append(set, l)
		if len(set) < setLines {
			return nil
		}
		err := do(set)
		set = set[:0]
		return err
	})
	if err == nil && len(set) > 0 {
		err = do(set)
	}
	return err
}

// check compares all lines with the stored ones. It writes nothing.
func (t *taking) check(ctx context.Context) error {
	err := t.sets(func(set []Line) error {
		var k known
		if err := t.db.Read(db.Bulk(ctx, ""), func(tx *db.Tx) (err error) {
			k, err = t.knownOf(tx, set)
			return err
		}); err != nil {
			return err
		}
		for _, l := range set {
			if err := t.checkLine(l, k); err != nil {
				return err
			}
		}
		t.fresh = append(t.fresh, len(k.byIdentity) == 0)
		return nil
	})
	if err != nil {
		return err
	}
	return t.checkDays(ctx)
}

// known are the stored lines that may be the same as lines of a file.
type known struct {
	byIdentity  map[string]Line
	byReference map[string][]Line
}

func (t *taking) knownOf(tx *db.Tx, set []Line) (k known, err error) {
	k = known{map[string]Line{}, map[string][]Line{}}
	identities, references := make([]string, len(set)), []string{}
	for i, l := range set {
		identities[i] = l.Identity
		if l.Reference != "" {
			references = append(references, l.Reference)
		}
	}
	list, err := queryLines(tx, linesByIdentity, t.source.ID, identities)
	for _, l := range list {
		k.byIdentity[l.Identity] = l
	}
	if err != nil || len(references) == 0 {
		return k, err
	}
	list, err = queryLines(tx, linesByReference, references)
	for _, l := range list {
		if l.Source == t.source.ID {
			k.byReference[l.Reference] = append(k.byReference[l.Reference], l)
		}
	}
	return k, err
}

// checkLine refuses a line that a spreadsheet program has changed, and counts the line.
func (t *taking) checkLine(l Line, k known) error {
	if l.TheirID == "" {
		return t.checkDay(l, k)
	}
	old, is := k.byIdentity[l.Identity]
	if !is {
		for _, other := range k.byReference[l.Reference] {
			if lostDigits(other.TheirID, l.TheirID) {
				return refused(l.Row, "", fmt.Sprintf("has the id %s, and an earlier file has %s for the same movement: a spreadsheet program changed it. Download the file again", l.TheirID, other.TheirID))
			}
		}
		t.Added++
		return nil
	}
	switch {
	case !sameMinute(old.At, l.At):
		return refused(l.Row, "", fmt.Sprintf("has the time %s, and an earlier file has %s: a spreadsheet program changed it. Download the file again", stamp(l.At), stamp(old.At)))
	case old.Reference != l.Reference:
		return refused(l.Row, "", "has a reference that differs from an earlier file: a spreadsheet program changed it. Download the file again")
	}
	if old.Statement != t.ID && changed(old, l) {
		t.Changed++
	}
	return nil
}

// lostDigits reports whether two ids are equal except for leading zeros or last digits that a spreadsheet dropped.
func lostDigits(whole, lost string) bool {
	const kept = 15 // digits of a number that a spreadsheet keeps
	switch {
	case whole == lost:
		return false
	case strings.TrimLeft(whole, "0") == strings.TrimLeft(lost, "0"):
		return true
	}
	return len(whole) > kept && len(whole) == len(lost) && whole[:kept] == lost[:kept] && strings.Trim(lost[kept:], "0") == ""
}

func stamp(at time.Time) string { return at.Format("2006-01-02 15:04:05") }

// sameMinute reports whether two times are equal. A spreadsheet may have dropped the seconds.
func sameMinute(a, b time.Time) bool {
	if a.Second() == 0 || b.Second() == 0 {
		a, b = a.Truncate(time.Minute), b.Truncate(time.Minute)
	}
	return a.Equal(b)
}

// changed reports whether a line is a new version of a stored line.
func changed(old, l Line) bool {
	return old.Status != l.Status || old.Amount != l.Amount || old.Fee != l.Fee
}

// checkDay refuses a line without a provider's id on a day that an earlier file already has.
func (t *taking) checkDay(l Line, k known) error {
	if !l.Day().Before(t.clock.Now().UTC().Truncate(24 * time.Hour)) {
		return refused(l.Row, "", "is of a day that is not over. Its lines have no id: import whole days")
	}
	if t.days[dayOf(l.At)]++; t.days[dayOf(l.At)] == 1 && len(t.days) > 3700 {
		return problem.Field("file", "must cover at most ten years")
	}
	if old, is := k.byIdentity[l.Identity]; !is || old.Statement == t.ID {
		t.Added++
	}
	return nil
}

// checkDays refuses a file that has only a part of a day. Lines without a provider's id are distinguished only within
// a whole day, so each day must have exactly the lines of the earlier file.
func (t *taking) checkDays(ctx context.Context) error {
	if len(t.days) == 0 {
		return nil
	}
	stored := map[int64]int{}
	err := t.db.Read(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		return tx.Query(countDays, []any{t.source.ID, dayOf(t.First), dayOf(t.Last), t.ID}, func(r *db.Row) error {
			var day, n int64
			err := r.Scan(&day, &n)
			stored[day] = int(n)
			return err
		})
	})
	if err != nil || len(stored) == 0 {
		return err
	}
	found := map[int64]int{}
	err = t.sets(func(set []Line) error {
		var k known
		if err := t.db.Read(db.Bulk(ctx, ""), func(tx *db.Tx) (err error) {
			k, err = t.knownOf(tx, set)
			return err
		}); err != nil {
			return err
		}
		for _, l := range set {
			day := dayOf(l.At)
			if l.TheirID != "" || stored[day] == 0 {
				continue
			}
			if _, is := k.byIdentity[l.Identity]; !is {
				return refused(l.Row, "", fmt.Sprintf("is not in the earlier file, which has other lines of %s. Give whole days, as they were downloaded", l.At.Format(time.DateOnly)))
			}
			found[day]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	for day, n := range found {
		if n != stored[day] {
			return problem.Field("file", fmt.Sprintf("has %d of the %d lines of %s that an earlier file has: give whole days", n, stored[day], time.Unix(day*86_400, 0).UTC().Format(time.DateOnly)))
		}
	}
	return nil
}

// write stores the statement, then its lines in sets, then the end. An interrupted import continues when the file is
// imported again.
func (t *taking) write(ctx context.Context) error {
	if !t.resumed {
		opening, closing := t.reader.Opening, t.reader.Closing
		if !t.reader.Chains {
			opening, closing = 0, 0
		}
		if err := t.db.Write(ctx, func(tx *db.Tx) error {
			_, err := tx.Exec(insertStatement, t.ID, t.source.ID, t.FileName, t.Digest, t.Uploader, t.UploaderName, int64(t.Statement.Lines), int64(t.Added), int64(t.Changed),
				t.Statement.First, t.Statement.Last, int64(opening), int64(closing), t.Statement.Chains, t.UploadedAt)
			return err
		}); err != nil {
			return err
		}
	}
	number := 0
	if err := t.sets(func(set []Line) error {
		number++
		for part := range slices.Chunk(set, pacedLines) {
			err := error(nil)
			if t.fresh[number-1] {
				err = t.storeFresh(ctx, part)
			}
			if !t.fresh[number-1] || errors.Is(err, db.ErrUnique) { // this server was paused, and another one went on
				err = t.storeSet(ctx, part)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	layout, err := json.Marshal(t.Layout)
	if err != nil {
		return fmt.Errorf("reconcile: encode the layout: %w", err)
	}
	return t.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(finishStatement, t.ID, t.clock.Now()); err != nil {
			return err
		}
		_, err := tx.Exec(confirmSource, t.source.ID, string(layout))
		return err
	})
}

// storeFresh stores a set of new lines. Unlike storeSet it reads nothing while it has the database's writer.
func (t *taking) storeFresh(ctx context.Context, set []Line) error {
	for i := range set {
		set[i].ID = newID()
	}
	return t.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		db.Insert(tx, "statement_lines", insertLines, set)
		return nil
	})
}

// storeSet stores the new lines of a set and the new versions of known ones.
func (t *taking) storeSet(ctx context.Context, set []Line) error {
	return t.db.Write(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		k, err := t.knownOf(tx, set)
		if err != nil {
			return err
		}
		var fresh []Line
		for _, l := range set {
			old, is := k.byIdentity[l.Identity]
			switch {
			case !is:
				l.ID = newID()
				fresh = append(fresh, l)
			case old.Statement != t.ID && changed(old, l):
				if _, err := tx.Exec(keepVersion, old.ID, int64(old.Version)); err != nil {
					return err
				}
				if _, err := tx.Exec(changeLine, old.ID, int64(old.Version), t.ID, int64(l.Row), string(l.Status), int64(l.Amount), int64(l.Fee), balanceOf(l)); err != nil {
					return err
				}
			}
		}
		db.Insert(tx, "statement_lines", insertLines, fresh)
		return nil
	})
}

// balanceOf returns the balance of a line as it is stored.
func balanceOf(l Line) *int64 {
	if !l.Balanced {
		return nil
	}
	balance := int64(l.Balance)
	return &balance
}
