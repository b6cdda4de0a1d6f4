package notice

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
)

// Fact is something of which people are notified.
type Fact struct {
	Event   Event
	Place   string // place whose people read it: a tenant's id, or roles.Installation
	Person  string // its only reader; empty: everybody at the place who may see it
	Actor   string // id of the person who caused it and gets no notice
	Subject string // the id of the subject
	Lines   []string
	Things  int // number of facts of the same event that it stands for; 0: one
}

const insertNotice = `INSERT INTO notices (id, event, place, person, actor, subject, lines, things, made_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// Write stores a fact in the transaction that makes it. The readers are found later, so the transaction reads nothing for it.
// Write returns the id of the notice.
func Write(tx *db.Tx, at time.Time, f Fact) string {
	id := uuid.Must(uuid.NewV7()).String()
	tx.Defer(insertNotice, 1, id, string(f.Event), f.Place, f.Person, f.Actor, f.Subject, strings.Join(first(f.Lines), "\n"), max(f.Things, 1), at)
	return id
}

// first returns the first lines of a fact, without complete numbers.
func first(lines []string) []string {
	var kept []string
	for _, l := range lines[:min(len(lines), mostLines)] {
		kept = append(kept, line(l))
	}
	return kept
}

// stored is a fact in stored form.
type stored struct {
	id                   string
	event                Event
	place, person, actor string
	subject              string
	lines                []string
	things               int
	madeAt               time.Time
}

const noticeColumns = `n.id, n.event, n.place, n.person, n.actor, n.subject, n.lines, n.things, n.made_at`

func (f *stored) scan(r *db.Row) error {
	var lines string
	err := r.Scan(&f.id, &f.event, &f.place, &f.person, &f.actor, &f.subject, &lines, &f.things, &f.madeAt)
	if lines != "" {
		f.lines = strings.Split(lines, "\n")
	}
	return err
}
