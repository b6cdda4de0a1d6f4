// Package audit records the actions of people: actor, address, reason, and the values before and after. An entry is
// written in the transaction of its action, so neither exists without the other.
//
// The log can be verified. One node links the committed entries into a chain. A link has a number and a keyed hash
// over its entry and the previous link. The key of the chain is sealed under the master key, together with the last
// link that was made without a key. The head, which is the last link, is stored in a sealed row of its own. Verify
// finds entries that were changed, removed or inserted, links that were moved or made without the key, and a
// truncated end. An older copy of the whole database is detected with a head that was stored elsewhere. The head is
// logged once an hour, and Verify compares the chain with such a head.
//
// A server verifies the end of the chain every ten minutes, and the whole log once a day, in sets. It stores the position
// of the whole check, with a keyed hash, so that another node goes on from there.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Log is the audit log. It is safe for concurrent use.
type Log struct {
	db      *db.DB
	clock   *clock.Clock
	journal Journal
	sealer  *config.Sealer // opens the chain's key; nil without a master key
	set     int            // number of entries or links that the whole check reads in one transaction
	written func(*db.Tx, Entry)
}

// setOfLinks is the number of links or entries that one transaction of the whole check reads.
const setOfLinks = 5_000

// New returns a Log.
func New(d *db.DB, c *clock.Clock) *Log { return &Log{db: d, clock: c, set: setOfLinks} }

// Keeping returns the log with a journal for WriteNoted.
func (l *Log) Keeping(j Journal) *Log {
	kept := *l
	kept.journal = j
	return &kept
}

// Keyed returns the log with the master keys. The key of the chain is sealed under them.
func (l *Log) Keyed(ring config.Secret) *Log {
	keyed := *l
	keyed.sealer = ring.Sealer("audit/chain")
	return &keyed
}

// Followed returns the log with a function that is called for each entry, in the transaction that writes the entry.
// The function must not read from the transaction; it may add writes. The Details of its entry are JSON.
func (l *Log) Followed(written func(*db.Tx, Entry)) *Log {
	followed := *l
	followed.written = written
	return &followed
}

// Entry is one action of a person.
type Entry struct {
	ID      string // Write sets it if it is empty
	At      time.Time
	Actor   string // the person for readers: an e-mail address, "cli:ama" for the command line, or BreakGlass and a user
	Person  string // id of the person; empty for a command that names no person
	Origin  string // an address, or the machine of a command
	Action  string // what, in one stable word: "tenant.set"
	Tenant  string // tenant that the action concerns; empty: the installation
	Subject string // id or name of the changed object
	Reason  string // as the person wrote it
	Details any    // values before and after, as JSON; no secrets
	Link    int64  // number in the chain; 0: not linked yet. Write ignores it.
}

// BreakGlass is the prefix of the actor in an entry about a command that was run in production without a person. The
// name of the machine's user follows.
const BreakGlass = "break-glass:"

// BrokeGlass reports whether the entry is about a command with --break-glass.
func (e Entry) BrokeGlass() bool { return e.Person == "" && strings.HasPrefix(e.Actor, BreakGlass) }

const countBrokeGlass = `SELECT count(*) FROM audit_log WHERE id >= $1 AND person = '' AND actor LIKE 'break-glass:%'`

// BrokeGlassSince counts the entries about commands with --break-glass since a time.
func (l *Log) BrokeGlassSince(ctx context.Context, since time.Time) (n int, err error) {
	_, err = l.db.ReadOne(ctx, countBrokeGlass, []any{firstID(since)}, &n)
	return n, err
}

// firstID returns an id that sorts before all ids that are made at or after a time.
func firstID(at time.Time) string {
	var id uuid.UUID
	ms := uint64(max(at.UnixMilli(), 0))
	for n := range 6 {
		id[n] = byte(ms >> (40 - 8*n))
	}
	return id.String()
}

// A Change is one changed value, in the details of an entry. Values are in units for people. A value that did not
// exist before is empty.
type Change struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Changes returns the changes in the details of an entry that was read. It returns none if an earlier version wrote
// details of another form.
func (e Entry) Changes() []Change {
	var details struct{ Changes []Change }
	raw, _ := e.Details.(json.RawMessage)
	if json.Unmarshal(raw, &details) != nil {
		return nil
	}
	return details.Changes
}

const insertEntry = `INSERT INTO audit_log (tenant, id, at, actor, action, subject, reason, details, person, origin)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

// Write writes an entry in the transaction of its action. The entry is linked to the chain later.
func (l *Log) Write(tx *db.Tx, e Entry) error {
	_, err := l.write(tx, e)
	return err
}

// Writing returns a function that writes an entry. It is for a caller that opens no transaction itself: the code that
// performs the action runs the function in its transaction.
func (l *Log) Writing(e Entry) func(*db.Tx) error {
	return func(tx *db.Tx) error { return l.Write(tx, e) }
}

// write is Write, and returns the stored entry.
func (l *Log) write(tx *db.Tx, e Entry) (Entry, error) {
	if e.Actor == "" || e.Action == "" {
		return e, errors.New("audit: an entry without actor or action")
	}
	details := []byte("{}")
	if e.Details != nil {
		var err error
		if details, err = json.Marshal(e.Details); err != nil {
			return e, fmt.Errorf("audit: encode the details: %w", err)
		}
	}
	if e.ID == "" {
		e.ID = uuid.Must(uuid.NewV7()).String()
	}
	e.At, e.Details = l.clock.Now(), json.RawMessage(details)
	tx.Defer(insertEntry, 1, e.Tenant, e.ID, e.At, e.Actor, e.Action, e.Subject, e.Reason, string(details), e.Person, e.Origin)
	if l.written != nil {
		l.written(tx, e)
	}
	return e, nil
}

// WriteNoted is Write for a change of money, keys or policy. After the commit the entry is also written to the
// journal, which survives a restore of the database.
func (l *Log) WriteNoted(tx *db.Tx, e Entry) error {
	if e.ID == "" {
		e.ID = uuid.Must(uuid.NewV7()).String()
	}
	e.At = l.clock.Now()
	tx.AfterCommit(func() { l.journal.Add(e) })
	return l.Write(tx, e)
}

// Record writes an entry in its own transaction. It is for actions that change nothing else, such as reading or
// exporting data.
func (l *Log) Record(ctx context.Context, e Entry) error {
	e.ID = uuid.Must(uuid.NewV7()).String()
	landed := func(tx *db.Tx) (bool, error) { return l.Landed(tx, e.Tenant, e.ID) }
	return l.db.WriteRecognising(ctx, landed, func(tx *db.Tx) error { return l.Write(tx, e) })
}

// RecordOnce is Record for repeated events. Of all calls with the same key within a period, on all nodes, only the
// first writes an entry.
func (l *Log) RecordOnce(ctx context.Context, key string, period time.Duration, e Entry) error {
	begun := l.clock.Now().Truncate(period)
	e.ID = idOf(begun, key+" "+begun.String())
	err := l.db.Write(ctx, func(tx *db.Tx) error {
		if there, err := l.Landed(tx, e.Tenant, e.ID); err != nil || there {
			return err
		}
		return l.Write(tx, e)
	})
	if errors.Is(err, db.ErrUnique) { // another call stored the entry first
		err = nil
	}
	return err
}

// idOf returns a UUID of version 7 for a time. Its random part is a hash of the key.
func idOf(at time.Time, key string) string {
	sum := sha256.Sum256([]byte(key))
	id := uuid.UUID(sum[:16])
	ms := uint64(at.UnixMilli())
	for n := range 6 {
		id[n] = byte(ms >> (40 - 8*n))
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id.String()
}

// Filter selects entries. Empty fields match everything.
type Filter struct {
	Tenant  string
	Actor   string
	Action  string
	Subject string // id or name of the changed object; needs Tenant to be fast
	Before  string // only entries older than the entry with this id
	Words   string // only entries whose texts contain each of these words, in upper or lower case
	From    time.Time
	To      time.Time // only entries before this time
	Limit   int       // maximum number of entries; 0 means 100
}

// entryColumns are the columns of an entry, for scan.
const entryColumns = `a.tenant, a.id, a.at, a.actor, a.person, a.origin, a.action, a.subject, a.reason, a.details`

func scan(r *db.Row, e *Entry, more ...any) error {
	var details string
	err := r.Scan(append([]any{&e.Tenant, &e.ID, &e.At, &e.Actor, &e.Person, &e.Origin, &e.Action, &e.Subject, &e.Reason, &details}, more...)...)
	e.Details = json.RawMessage(details)
	return err
}

const selectEntries = `SELECT ` + entryColumns + `, coalesce(c.number, 0)
	FROM audit_log a LEFT JOIN audit_chain c ON c.tenant = a.tenant AND c.entry = a.id
	WHERE ($1 = '' OR a.tenant = $1) AND ($2 = '' OR a.actor = $2) AND ($3 = '' OR a.action = $3) AND ($4 = '' OR a.id < $4)
	AND ($6 = '' OR a.subject = $6) AND (a.at >= $7 OR $7 = 0) AND (a.at < $8 OR $8 = 0)%s ORDER BY a.id DESC LIMIT $5`

// hasWord selects entries with a word in any of their texts.
const hasWord = ` AND lower(a.actor || ' ' || a.origin || ' ' || a.action || ' ' || a.subject || ' ' || a.reason || ' ' || a.details) LIKE $%d ESCAPE '!'`

// maxWords is the maximum number of words of a filter.
const maxWords = 8

var escapeWord = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

// Valid returns an error for a filter that List would refuse.
func (f Filter) Valid() error {
	if len(strings.Fields(f.Words)) > maxWords {
		return problem.Field("words", fmt.Sprintf("must be at most %d words", maxWords))
	}
	return nil
}

// query returns the SQL of a filter and its arguments.
func (f Filter) query() (sql string, args []any, err error) {
	if err := f.Valid(); err != nil {
		return "", nil, err
	}
	words := strings.Fields(strings.ToLower(f.Words))
	args = []any{f.Tenant, f.Actor, f.Action, f.Before, f.Limit, f.Subject, f.From, f.To}
	var conditions strings.Builder
	for _, w := range words {
		args = append(args, "%"+escapeWord.Replace(w)+"%")
		fmt.Fprintf(&conditions, hasWord, len(args))
	}
	return fmt.Sprintf(selectEntries, conditions.String()), args, nil
}

// List returns entries, newest first. Their Details are json.RawMessage.
func (l *Log) List(ctx context.Context, f Filter) ([]Entry, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	sql, args, err := f.query()
	if err != nil {
		return nil, err
	}
	return db.ReadAll(ctx, l.db, sql, args, func(e *Entry, r *db.Row) error { return scan(r, e, &e.Link) })
}

const newestEntry = `SELECT at FROM audit_log ORDER BY id DESC LIMIT 1`

// Newest returns when the newest entry was written, by the clock of the process that wrote it. It is zero if there is
// no entry.
func Newest(ctx context.Context, d *db.DB) (at time.Time, err error) {
	_, err = d.ReadOne(ctx, newestEntry, nil, &at)
	return at, err
}

const selectLanded = `SELECT 1 FROM audit_log WHERE tenant = $1 AND id = $2`

// Landed reports whether the log has the entry with this id. If the response to a COMMIT is lost, it shows whether
// the action happened.
func (l *Log) Landed(tx *db.Tx, tenant, id string) (bool, error) {
	var one int64
	return tx.One(selectLanded, []any{tenant, id}, &one)
}

// Linked is an entry with its link. If it has no link, LinkedAt is zero.
type Linked struct {
	Entry
	LinkedAt time.Time
	Hash     string
}

const (
	exportAtOnce = 500

	selectLinks = `SELECT ` + entryColumns + `, c.number, c.linked_at, c.hash
		FROM audit_chain c JOIN audit_log a ON a.tenant = c.tenant AND a.id = c.entry
		WHERE c.number > $1 ORDER BY c.number LIMIT $2`

	selectLoose = `SELECT ` + entryColumns + `, 0, 0, '' FROM audit_log a WHERE a.id > $1 AND NOT EXISTS (
		SELECT 1 FROM audit_chain c WHERE c.tenant = a.tenant AND c.entry = a.id) ORDER BY a.id LIMIT $2`
)

// Export calls each for every entry in the order of the chain, and then for the entries that are not linked yet.
func (l *Log) Export(ctx context.Context, each func(Linked) error) error {
	last := int64(0)
	err := l.pages(ctx, selectLinks, func() any { return last }, func(e Linked) error { last = e.Link; return each(e) })
	if err != nil {
		return err
	}
	loose := ""
	return l.pages(ctx, selectLoose, func() any { return loose }, func(e Linked) error { loose = e.ID; return each(e) })
}

// pages reads a list in pages by its key, so that no transaction waits for a slow reader.
func (l *Log) pages(ctx context.Context, query string, after func() any, each func(Linked) error) error {
	for {
		var page []Linked
		err := l.db.Read(ctx, func(tx *db.Tx) error {
			page = page[:0]
			return tx.Query(query, []any{after(), exportAtOnce}, func(r *db.Row) error {
				var e Linked
				err := scan(r, &e.Entry, &e.Link, &e.LinkedAt, &e.Hash)
				page = append(page, e)
				return err
			})
		})
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := each(e); err != nil {
				return err
			}
		}
		if len(page) < exportAtOnce {
			return nil
		}
	}
}
