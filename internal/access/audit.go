package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
)

// Entry is one act of an operator.
type Entry struct {
	ID      string // made by Audit when empty
	At      time.Time
	Actor   string // who: "cli:ama" for the command line
	Action  string // what, in one stable word: "tenant.set"
	Tenant  string // whom it concerns; empty for the installation
	Subject string // the thing acted on: an id, a name
	Reason  string // why, in the operator's words
	Details any    // before and after, as JSON; nothing secret
}

const insertAudit = `INSERT INTO audit_log (tenant, id, at, actor, action, subject, reason, details)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

// Audit writes an act down in the transaction that does it, so that there is
// never one without the other.
func (a *Access) Audit(tx *db.Tx, e Entry) error {
	if e.Actor == "" || e.Action == "" {
		return errors.New("access: an audit entry without actor or action")
	}
	details := []byte("{}")
	if e.Details != nil {
		var err error
		if details, err = json.Marshal(e.Details); err != nil {
			return fmt.Errorf("access: audit details: %w", err)
		}
	}
	if e.ID == "" {
		e.ID = uuid.Must(uuid.NewV7()).String()
	}
	tx.Defer(insertAudit, 1, e.Tenant, e.ID, a.clock.Now(), e.Actor, e.Action, e.Subject, e.Reason, string(details))
	return nil
}

// AuditFilter narrows the log. Empty members do not.
type AuditFilter struct {
	Tenant  string
	Actor   string
	Action  string
	Subject string // the thing acted on; a tenant should be named with it
	Before  string // only entries older than the one with this id
	Limit   int    // at most so many, 100 when zero
}

const selectAudit = `SELECT tenant, id, at, actor, action, subject, reason, details FROM audit_log
	WHERE ($1 = '' OR tenant = $1) AND ($2 = '' OR actor = $2) AND ($3 = '' OR action = $3) AND ($4 = '' OR id < $4)
	AND ($6 = '' OR subject = $6) ORDER BY id DESC LIMIT $5`

// AuditLog gives entries, newest first. Their Details are json.RawMessage.
func (a *Access) AuditLog(ctx context.Context, f AuditFilter) ([]Entry, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	var entries []Entry
	err := a.db.Read(ctx, func(tx *db.Tx) error {
		entries = nil
		return tx.Query(selectAudit, []any{f.Tenant, f.Actor, f.Action, f.Before, f.Limit, f.Subject}, func(r *db.Row) error {
			var e Entry
			var details string
			if err := r.Scan(&e.Tenant, &e.ID, &e.At, &e.Actor, &e.Action, &e.Subject, &e.Reason, &details); err != nil {
				return err
			}
			e.Details = json.RawMessage(details)
			entries = append(entries, e)
			return nil
		})
	})
	return entries, err
}

const selectAudited = `SELECT 1 FROM audit_log WHERE tenant = $1 AND id = $2`

// Audited says whether the entry with this id is in the log: when the answer
// to a commit was lost, it says whether the act happened.
func (a *Access) Audited(tx *db.Tx, tenant, id string) (bool, error) {
	var one int64
	return tx.One(selectAudited, []any{tenant, id}, &one)
}
