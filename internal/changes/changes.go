// Package changes handles people's requests that move money, or change keys or roles. A change request is stored, approved
// by as many people as the policy requires, and applied once. The transaction that applies the request also ends it and writes
// its entry in the audit log.
//
// A request is stored as a row when it is made. It waits until the required number of different people have approved it. None of
// them is the requester. If the process dies before the end, the request still waits. An approval contains a digest of everything
// that the page showed.
//
// A request has a place: the installation, or the tenant whose own people make it. Requester and approvers need their roles at this
// place. Other people cannot see the request. The text of a key and the link of an invitation are secrets that are shown once. They
// are made when the request is applied, and kept sealed for the requester. A request that only restricts something needs no
// approver unless a line of the policy requires one.
//
// Files, from the top down; each uses only files below it:
//
//	kinds.go        the table of all kinds
//	statements.go   the kinds about exceptions of statements
//	adoption.go     credits of statements adopted, and many lines matched with payments
//	suspense.go     differences of statements out of suspense
//	settle_all.go   outcomes of many payments by a statement
//	settlement.go   lines matched with payments, and payments ended as a statement has them
//	exceptions.go   exceptions of statements, one or many
//	wallet.go       money funded to a wallet or adjusted in it
//	batch.go        a batch of payouts sent
//	texts.go        a campaign that a person wrote on a page
//	refund_operator.go  a refund that an operator requests for an account
//	refund.go       a refund that a person requests on a page
//	payout_order.go a payout that a person requests on a page
//	payout.go       a payout that awaits approval
//	transfer.go, float.go, credits.go, payment.go, policy.go, tenant.go, key.go, people.go, sender.go, incoming.go, fees.go, provider.go, route.go, catalogue.go, campaign.go, job.go, reopen.go, low_balance.go  the other kinds, by what they change
//	closing.go      days of the books closed, and the codes of accounts
//	bank.go, transit.go  bank accounts of the company, and money on its way
//	bookings.go     a reference of the requester, booked once
//	secret.go       a secret shown, and sealed under another master key
//	review.go       a request with everything that an approver should see
//	served.go       a request that a command left to a server
//	changes.go      a request of any kind made, decided and applied
//	naming.go       accounts and payments named for people, and names that people may mistake
//	kind.go         one kind of change: who may request and approve it, and how it is applied
//	fields.go       the values that a kind is requested with
//	sealed.go       a secret that waits until it is shown
//	decision.go     a request approved, rejected, withdrawn, applied or expired
//	record.go       a request written down
//	lines.go        the policy: how many approvers a request needs
//	limits.go       how many requests a person may have open
//	independent.go  who counts as a second person
//	store.go        the rows of requests, and what a person may do at a place
//	request.go      a request, its states and its digest
//	line.go         a line of the policy
//	fact.go         facts that requester and approver see in addition to the sentence
package changes

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Do requests a change of a kind with the values of its fields, and applies it if it needs no approver. id is the id of
// the form.
func (a *Changes) Do(ctx context.Context, by By, kind, id string, v Values, reason string) (Request, error) {
	o := Order{By: by, ID: id, Values: v, Reason: reason}
	d, err := a.look(ctx, kind, o)
	if err != nil {
		return Request{}, err
	}
	return a.make(ctx, o, d)
}

// Preview returns the request that Do would make, with its facts. It stores nothing, and needs no reason.
func (a *Changes) Preview(ctx context.Context, by By, kind string, v Values) (Request, error) {
	o := Order{By: by, Values: v}
	d, err := a.look(ctx, kind, o)
	if err != nil {
		return Request{}, err
	}
	r, err := a.requestOf(o, d)
	if err == nil {
		r.Facts, err = a.draftFacts(ctx, a.kinds[r.Kind], r, d)
	}
	return r, err
}

// draftFacts returns the facts of a draft.
func (a *Changes) draftFacts(ctx context.Context, k Kind, r Request, d Draft) (Facts, error) {
	if d.Accept != nil {
		return Facts{At: a.Store.now(), List: d.Facts}, nil
	}
	return a.check(ctx, k, r)
}

// look drafts a change by the values of its fields.
func (a *Changes) look(ctx context.Context, kind string, o Order) (Draft, error) {
	k, known := a.kinds[kind]
	if !known {
		return Draft{}, problem.New(problem.NotFound, "kind_unknown", "There is no change "+kind)
	}
	if err := checkValues(k.Fields, o.Values); err != nil {
		return Draft{}, err
	}
	d, err := k.Look(ctx, o)
	d.Kind = cmp.Or(d.Kind, kind)
	return d, err
}

// requestOf makes the request of a draft. It does not store the request.
func (a *Changes) requestOf(o Order, d Draft) (Request, error) {
	if o.By.Place != roles.Installation && d.Tenant != o.By.Place { // a tenant's people act about their own account
		return Request{}, problem.New(problem.NotFound, "tenant_not_found", "Account not found")
	}
	text, err := json.Marshal(d.Payload)
	return Request{ID: o.ID, Kind: d.Kind, Tenant: d.Tenant, Place: o.By.Place, Payload: text, Sentence: d.Sentence, Reason: o.Reason, Amount: d.Amount, Barred: d.Barred}, err
}

// make stores a request, and applies it if it needs no approver.
func (a *Changes) make(ctx context.Context, o Order, d Draft) (Request, error) {
	if d.Again != nil {
		return *d.Again, nil
	}
	if u, err := uuid.Parse(o.ID); err != nil || u.String() != o.ID {
		return Request{}, problem.Field("id", "is not the id of a form: reload the page and try again")
	}
	if o.Reason == "" && o.By.Machine != "" { // a blank reason is refused
		o.Reason = noReason
	}
	o.Reason = cmp.Or(o.Reason, d.Reason)
	if o.Reason = strings.TrimSpace(o.Reason); o.Reason == "" || utf8.RuneCountInString(o.Reason) > maxReason {
		return Request{}, problem.Field("reason", fmt.Sprintf("is required, with at most %d characters", maxReason))
	}
	request, err := a.requestOf(o, d)
	if err != nil {
		return Request{}, err
	}
	k := a.kinds[d.Kind]
	k.Light = k.Light || d.Light
	if request.Facts, err = a.draftFacts(ctx, k, request, d); err != nil {
		return Request{}, err
	}
	if d.Accept != nil {
		return a.accept(ctx, o.By, k, request, d)
	}
	served := k.Served && !a.Payments.Submits()
	switch {
	case o.By.Machine != "" && served:
		return a.leave(ctx, o.By, request)
	case o.By.Machine != "":
		return a.atOnce(ctx, o.By, k, request, d.Begin...)
	}
	request, err = a.Store.Make(ctx, o.By, k.Rule, request, d.Begin...)
	if err != nil || request.Needs > 0 || request.State != Waiting || served { // the requester applies it on the page of the request
		return request, err
	}
	done, err := a.do(ctx, o.By, k, request)
	if err != nil && problem.From(err).Code == CodeEnded { // the same form made it at the same moment
		return a.Store.Get(ctx, request.ID)
	}
	return done, err
}

// accept lets the domain accept the subject of a request and, in the same transaction, store the request.
func (a *Changes) accept(ctx context.Context, by By, k Kind, r Request, d Draft) (Request, error) {
	plan := func(ctx context.Context, of Request) (Request, func(*db.Tx) error, error) {
		of.Reason, of.Facts = r.Reason, r.Facts
		of.Requester, of.RequesterName, of.Origin, of.Place = by.id(), by.name(), by.Origin, by.Place
		planned, err := a.Store.Planned(ctx, k.Rule, of)
		return planned, func(tx *db.Tx) error { return a.Store.InsertPlanned(tx, by, k.Rule, planned, d.Changes...) }, err
	}
	id, err := d.Accept(ctx, plan)
	if err != nil {
		return r, err
	}
	return a.accepted(ctx, k.Name, by.Place, id)
}

// accepted finds the request of an accepted subject. No request exists if a recovery adopted the subject, or if an
// earlier release accepted it.
func (a *Changes) accepted(ctx context.Context, kind, place, id string) (Request, error) {
	r, err := a.Store.Get(ctx, id)
	if problem.Is(err, problem.NotFound) {
		return Request{ID: id, Kind: kind, Tenant: place, Place: place, State: Done}, nil
	}
	return r, err
}

// jobKind is the kind of the job that applies a request which a command left to a server. It is stored and never
// renamed.
const jobKind = "act"

// leave stores a request of a command without a person. A server applies it with the authority of that command.
func (a *Changes) leave(ctx context.Context, by By, r Request) (Request, error) {
	r = a.Store.AtOnce(by, r)
	return r, a.Store.Apply(ctx, r, func(tx *db.Tx) error {
		a.Store.insert(tx, r)
		a.Jobs.Add(tx, jobs.Job{ID: r.ID, Kind: jobKind, Subject: r.ID, Payload: json.RawMessage(`{"v":1}`)})
		return a.Store.note(tx, by, r, "act.make", string(Waiting), nil)
	})
}

// atOnce applies the request of a command without a person. If the change is refused, it undoes begin.
func (a *Changes) atOnce(ctx context.Context, by By, k Kind, r Request, begin ...func(*db.Tx) error) (Request, error) {
	r = a.Store.AtOnce(by, r)
	if len(begin) == 0 {
		return a.do(ctx, by, k, r)
	}
	if err := a.Store.Write(ctx, begin[0]); err != nil {
		return r, err
	}
	done, err := a.do(ctx, by, k, r)
	if err != nil && !errors.Is(err, db.ErrAmbiguous) {
		err = errors.Join(err, k.Undone(context.WithoutCancel(ctx), r, func(*db.Tx) error { return nil }))
	}
	return done, err
}

// Approve approves a request that has not changed since a page showed it, and applies it if this is the last
// approval. shown is the digest that Review returned. The returned request has the outcome.
func (a *Changes) Approve(ctx context.Context, by By, id, shown string) (Request, error) {
	request, k, err := a.seen(ctx, by, id, shown)
	if err == nil && request.State == Waiting {
		if err = a.unseen(ctx, k, request, shown); err != nil && a.ended(ctx, request.ID) {
			err = nil // the warning is about this request, which another person has just applied; the transaction then refuses it
		}
	}
	if err != nil {
		return request, err
	}
	request.Shown = shown
	last := request.Approvals()+1 >= request.Needs
	for range 2 { // another person may approve at the same moment
		if !last {
			if err = a.Store.Approve(ctx, by, k.Rule, request); !errors.Is(err, ErrLast) {
				return a.after(ctx, request, err)
			}
		}
		var done Request
		if done, err = a.do(ctx, by, k, request); !errors.Is(err, ErrMore) {
			return done, err
		}
		last = false
	}
	return request, err
}

// ended reports whether a request no longer waits.
func (a *Changes) ended(ctx context.Context, id string) bool {
	r, err := a.Store.Get(ctx, id)
	return err == nil && r.State != Waiting
}

// known returns the kind of a request. It refuses a kind that this server does not have.
func (a *Changes) known(request Request) (Kind, error) {
	k, known := a.kinds[request.Kind]
	if !known {
		return Kind{}, problem.New(problem.InProgress, "kind_unknown", "This server does not know this kind of request: it is older than the server that stored it")
	}
	return k, nil
}

// seen returns a request of the place with the digest that was shown, and its kind. shown is a digest, or the text that
// Review returned.
func (a *Changes) seen(ctx context.Context, by By, id, shown string) (request Request, k Kind, err error) {
	digest, _, _ := strings.Cut(shown, ".")
	if request, err = a.Get(ctx, by.Place, id); err == nil {
		k, err = a.known(request)
	}
	if err == nil {
		request.Digest = digest
	}
	return request, k, err
}

// Get finds a request of a place.
func (a *Changes) Get(ctx context.Context, place, id string) (Request, error) {
	request, err := a.Store.Get(ctx, id)
	if err == nil && request.Place != place {
		err = errNotFound()
	}
	if err != nil {
		return Request{}, err
	}
	k, known := a.kinds[request.Kind]
	if !known {
		return request, nil
	}
	return a.Store.Counted(ctx, k.Rule, request)
}

// after reads a request again.
func (a *Changes) after(ctx context.Context, request Request, err error) (Request, error) {
	if err != nil {
		return request, err
	}
	return a.Store.Get(ctx, request.ID)
}

// refusals are the kinds of errors that mean that a domain refuses a request for good.
var refusals = []problem.Kind{problem.Invalid, problem.NotFound, problem.Forbidden, problem.InsufficientFunds, problem.InsufficientCredits, problem.Duplicate, problem.Refused, problem.Gone}

// check returns the facts that the kind's Check finds now, and the facts about the account.
func (a *Changes) check(ctx context.Context, k Kind, r Request) (f Facts, err error) {
	f.At = a.Store.now()
	if k.Check != nil {
		if f.List, err = k.Check(ctx, r); err != nil {
			return f, err
		}
	}
	about, err := a.accountFacts(ctx, r)
	f.List = append(f.List, about...)
	return f, err
}

// unseen refuses an approval if Check finds a warning that was shown neither on the page nor to the requester. shown is
// the text that Review returned. If shown is only the digest of the request, the requester's facts count as shown.
func (a *Changes) unseen(ctx context.Context, k Kind, r Request, shown string) error {
	now, err := a.check(ctx, k, r)
	if err != nil && !slices.Contains(refusals, problem.From(err).Kind) {
		return err
	}
	seen := strings.Split(shown, ".")
	for _, w := range now.Warnings() {
		if !r.Facts.has(w) && !slices.Contains(seen, a.fingerprint(w.Value)) {
			return problem.New(problem.InProgress, "facts_changed", "There is a new warning: "+w.Value)
		}
	}
	return nil
}

// do applies a request. If the end of the request is refused, the request stays as it is. If the domain refuses the
// change, the request becomes failed.
func (a *Changes) do(ctx context.Context, by By, k Kind, request Request) (Request, error) {
	var ended error // result of the last run of the transaction
	ran, made := false, []string(nil)
	request.Actor = by.name()
	err := k.Apply(ctx, &request, func(tx *db.Tx, changes []audit.Change, secret ...string) error {
		ran = true
		ended = a.Store.Finish(tx, by, k.Rule, request, changes)
		if made = secret; ended == nil && by.Machine == "" {
			if made, ended = a.mailed(tx, request, made); ended == nil {
				a.keep(tx, request, made)
			}
		}
		return ended
	})
	if err == nil && !ran { // the function reports success for a repeated call
		err = problem.New(problem.Duplicate, "done_before", "Nothing was changed: this was already done")
	}
	switch {
	case err == nil:
		done, err := a.after(ctx, request, nil)
		done.Made = request.Made
		return shown(done, by, made), err
	case ended != nil:
		return request, err
	case errors.Is(err, db.ErrAmbiguous):
		return request, problem.Wrap(err, problem.Unavailable, "outcome_unknown", "The database's answer was lost. Open the request to see whether it was applied.")
	}
	var refused *problem.Error
	if !errors.As(err, &refused) || !slices.Contains(refusals, refused.Kind) {
		return request, err
	}
	short := refused.Kind == problem.InsufficientFunds || refused.Kind == problem.InsufficientCredits
	if by.Machine != "" || short && request.Needs > 0 { // the balance may become sufficient later
		return request, refused
	}
	if err := a.endUndone(ctx, k, request, func(tx *db.Tx) error { return a.Store.Fail(tx, by, k.Rule, request, refused.Message) }); err != nil {
		return request, err
	}
	request, err = a.after(ctx, request, nil)
	request.Refused = refused
	return request, err
}

// shown returns a request with its secrets, for its requester.
func shown(request Request, by By, made []string) Request {
	if len(made) > 0 && request.Requester == by.id() {
		request.Secret, request.Code = made[0], strings.Join(made[1:], "")
	}
	return request
}

// Reject ends a waiting request. The person must be allowed to approve it.
func (a *Changes) Reject(ctx context.Context, by By, id, digest, why string) (Request, error) {
	request, k, err := a.seen(ctx, by, id, digest)
	if err != nil {
		return request, err
	}
	return a.after(ctx, request, a.endUndone(ctx, k, request, func(tx *db.Tx) error { return a.Store.Reject(tx, by, k.Rule, request, why) }))
}

// Withdraw ends a waiting request for its requester.
func (a *Changes) Withdraw(ctx context.Context, by By, id, digest string) (Request, error) {
	request, k, err := a.seen(ctx, by, id, digest)
	if err != nil {
		return request, err
	}
	return a.after(ctx, request, a.endUndone(ctx, k, request, func(tx *db.Tx) error { return a.Store.Withdraw(tx, by, request) }))
}

// endUndone ends a request without applying it, and releases the subject of the request.
func (a *Changes) endUndone(ctx context.Context, k Kind, request Request, end func(*db.Tx) error) error {
	if k.Undone != nil {
		return k.Undone(ctx, request, end)
	}
	return a.Store.Write(ctx, end)
}

// Expire ends requests that waited too long. It also removes secrets that were shown or that waited too long. If one
// request cannot be ended now, the others still are. A request of an unknown kind is left to a newer server, because
// the request may have money on hold.
func (a *Changes) Expire(ctx context.Context) error {
	err := a.Store.Forget(ctx)
	for last := ""; ; {
		list, failed := a.Store.Expired(ctx, last)
		if failed != nil || len(list) == 0 {
			return errors.Join(err, failed)
		}
		for _, request := range list {
			last = request.ID
			k, unknown := a.known(request)
			if unknown != nil {
				continue
			}
			if failed := a.endUndone(ctx, k, request, func(tx *db.Tx) error { return a.Store.Expire(tx, request) }); failed != nil {
				err = errors.Join(err, fmt.Errorf("changes: %s has waited for too long and could not be ended: %w", request.ID, failed))
			}
		}
	}
}

// parts are the parts of a secret in order.
var parts = []Part{Secret, Code}

// mailed sends the link of an invitation or a reset to the person if links are sent by mail. It returns the parts
// that a page shows, which is then only the code.
func (a *Changes) mailed(tx *db.Tx, request Request, made []string) ([]string, error) {
	email, is := About(request)
	if a.MailLink == nil || !is || len(made) != len(parts) {
		return made, nil
	}
	return []string{"", made[1]}, a.MailLink(tx, email, made[0])
}

// keep stores a secret until it has been shown.
func (a *Changes) keep(tx *db.Tx, request Request, made []string) {
	if a.Seal == nil {
		return
	}
	for n, text := range made {
		if text == "" { // sent by mail
			continue
		}
		a.Store.Keep(tx, request, parts[n], a.Seal.Seal([]byte(text), []byte(parts[n].Of(request))))
	}
}

// fingerprint returns a keyed hash of a shown text for the audit log. The text cannot be guessed from the hash
// without the key.
func (a *Changes) fingerprint(text string) string {
	mac := hmac.New(sha256.New, a.ShownKey)
	mac.Write([]byte(text)) // never fails
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// shownOf returns the digests that an approval contains: of the request, of all facts, and of each warning.
func (a *Changes) shownOf(digest string, f Facts) string {
	parts := []string{digest, a.fingerprint(f.text())}
	for _, w := range f.Warnings() {
		parts = append(parts, a.fingerprint(w.Value))
	}
	return strings.Join(parts, ".")
}
