package frame

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
)

// NotNoted returns the error for a change that was applied but not written to the journal.
func NotNoted(e *Env) func(string, error) {
	return func(path string, err error) {
		fmt.Fprintf(e.Stderr, "makola: The change is applied, but could not be written to the journal %s: %v\n", path, err)
	}
}

// Change applies a change of an operator in one transaction with its audit entry. The entry shows whether a transaction
// with a lost answer was committed. work may run twice; its result becomes the details of the entry.
func (o *Opened) Change(ctx context.Context, e audit.Entry, work func(*db.Tx) (details any, err error)) error {
	e.ID, e.Actor = NewID(), o.Actor
	done := func(tx *db.Tx) (bool, error) { return o.Log.Landed(tx, e.Tenant, e.ID) }
	return o.DB.WriteRecognising(ctx, done, func(tx *db.Tx) error {
		details, err := work(tx)
		if err != nil {
			return err
		}
		entry := e
		entry.Details = details
		return o.audit(tx, entry)
	})
}

// audit writes an entry in the transaction of its action, and into the journal after the commit. The same transaction
// checks the person of the token.
func (o *Opened) audit(tx *db.Tx, e audit.Entry) error {
	if err := o.allow(tx); err != nil {
		return err
	}
	e.Person = o.By.Visitor.Person.ID
	if e.Reason == "" {
		e.Reason = o.reason
	}
	if e.ID == "" {
		e.ID = NewID()
	}
	if err := o.journalReady(); err != nil {
		return err
	}
	e.At, e.Origin = o.Clock.Now(), Origin()
	tx.AfterCommit(func() { o.Journal.Add(e) })
	return o.Log.Write(tx, e)
}

// Audited returns a function that writes the audit entry of an operator's action, in the transaction of the
// action.
func (o *Opened) Audited(entry audit.Entry) func(*db.Tx) error {
	entry.ID, entry.Actor = NewID(), o.Actor
	return func(tx *db.Tx) error { return o.audit(tx, entry) }
}

// A Change is an audit.Change that a command records.
type Change audit.Change

// WithChanges adds the changes of an action to its details.
func WithChanges(list []Change, more ...map[string]any) map[string]any {
	details := map[string]any{"changes": list}
	for _, m := range more {
		for name, value := range m {
			details[name] = value
		}
	}
	return details
}
