package batch

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// namesKind is the kind of the job that looks up registered names. Stored; never renamed.
const namesKind = "batch-names"

// Limits of lookups of names.
const (
	MaxLookups  = 20_000 // lookups for the drafts of one account in a day
	namesAtOnce = 20     // lookups in one run of the job
	namesSlots  = 5      // number of these lookups that run at the same time
	namesPause  = time.Second
	namesTries  = 5 // runs without an answer, after which a name is unknown
	namesRetry  = 30 * time.Second
	namesWait   = 10 * time.Minute // pause until the account may look up more names
	nameFresh   = 30 * time.Minute // maximum age of names at an approval
	maxFound    = 100
)

const (
	selectUnasked = `SELECT ` + rowColumns + ` FROM batch_rows WHERE batch = $1 AND line >= $2 AND state = 'ready' AND named = '' AND (bank <> '' OR $3 = 'all') ORDER BY line LIMIT $4`

	selectNamed = `SELECT ` + rowColumns + ` FROM batch_rows WHERE batch = $1 AND line >= $2 AND state = 'ready' AND registered <> '' ORDER BY line LIMIT $3`

	countUnasked = `SELECT count(*) FROM batch_rows WHERE batch = $1 AND state = 'ready' AND bank <> '' AND named = ''`

	// A draft looks up again the names that changed while it was requested.
	forgetChanged = `UPDATE batch_rows SET registered = '', named = '', name_rail = '' WHERE batch = $1 AND named = 'changed'`

	updateNames = `UPDATE batch_rows SET registered = r.registered, named = r.named, name_rail = r.name_rail FROM rows($1) AS r WHERE batch_rows.batch IN (r.batch) AND batch_rows.line = r.line`

	takeLookups = `INSERT INTO batch_lookups (tenant, day, asked) VALUES ($1, $2, $3) ON CONFLICT (tenant, day) DO UPDATE SET asked = batch_lookups.asked + excluded.asked`

	lookupsOfDay = `SELECT asked FROM batch_lookups WHERE tenant = $1 AND day = $2`

	oldLookups = `DELETE FROM batch_lookups WHERE day < $1`

	differingRows = `SELECT ` + rowColumns + ` FROM batch_rows WHERE batch = $1 AND named NOT IN ('', 'same', 'found') AND state = 'ready'
ORDER BY CASE named WHEN 'changed' THEN 0 WHEN 'different' THEN 1 WHEN 'unknown' THEN 2 ELSE 3 END, line LIMIT $2`
)

var nameColumns = []db.Column[storedRow]{
	{Name: "batch", Text: func(r storedRow) string { return r.batch }},
	{Name: "line", Int: func(r storedRow) int64 { return int64(r.Line) }},
	{Name: "registered", Text: func(r storedRow) string { return r.Registered }},
	{Name: "named", Text: func(r storedRow) string { return string(r.Named) }},
	{Name: "name_rail", Text: func(r storedRow) string { return r.NameRail }},
}

// AskNames starts the lookup of missing registered names of a draft. also runs in the same transaction, for example
// to write the entry of the audit log.
func (s *Batches) AskNames(ctx context.Context, tenant, id string, also func(*db.Tx) error) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		b, err := lock(tx, tenant, id)
		switch {
		case err != nil:
			return err
		case b.Status != Draft:
			return problem.New(problem.Invalid, "batch_frozen", "The batch is "+b.Status.words()+": its names cannot be looked up")
		case b.namesNext > 0 && b.Scope == ScopeAll:
			return problem.New(problem.Invalid, "names_pending", "The names are being looked up already")
		}
		b.Scope = ScopeAll
		if err := s.startNames(tx, b); err != nil || also == nil {
			return err
		}
		return also(tx)
	})
}

// startNames adds the job that looks up names from the first row on, and stores the batch.
func (s *Batches) startNames(tx *db.Tx, b Batch) error {
	b.namesNext = 1
	if b.NamesAt.IsZero() || b.Status != Draft {
		b.NamesAt = s.clock.Now()
	}
	if err := s.store(tx, b); err != nil {
		return err
	}
	s.jobs.Add(tx, jobs.Job{ID: b.ID + "/" + strconv.FormatInt(b.version, 10), Kind: namesKind, Subject: b.ID, Payload: payloadOf(b)})
	return nil
}

// LooksUp reports whether names of the batch are being looked up.
func (b Batch) LooksUp() bool { return b.namesNext > 0 }

// Differs returns the number of rows of a draft or request whose registered name differs from the name in the file.
func (b Batch) Differs() int {
	if b.tally == nil {
		return 0
	}
	return b.tally.Names[NameDifferent]
}

// namesAge returns the age of the oldest registered name of a batch.
func (s *Batches) namesAge(b Batch) time.Duration { return s.clock.Since(b.NamesAt) }

// errNamesPending is returned where names are still being looked up.
var errNamesPending = problem.New(problem.InProgress, "names_pending", "The registered names are being looked up: try again when that is done")

// banksNamed refuses a request with bank accounts whose registered name is missing. It starts their lookup if nobody
// did.
func (s *Batches) banksNamed(ctx context.Context, b Batch) error {
	if b.tally.Unnamed == 0 {
		return nil
	}
	unasked := 0
	err := s.db.Write(db.Bulk(ctx, b.Tenant), func(tx *db.Tx) error {
		is, err := lock(tx, b.Tenant, b.ID)
		if err != nil {
			return err
		}
		if _, err := tx.One(countUnasked, []any{b.ID}, &unasked); err != nil || unasked == 0 || is.Status != Draft || is.LooksUp() {
			return err
		}
		if is.Scope == ScopeNone {
			is.Scope = ScopeBanks
		}
		return s.startNames(tx, is)
	})
	if err != nil {
		return err
	}
	if unasked > 0 {
		return errNamesPending
	}
	return problem.New(problem.Invalid, "names_unknown", fmt.Sprintf("%d rows go to bank accounts whose registered name is unknown: correct or drop them", b.tally.Unnamed))
}

// namesStand refuses to start a batch whose names changed after its request. If the names are too old, they are
// looked up again first, while the request waits.
func (s *Batches) namesStand(ctx context.Context, b Batch) error {
	c, err := s.Count(ctx, b)
	switch {
	case err != nil:
		return err
	case c.Names[NameChanged] > 0:
		return problem.New(problem.Invalid, "changed_since", fmt.Sprintf("The registered names of %d rows changed since this request", c.Names[NameChanged]))
	case c.named() == 0:
		return nil
	case b.LooksUp():
		return errNamesPending
	case s.namesAge(b) <= nameFresh:
		return nil
	}
	err = s.db.Write(ctx, func(tx *db.Tx) error {
		is, err := lock(tx, b.Tenant, b.ID)
		if err != nil || is.Status != Requested || is.LooksUp() {
			return err
		}
		return s.startNames(tx, is)
	})
	if err == nil {
		err = errNamesPending
	}
	return err
}

// registerNames registers the job that looks up names.
func (s *Batches) registerNames() {
	s.jobs.Register(jobs.Handler{Kind: namesKind, Workers: 4, Tenant: tenantOf, PerTurn: func(string, string) int { return 1 }, Run: func(ctx context.Context, j jobs.Job) jobs.Outcome {
		return s.runNames(ctx, tenantOf(j), j.Subject, j.Tries)
	}})
}

// runNames looks up the next names of a draft, or the names of a request again. It continues at the line stored in
// the batch's row.
func (s *Batches) runNames(ctx context.Context, tenant, id string, tries int) jobs.Outcome {
	b, err := s.Get(ctx, tenant, id)
	if problem.Is(err, problem.NotFound) || err == nil && (b.namesNext == 0 || b.Status != Draft && b.Status != Requested) {
		return jobs.Done()
	}
	var rows []Row
	if err == nil {
		rows, err = s.nextNames(ctx, b)
	}
	if err == nil && b.Status == Draft && len(rows) > 0 {
		allowed := 0
		if allowed, err = s.mayLookUp(ctx, tenant, len(rows)); err == nil && allowed == 0 {
			return jobs.Later(namesWait)
		}
		rows = rows[:allowed]
	}
	if err != nil {
		return jobs.RetryAfter(troubleTime, err)
	}
	answers := s.lookUp(ctx, tenant, rows)
	for i, a := range answers {
		if a.err != nil && (i > 0 || tries < namesTries) { // the next run begins with this row
			rows, answers, err = rows[:i], answers[:i], a.err
			break
		}
	}
	if len(rows) == 0 && err != nil {
		return jobs.RetryAfter(namesRetry, err)
	}
	if err := s.writeNames(ctx, b, rows, answers); err != nil {
		return jobs.RetryAfter(troubleTime, err)
	}
	if len(rows) == 0 {
		return jobs.Done()
	}
	return jobs.Later(namesPause)
}

// nextNames reads the rows whose names are looked up next.
func (s *Batches) nextNames(ctx context.Context, b Batch) (rows []Row, err error) {
	sql, args := selectUnasked, []any{b.ID, int64(b.namesNext), string(b.Scope), int64(namesAtOnce)}
	if b.Status == Requested {
		sql, args = selectNamed, []any{b.ID, int64(b.namesNext), int64(namesAtOnce)}
	}
	return db.ReadAll(db.Bulk(ctx, b.Tenant), s.db, sql, args, (*Row).scan)
}

// dayOf returns the number of a day since 1970.
func dayOf(c *clock.Clock) int64 { return c.Now().Unix() / 86_400 }

// mayLookUp counts lookups of an account, and returns how many of them it may make today.
func (s *Batches) mayLookUp(ctx context.Context, tenant string, n int) (allowed int, err error) {
	err = s.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		if _, err := tx.Exec(takeLookups, tenant, dayOf(s.clock), int64(0)); err != nil { // from here on the row of the counter is locked
			return err
		}
		asked := 0
		if _, err := tx.One(lookupsOfDay, []any{tenant, dayOf(s.clock)}, &asked); err != nil {
			return err
		}
		if allowed = min(n, max(0, s.maxLookups-asked)); allowed == 0 {
			return nil
		}
		_, err := tx.Exec(takeLookups, tenant, dayOf(s.clock), int64(allowed))
		return err
	})
	return allowed, err
}

// found is the result of a lookup: a name, "" if no provider knows the account, or err if no provider answered. rail
// returned the name of a bank account.
type found struct {
	name, rail string
	err        error
}

// lookUp looks up the names of rows, a few at a time.
func (s *Batches) lookUp(ctx context.Context, tenant string, rows []Row) []found {
	answers := make([]found, len(rows))
	slots := make(chan struct{}, namesSlots)
	var all sync.WaitGroup
	for i, r := range rows {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			answers[i] = s.nameOf(ctx, tenant, r)
		})
	}
	all.Wait()
	return answers
}

func (s *Batches) nameOf(ctx context.Context, tenant string, r Row) (a found) {
	if r.Bank != "" {
		a.name, a.rail, a.err = s.lookups.PayeeName(ctx, tenant, r.Bank, r.Account, r.Amount)
	} else {
		a.name, a.err = s.lookups.WalletName(ctx, tenant, msisdn.Network(r.Channel), msisdn.MSISDN(r.Account))
	}
	if e := problem.From(a.err); e != nil && (e.Kind == problem.Invalid || e.Code == "not_served") {
		return found{}
	}
	a.name = usertext.Cut(a.name, maxFound)
	return a
}

// writeNames stores results and the line at which the next run continues. Without rows the lookup has ended.
func (s *Batches) writeNames(ctx context.Context, read Batch, rows []Row, answers []found) error {
	return s.db.Write(db.Bulk(ctx, read.Tenant), func(tx *db.Tx) error {
		b, err := lock(tx, read.Tenant, read.ID)
		if err != nil || b.Status != read.Status || b.namesNext != read.namesNext {
			return err // the batch was withdrawn, or another run stored the names first
		}
		if err := b.counted(tx); err != nil {
			return err
		}
		b.namesNext = 0
		var changed []storedRow
		for i, r := range rows {
			b.namesNext = r.Line + 1
			is, err := rowOf(tx, b.ID, r.Line)
			if err != nil {
				return err
			}
			if is.State != r.State || is.Account != r.Account || is.Bank != r.Bank || is.Channel != r.Channel || is.Name != r.Name {
				continue // a person corrected the row meanwhile
			}
			if old := is; is.named(b.Status, answers[i]) {
				b.replaces(old, is)
				changed = append(changed, storedRow{batch: b.ID, Row: is})
			}
		}
		if len(changed) > 0 {
			if _, err := tx.Exec(updateNames, db.RowsOf(nameColumns, changed)); err != nil {
				return err
			}
		}
		return s.store(tx, b)
	})
}

// named applies the answer of a lookup, and reports whether it changed the row. The name of a request is never replaced.
func (r *Row) named(s Status, a found) bool {
	if s == Requested {
		switch {
		case a.err != nil || a.name == r.Registered && a.rail == r.NameRail:
			return false
		case a.name == r.Registered:
			r.NameRail = a.rail
		default:
			r.Named = NameChanged
		}
		return true
	}
	r.Registered, r.NameRail, r.Named = a.name, a.rail, compareNames(r.Name, a.name)
	return true
}

// Differing lists ready rows whose registered name changed, differs, is unknown or is near, in this order.
func (s *Batches) Differing(ctx context.Context, b Batch, limit int) ([]Row, error) {
	return db.ReadAll(db.Bulk(ctx, b.Tenant), s.db, differingRows, []any{b.ID, int64(limit)}, (*Row).scan)
}
