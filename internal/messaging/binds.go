package messaging

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
)

// Bind is the state of the connections to one account at a message centre, as the node that has them reported it.
type Bind struct {
	Mode        tenant.Mode
	Name        string
	Connections int64
	Bound       int64
	Since       time.Time // time of the last change
	Why         string    // the last failure, while a connection is not bound
	SeenAt      time.Time
}

// The states of a bind.
const (
	BindUp     = "bound"
	BindPartly = "partly bound"
	BindDown   = "not bound"
	BindSilent = "not heard of" // no node has reported recently
)

// bindError is the maximum length of a stored failure in characters.
const bindError = 240

// bindReportLife is how long a node's report is valid. Nodes report every minute.
const bindReportLife = 3 * time.Minute

// State returns the state of the bind at a time.
func (b Bind) State(now time.Time) string {
	switch {
	case now.Sub(b.SeenAt) > bindReportLife:
		return BindSilent
	case b.Bound == 0:
		return BindDown
	case b.Bound < b.Connections:
		return BindPartly
	}
	return BindUp
}

const (
	dropBinds   = `DELETE FROM sms_binds WHERE mode = $1`
	selectBinds = `SELECT mode, name, connections, bound, since, why, seen_at FROM sms_binds ORDER BY mode, name`
)

var bindColumns = []db.Column[Bind]{
	{Name: "mode", Text: func(b Bind) string { return string(b.Mode) }},
	{Name: "name", Text: func(b Bind) string { return b.Name }},
	{Name: "connections", Int: func(b Bind) int64 { return b.Connections }},
	{Name: "bound", Int: func(b Bind) int64 { return b.Bound }},
	{Name: "since", Time: func(b Bind) time.Time { return b.Since }},
	{Name: "why", Text: func(b Bind) string { return b.Why }},
	{Name: "seen_at", Time: func(b Bind) time.Time { return b.SeenAt }},
}

// NoteBinds replaces the stored reports about a mode's binds. The node that has the connections calls it.
func (m *Messaging) NoteBinds(ctx context.Context, mode tenant.Mode, binds []Bind) error {
	rows := make([]Bind, len(binds))
	for i, b := range binds {
		rows[i] = b
		rows[i].Mode, rows[i].Why, rows[i].SeenAt = mode, usertext.Cut(b.Why, bindError), m.clock.Now()
	}
	return m.db.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(dropBinds, -1, string(mode))
		db.Insert(tx, "sms_binds", bindColumns, rows)
		return nil
	})
}

// Binds lists all reported binds, by mode and name.
func (m *Messaging) Binds(ctx context.Context) ([]Bind, error) {
	return db.ReadAll(ctx, m.db, selectBinds, nil, func(b *Bind, r *db.Row) error {
		var mode string
		err := r.Scan(&mode, &b.Name, &b.Connections, &b.Bound, &b.Since, &b.Why, &b.SeenAt)
		b.Mode = tenant.Mode(mode)
		return err
	})
}
