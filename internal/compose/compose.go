// Package compose keeps the drafts of campaigns that people write on a page: the text with its fields, the sender ID, the start
// time, and the recipients from numbers, contact groups and a file.
//
// A draft is priced by the texts that its recipients would get. Recipients that opted out, or that have no value for a field of
// the text, are left out. A request for approval freezes the draft. One transaction charges and stores the campaigns of a draft
// and ends it, so a repeated form sends nothing.
//
// Files: compose.go (the store), states.go (request, withdrawal, sending), price.go (texts of the recipients), fields.go
// (fields of a text), recipients.go (numbers, groups and files), erasure.go (old drafts, drafts of a restored database, and a
// person's number).
package compose

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

const (
	// MaxMessage is the maximum number of characters of a text with its fields.
	MaxMessage = 2_000
	// maxDrafts is the maximum number of drafts of an account that are not sent.
	maxDrafts = 20
	// maxStored is the maximum size in bytes of the recipients of a draft with their fields.
	maxStored = 16 << 20
	// draftTime is how long a draft is kept. sentTime is how long the row of a sent draft is kept.
	draftTime = 7 * 24 * time.Hour
	sentTime  = 90 * 24 * time.Hour
)

// Status is the state of a draft. Values are stored and never change.
type Status string

// The states of a draft. A requested draft waits for approval or is being sent. If the request ends without sending it, it is a
// draft again.
const (
	Written   Status = "draft"
	Requested Status = "requested"
	Sent      Status = "sent"
)

// Text is the part of a draft that a person may change.
type Text struct {
	SenderID string
	Message  string    // with fields such as {first_name}
	At       time.Time // when the campaign begins; zero: at once
}

// Source names the recipients of a draft.
type Source struct {
	Numbers string    // separated by lines, commas or semicolons
	Groups  []string  // ids of contact groups
	File    io.Reader // CSV or XLSX; nil: none
}

// Draft is a campaign that a person writes.
type Draft struct {
	Tenant  string
	ID      string
	Person  string // id of the person who made it
	Status  Status
	Request string // id of its change request; empty while it is a draft
	Text
	Recipients list // empty once it is sent
	Count      int  // number of recipients
	Invalid    int  // recipients that are not numbers
	Repeated   int  // recipients that were given more than once
	Digest     string
	Campaigns  []string // ids of the campaigns that it became
	CreatedAt  time.Time
}

// Store keeps drafts. It is safe for concurrent use.
type Store struct {
	db        *db.DB
	clock     *clock.Clock
	tenants   *tenant.Store
	contacts  *contacts.Store
	messaging *messaging.Messaging
}

// New returns a store.
func New(d *db.DB, c *clock.Clock, tenants *tenant.Store, people *contacts.Store, m *messaging.Messaging) *Store {
	return &Store{db: d, clock: c, tenants: tenants, contacts: people, messaging: m}
}

// sealed sets the digest of the texts, the start time and the recipients of a draft.
func (d *Draft) sealed() error {
	text, err := json.Marshal([]any{d.Tenant, d.ID, d.SenderID, d.Message, db.Micros(d.At), d.Recipients})
	sum := sha256.Sum256(text)
	d.Digest = hex.EncodeToString(sum[:])
	return err
}

const (
	countDrafts = `SELECT count(*) FROM text_drafts WHERE tenant = $1 AND status <> 'sent'`
	insertDraft = `INSERT INTO text_drafts (tenant, id, person, status, request, sender_id, message, starts_at, recipients, count, invalid, repeated, digest, campaigns, created_at)
		VALUES ($1, $2, $3, 'draft', '', $4, $5, $6, $7, $8, $9, $10, $11, '', $12)`
	draftFields  = `tenant, id, person, status, request, sender_id, message, starts_at, count, invalid, repeated, digest, campaigns, created_at`
	selectDraft  = `SELECT ` + draftFields + `, recipients FROM text_drafts WHERE tenant = $1 AND id = $2`
	listDrafts   = `SELECT ` + draftFields + `, '' FROM text_drafts WHERE tenant = $1 AND status <> 'sent' ORDER BY id DESC LIMIT $2`
	changeDraft  = `UPDATE text_drafts SET sender_id = $3, message = $4, starts_at = $5, digest = $6 WHERE tenant = $1 AND id = $2 AND status = 'draft'`
	discardDraft = `DELETE FROM text_drafts WHERE tenant = $1 AND id = $2 AND status = 'draft'`
)

// Create reads the recipients of a source and stores a draft. id is the id of the form. If the form is sent again, Create
// returns the existing draft. Errors: Invalid (sender_id, message, recipients, file, at), Forbidden (a group of another
// tenant), and the errors of messaging's Quote.
func (s *Store) Create(ctx context.Context, tenantID, id, person string, text Text, from Source) (Draft, error) {
	if u, err := uuid.Parse(id); err != nil || u.String() != id {
		return Draft{}, problem.Field("id", "is not the id of a form: reload the page and try again")
	}
	if d, err := s.Get(ctx, tenantID, id); !problem.Is(err, problem.NotFound) {
		return d, err
	}
	d := Draft{Tenant: tenantID, ID: id, Person: person, Status: Written, Text: text, CreatedAt: s.clock.Now()}
	if err := s.read(ctx, &d, from); err != nil {
		return d, err
	}
	if _, err := s.Price(ctx, d); err != nil {
		return d, err
	}
	stored, err := json.Marshal(d.Recipients)
	if err != nil {
		return d, fmt.Errorf("compose: encode the recipients: %w", err)
	}
	if len(stored) > maxStored {
		return d, errTooLarge()
	}
	if err := d.sealed(); err != nil {
		return d, err
	}
	return d, s.db.Write(db.Bulk(ctx, tenantID), func(tx *db.Tx) error {
		if err := tenant.Room(tx, countDrafts, tenantID, 1, maxDrafts, problem.Field("recipients", fmt.Sprintf("cannot be stored: the account has %d drafts. Send or discard a draft first", maxDrafts))); err != nil {
			return err
		}
		_, err := tx.Exec(insertDraft, d.Tenant, d.ID, d.Person, d.SenderID, d.Message, d.At, string(stored), int64(d.Count), int64(d.Invalid), int64(d.Repeated), d.Digest, d.CreatedAt)
		return err
	})
}

func (d *Draft) scan(r *db.Row) error {
	var stored, campaigns string
	err := r.Scan(&d.Tenant, &d.ID, &d.Person, &d.Status, &d.Request, &d.SenderID, &d.Message, &d.At, &d.Count, &d.Invalid, &d.Repeated, &d.Digest, &campaigns, &d.CreatedAt, &stored)
	if err == nil && stored != "" {
		err = json.Unmarshal([]byte(stored), &d.Recipients)
	}
	if campaigns != "" {
		d.Campaigns = strings.Split(campaigns, ",")
	}
	return err
}

func errNoDraft() error {
	return problem.New(problem.NotFound, "draft_not_found", "There is no such draft")
}

// Get returns a draft of a tenant with its recipients.
func (s *Store) Get(ctx context.Context, tenantID, id string) (d Draft, err error) {
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		d = Draft{}
		return tx.Query(selectDraft, []any{tenantID, id}, d.scan)
	})
	if err == nil && d.ID == "" {
		err = errNoDraft()
	}
	return d, err
}

// List returns the drafts of a tenant that are not sent, newest first, without their recipients.
func (s *Store) List(ctx context.Context, tenantID string) ([]Draft, error) {
	return db.ReadAll(ctx, s.db, listDrafts, []any{tenantID, maxDrafts}, (*Draft).scan)
}

// Change replaces the text of a draft. Errors: the errors of Create, and InProgress if the draft is requested or sent.
func (s *Store) Change(ctx context.Context, tenantID, id string, text Text) (Draft, error) {
	d, err := s.Get(ctx, tenantID, id)
	if err != nil {
		return d, err
	}
	if d.Status != Written {
		return d, errFrozen()
	}
	d.Text = text
	if _, err := s.Price(ctx, d); err != nil {
		return d, err
	}
	if err := d.sealed(); err != nil {
		return d, err
	}
	return d, s.write(ctx, errFrozen(), changeDraft, d.Tenant, d.ID, d.SenderID, d.Message, d.At, d.Digest)
}

// Discard deletes a draft.
func (s *Store) Discard(ctx context.Context, tenantID, id string) error {
	return s.write(ctx, errFrozen(), discardDraft, tenantID, id)
}

// write runs a statement about one draft in its own transaction.
func (s *Store) write(ctx context.Context, refused error, sql string, args ...any) error {
	return s.db.Write(ctx, func(tx *db.Tx) error { return one(tx, refused, sql, args...) })
}

func errFrozen() error {
	return problem.New(problem.InProgress, "draft_frozen", "This campaign was requested or sent. It cannot be changed any more")
}
