package book

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

// Limits of notes.
const (
	MaxNote  = 500 // characters
	maxNotes = 100 // of one payment
)

// Note is a note of an operator about a payment. Accounts never see it.
type Note struct {
	Payment    string
	ID         string // comes from the form, so that a form sent twice stores one note
	Author     string // id of the person
	AuthorName string
	At         time.Time
	Text       string
}

// Owner is the person who takes care of a payment that needs attention. The zero value means that nobody does.
type Owner struct {
	Person string // id
	Name   string
	At     time.Time
}

// Care is the owner of a payment and the newest note about it.
type Care struct {
	Owner Owner
	Note  Note
}

const (
	noteColumns = `n.payment, n.id, n.author, n.author_name, n.at, n.text`

	selectNotes = `SELECT ` + noteColumns + ` FROM payment_notes n WHERE n.payment = $1 ORDER BY n.at DESC, n.id DESC LIMIT $2`

	selectOwner = `SELECT person, name, at FROM payment_owners WHERE payment = $1`

	ownersOf = `SELECT payment, person, name, at FROM payment_owners WHERE payment IN (SELECT value FROM texts($1))`

	newestNotesOf = `SELECT ` + noteColumns + ` FROM payment_notes n WHERE n.payment IN (SELECT value FROM texts($1))
		AND NOT EXISTS (SELECT 1 FROM payment_notes later WHERE later.payment = n.payment AND (later.at > n.at OR later.at = n.at AND later.id > n.id))`

	ownersOfStuck = `SELECT DISTINCT o.person, o.name FROM payment_owners o JOIN payments p ON p.id = o.payment WHERE p.escalated_at IS NOT NULL ORDER BY o.name, o.person LIMIT $1`

	// lockParty locks the payment's row, so that a note and an erasure cannot run at once. It returns an error if the
	// party is erased.
	lockParty = `UPDATE payments SET account = account WHERE id = $1 AND account <> $2`

	countNotes = `SELECT count(*) FROM payment_notes WHERE payment = $1`

	insertNote = `INSERT INTO payment_notes (payment, id, author, author_name, at, text) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (payment, id) DO NOTHING`

	takePayment = `INSERT INTO payment_owners (payment, person, name, at) SELECT id, $2, $3, $4 FROM payments WHERE id = $1 AND escalated_at IS NOT NULL
		ON CONFLICT (payment) DO NOTHING`

	releasePayment = `DELETE FROM payment_owners WHERE payment = $1 AND person = $2`

	eraseNotes = `UPDATE payment_notes SET text = $2 WHERE payment = $1`
)

func (n *Note) scan(r *db.Row) error {
	return r.Scan(&n.Payment, &n.ID, &n.Author, &n.AuthorName, &n.At, &n.Text)
}

// Notes returns the notes about a payment, newest first, and the payment's owner.
func (rd *Reader) Notes(ctx context.Context, payment string) (list []Note, owner Owner, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		owner = Owner{}
		list, err = db.All(tx, selectNotes, []any{payment, int64(maxNotes)}, (*Note).scan)
		if err == nil {
			_, err = tx.One(selectOwner, []any{payment}, &owner.Person, &owner.Name, &owner.At)
		}
		return err
	})
	return list, owner, err
}

// OwnersOfStuck returns the people who take care of payments that need attention, up to most of them, by name. Their times are zero.
func (rd *Reader) OwnersOfStuck(ctx context.Context, most int) ([]Owner, error) {
	return db.ReadAll(ctx, rd.db, ownersOfStuck, []any{int64(most)}, func(o *Owner, r *db.Row) error { return r.Scan(&o.Person, &o.Name) })
}

// Cares returns the owners and the newest notes of payments, by payment. Payments without both are absent.
func (rd *Reader) Cares(ctx context.Context, payments []string) (all map[string]Care, err error) {
	err = rd.db.Read(ctx, func(tx *db.Tx) error {
		all = map[string]Care{}
		err := tx.Query(ownersOf, []any{payments}, func(r *db.Row) error {
			var id string
			var c Care
			err := r.Scan(&id, &c.Owner.Person, &c.Owner.Name, &c.Owner.At)
			all[id] = c
			return err
		})
		if err != nil {
			return err
		}
		return tx.Query(newestNotesOf, []any{payments}, func(r *db.Row) error {
			var n Note
			err := n.scan(r)
			c := all[n.Payment]
			c.Note = n
			all[n.Payment] = c
			return err
		})
	})
	return all, err
}

// AddNote stores a note, and runs the function also in the same transaction. It does nothing if a note with this id
// exists. It refuses a note about a payment whose party is erased, because no later erasure would remove the note.
func (bk *Book) AddNote(ctx context.Context, n Note, also func(*db.Tx) error) error {
	n.Text, n.At = strings.TrimSpace(n.Text), bk.clock.Now()
	if n.Text == "" || len([]rune(n.Text)) > MaxNote || !usertext.Storable(n.Text) {
		return problem.Field("note", fmt.Sprintf("must be text of 1 to %d characters on one line", MaxNote))
	}
	if _, err := uuid.Parse(n.ID); err != nil {
		return problem.Field("note", "was sent by an incomplete form: reload the page")
	}
	return bk.db.Write(ctx, func(tx *db.Tx) error {
		open, err := tx.Exec(lockParty, n.Payment, Erased)
		if err != nil {
			return err
		}
		if open == 0 {
			return problem.New(problem.Gone, "payment_erased", "Personal data was erased from this payment. Notes can no longer be added.")
		}
		var count int64
		if _, err := tx.One(countNotes, []any{n.Payment}, &count); err != nil {
			return err
		}
		if count >= maxNotes {
			return problem.Field("note", fmt.Sprintf("exceeds the limit: a payment has at most %d", maxNotes))
		}
		added, err := tx.Exec(insertNote, n.Payment, n.ID, n.Author, n.AuthorName, n.At, n.Text)
		if err != nil || added == 0 {
			return err
		}
		return also(tx)
	})
}

// errOwned refuses a change because the payment is now owned by another person, name.
func errOwned(name string) error {
	return problem.New(problem.Duplicate, "payment_has_owner", "This payment is assigned to "+name+". Reload the page.")
}

// Take makes a person the owner of a payment that needs attention and has no owner. It runs the function also in the
// same transaction. If the person is the owner already, it does nothing.
func (bk *Book) Take(ctx context.Context, payment string, o Owner, also func(*db.Tx) error) error {
	return bk.db.Write(ctx, func(tx *db.Tx) error {
		taken, err := tx.Exec(takePayment, payment, o.Person, o.Name, bk.clock.Now())
		switch {
		case err != nil:
			return err
		case taken == 1:
			return also(tx)
		}
		var now Owner
		found, err := tx.One(selectOwner, []any{payment}, &now.Person, &now.Name, &now.At)
		switch {
		case err != nil:
			return err
		case !found:
			return problem.New(problem.Duplicate, "payment_needs_no_attention", "This payment no longer needs attention")
		case now.Person != o.Person:
			return errOwned(now.Name)
		}
		return nil
	})
}

// Release removes a person as the owner of a payment, and runs the function also in the same transaction. It does
// nothing if the payment has no owner.
func (bk *Book) Release(ctx context.Context, payment, person string, also func(*db.Tx) error) error {
	return bk.db.Write(ctx, func(tx *db.Tx) error {
		released, err := tx.Exec(releasePayment, payment, person)
		switch {
		case err != nil:
			return err
		case released == 1:
			return also(tx)
		}
		var now Owner
		found, err := tx.One(selectOwner, []any{payment}, &now.Person, &now.Name, &now.At)
		if err == nil && found {
			err = errOwned(now.Name)
		}
		return err
	})
}

// EraseNotes replaces the texts of all notes about a payment with Erased.
func EraseNotes(tx *db.Tx, payment string) { tx.Defer(eraseNotes, -1, payment, Erased) }
