// Package privacy finds an installation's data about a person, by their mobile number, and erases it. It keeps the
// money: amounts, times, references, outcomes, the ledger. It erases the number and the name on final payments, the
// notes about these, and the number on final messages. It also erases rows of batches, lines of statements, and
// contacts. It also erases the bodies of exchanges with providers, of finished webhooks, and of their receivers'
// responses. An open payment or message keeps the number, because Makola still needs it. Such rows are counted, so
// that the erasure can be repeated later. An opt-out stays, because without it the next import could send the
// person a campaign.
//
// No index contains numbers alone, so every search reads whole tables. It does so in limited steps, so that servers
// can run meanwhile.
package privacy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/makola/makola/internal/batch"
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/webhook"
)

// Deps are the stores with personal data.
type Deps struct {
	DB        *db.DB
	Payments  *book.Reader
	Messaging *messaging.Messaging
	Contacts  *contacts.Store
	Inbox     *inbox.Store
	Routes    *route.Table
}

// Found is one record about a person.
type Found struct {
	What      string // payment, note on a payment, row of a batch, line of a statement, draft of a campaign, message or contact
	Tenant    string
	ID        string // id of the payment or contact; for a message, of its campaign
	Name      string // name of the person
	Detail    string // kind, amount and state of a payment; state of a message; e-mail address of a contact
	Reference string // the customer's reference
	At        time.Time
}

// Export calls each for every record about a number. The order is by kind, not by time: payments with their notes,
// rows of batches, lines of statements, messages, contacts.
func (d Deps) Export(ctx context.Context, number msisdn.MSISDN, each func(Found) error) error {
	err := d.Payments.OfNumber(ctx, number.International(), func(p book.Payment) error {
		if err := each(Found{What: "payment", Tenant: p.Tenant, ID: p.ID, Name: p.AccountName, Detail: string(p.Kind) + " of " + p.Amount.String() + ", " + p.PublicStatus(), Reference: p.Reference, At: p.CreatedAt}); err != nil {
			return err
		}
		notes, _, err := d.Payments.Notes(ctx, p.ID)
		for _, n := range notes {
			if err := each(Found{What: "note on a payment", Tenant: p.Tenant, ID: p.ID, Detail: n.Text, At: n.At}); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	err = batch.OfNumber(ctx, d.DB, number.International(), func(n batch.Named) error {
		return each(Found{What: "row of a batch", Tenant: n.Tenant, ID: n.Batch, Name: n.Name, Detail: n.Amount.String() + ", " + string(n.Status), Reference: strconv.Itoa(n.Line), At: n.At})
	})
	if err != nil {
		return err
	}
	err = reconcile.OfNumber(ctx, d.DB, Spellings(number), func(l reconcile.Line, _ bool) error {
		return each(Found{What: "line of a statement", ID: l.ID, Detail: l.Amount.String() + ", " + string(l.Status), Reference: l.TheirID, At: l.At})
	})
	if err != nil {
		return err
	}
	err = reconcile.NotesOfNumber(ctx, d.DB, Spellings(number), func(x reconcile.Exception) error {
		return each(Found{What: "note on an exception", ID: x.ID, Detail: x.Source, At: x.At})
	})
	if err != nil {
		return err
	}
	err = compose.OfNumber(ctx, d.DB, number.International(), func(n compose.Named) error {
		return each(Found{What: "draft of a campaign", Tenant: n.Tenant, ID: n.ID, Detail: string(n.Status), At: n.CreatedAt})
	})
	if err != nil {
		return err
	}
	err = d.Messaging.OfNumber(ctx, number.International(), func(s messaging.Sent) error {
		return each(Found{What: "message", Tenant: s.Tenant, ID: s.Campaign, Detail: string(s.Status), Reference: strconv.FormatInt(s.No, 10), At: db.FromMicros(s.SubmittedAt)})
	})
	if err != nil {
		return err
	}
	err = d.Inbox.OfNumber(ctx, number, func(t inbox.Text) error {
		return each(Found{What: "text from the number", Tenant: t.Tenant, ID: t.ID, Detail: t.Message, Reference: t.To, At: t.ReceivedAt})
	})
	if err != nil {
		return err
	}
	return d.Contacts.OfNumber(ctx, number, func(c contacts.Contact) error {
		return each(Found{What: "contact", Tenant: c.Tenant, ID: c.ID, Name: c.FirstName + " " + c.LastName, Detail: c.Email, At: c.CreatedAt})
	})
}

// Erasure is the result of an erasure.
type Erasure struct {
	Payments, Messages, Contacts, Exchanges int
	Rows                                    int      // of batches of payouts, drafts of campaigns, lines of statements, and notes on exceptions
	Counters                                int      // counters of one-time passwords
	Left                                    int      // payments, messages and rows of batches that keep the number, because they or their webhooks or receipts are not final
	Copies                                  []string // files in which earlier contents of rows may still contain the number
}

// Spellings returns the forms in which a number may be stored.
func Spellings(number msisdn.MSISDN) []string {
	return []string{number.International(), number.Local()}
}

// counted counts a row that was erased, or a row that keeps the number because it is not final.
func (e *Erasure) counted(erased bool, err error) error {
	if erased {
		e.Rows++
	} else {
		e.Left++
	}
	return err
}

// Erase erases a number. It may be repeated.
func (d Deps) Erase(ctx context.Context, number msisdn.MSISDN) (e Erasure, err error) {
	spellings := Spellings(number)
	err = d.Payments.OfNumber(ctx, number.International(), func(p book.Payment) error { return d.erasePayment(ctx, p, spellings, &e) })
	if err != nil {
		return e, err
	}
	err = batch.OfNumber(ctx, d.DB, number.International(), func(n batch.Named) error {
		return e.counted(batch.Erase(ctx, d.DB, n))
	})
	if err != nil {
		return e, err
	}
	err = reconcile.OfNumber(ctx, d.DB, spellings, func(l reconcile.Line, _ bool) error {
		return e.counted(reconcile.Erase(ctx, d.DB, l.ID))
	})
	if err != nil {
		return e, err
	}
	err = reconcile.NotesOfNumber(ctx, d.DB, spellings, func(x reconcile.Exception) error {
		e.Rows++
		return reconcile.EraseNote(ctx, d.DB, x.ID)
	})
	if err != nil {
		return e, err
	}
	err = compose.OfNumber(ctx, d.DB, number.International(), func(n compose.Named) error {
		return e.counted(compose.Erase(ctx, d.DB, n))
	})
	if err != nil {
		return e, err
	}
	err = d.Messaging.OfNumber(ctx, number.International(), func(s messaging.Sent) error {
		if !s.Over() {
			e.Left++
			return nil
		}
		e.Messages++
		return d.DB.Write(db.Bulk(ctx, s.Tenant), func(tx *db.Tx) error {
			messaging.EraseRecipient(tx, s, book.Erased)
			return nil
		})
	})
	if err != nil {
		return e, err
	}
	err = d.Inbox.OfNumber(ctx, number, func(t inbox.Text) error { return d.eraseText(ctx, t, spellings, &e) })
	if err != nil {
		return e, err
	}
	err = d.Contacts.OfNumber(ctx, number, func(c contacts.Contact) error {
		e.Contacts++
		return d.Contacts.DeleteContact(ctx, c.Tenant, c.ID)
	})
	if err != nil {
		return e, err
	}
	if e.Exchanges, err = d.Routes.EraseWords(ctx, book.Erased, spellings...); err != nil || e.Left > 0 {
		return e, err
	}
	e.Counters, err = d.Messaging.EraseCounters(ctx, number.International())
	return e, err
}

// eraseText erases a person from a text that they sent, and from its event.
func (d Deps) eraseText(ctx context.Context, t inbox.Text, spellings []string, e *Erasure) error {
	err := d.DB.Write(db.Bulk(ctx, t.Tenant), func(tx *db.Tx) error {
		words := spellings
		if t.Message != "" {
			written, err := json.Marshal(t.Message)
			if err != nil {
				return err
			}
			words = append(slices.Clone(spellings), string(written[1:len(written)-1]))
		}
		pending, err := webhook.EraseTexts(tx, t.Tenant, t.ID, book.Erased, words...)
		if err == nil && pending {
			err = errNotOver
		}
		if err == nil {
			inbox.Erase(tx, t, book.Erased)
		}
		return err
	})
	switch {
	case errors.Is(err, errNotOver):
		e.Left++
		return nil
	case err == nil:
		e.Messages++
	}
	return err
}

// errNotOver rolls back an erasure that comes too early.
var errNotOver = errors.New("privacy: a payment or its webhook has not finished")

// erasePayment erases a person from one payment, its webhooks and its exchanges, in one transaction. It also handles
// the other payment of the same request, whose callback address may contain the number.
func (d Deps) erasePayment(ctx context.Context, p book.Payment, spellings []string, e *Erasure) error {
	both := []book.Payment{p}
	if id := cmp.Or(p.Child, p.Parent); id != "" {
		beside, err := d.Payments.Find(ctx, id)
		if err != nil {
			return err
		}
		both = append(both, beside)
	}
	err := d.DB.Write(db.Bulk(ctx, p.Tenant), func(tx *db.Tx) error {
		for _, one := range both {
			pending, err := webhook.EraseTexts(tx, one.Tenant, one.ID, book.Erased, spellings...)
			if err == nil && (pending || one.SettledAt.IsZero()) {
				err = errNotOver
			}
			if err != nil {
				return err
			}
			book.EraseAddress(tx, one.ID, spellings...)
		}
		book.EraseParty(tx, p) // before the notes, because it prevents new ones
		for _, one := range both {
			book.EraseNotes(tx, one.ID)
		}
		changes.EraseFacts(tx, p.ID)
		return d.Routes.EraseExchanges(tx, p.ID)
	})
	switch {
	case errors.Is(err, errNotOver):
		e.Left++
		return nil
	case err == nil:
		e.Payments++
	}
	return err
}
