package changes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// heldPayout is the payout that would be sent. Its members and their order are hashed, so they never change.
type heldPayout struct {
	ID        string        `json:"id"`
	Tenant    string        `json:"tenant"`
	Amount    money.Pesewas `json:"pesewas"`
	Charges   money.Pesewas `json:"charges"`
	Payee     string        `json:"payee"` // digest of channel, bank, account and name, because requests contain no complete numbers
	Reference string        `json:"reference"`
	Key       string        `json:"key"`
}

func heldOf(p book.Payment) heldPayout {
	payee := sha256.Sum256([]byte(strings.Join([]string{p.ID, p.Channel, p.BankID, p.Account, p.AccountName}, "\n")))
	return heldPayout{p.ID, p.Tenant, p.Amount, p.Charges, hex.EncodeToString(payee[:]), p.Reference, p.Key}
}

var sendRule = Rule{Make: roles.RequestPayouts, Check: roles.ApprovePayouts, ByKey: true}

// HoldPayout reports whether a payout that an API key requests awaits approval by people of its account (payments.ApprovalPolicy).
func (a *Changes) HoldPayout(ctx context.Context, by payments.Requester, pay book.Payment) (*payments.PendingApproval, error) {
	asked, err := a.Store.Asked(ctx, KindSendPayout, pay.Tenant, pay.Amount)
	if err != nil || !asked {
		return nil, err
	}
	request := payoutRequest(pay)
	request.Origin, request.Reason = by.Origin, "Reference "+reference(pay)
	if err := a.byKey(ctx, &request, pay.Key); err != nil {
		return nil, err
	}
	request.Facts.At = a.Store.now()
	if request.Facts.List, err = a.PayoutFacts(ctx, pay, "", false); err != nil {
		return nil, err
	}
	request, err = a.Store.Planned(ctx, sendRule, request)
	if err != nil || request.Needs == 0 {
		return nil, err
	}
	return &payments.PendingApproval{Until: request.ExpiresAt, Write: func(tx *db.Tx) error { return a.Store.InsertPlanned(tx, By{}, sendRule, request) }}, nil
}

// payoutRequest returns the request of a payout without its requester. It has the payment's id and no name. The page of
// the payment shows the name to people with the permission, and an erasure removes it there.
func payoutRequest(pay book.Payment) Request {
	payload, _ := json.Marshal(heldOf(pay)) // texts and numbers can always be marshalled
	return Request{ID: pay.ID, Kind: KindSendPayout, Tenant: pay.Tenant, Place: pay.Tenant, Amount: pay.Amount, Payload: payload,
		Sentence: fmt.Sprintf("Send %s to %s, with a fee of %s", worth(pay, pay.Amount), masked(pay), worth(pay, pay.Charges))}
}

// sameAgain is the time within which an earlier payout of the same amount to the same number causes a warning.
const sameAgain = 30 * time.Minute

// payeeLooks is the number of earlier payouts to a payee that are read.
const payeeLooks = 20

// The names of the facts that are computed again for the approver.
const (
	expectedName = "Expected name"
	unnamed      = "No provider returned the name for this number. Check the number with the payee."
)

// PayoutFacts returns the facts of a payout for requester and approver: the registered and the expected name, and
// possible duplicates. unknown means that no provider could name the payee.
func (a *Changes) PayoutFacts(ctx context.Context, pay book.Payment, expected string, unknown bool) (list []Fact, err error) {
	if pay.Reference != "" {
		list = append(list, Fact{Name: "Reference", Value: reference(pay)})
	}
	if expected != "" {
		list = append(list, Fact{Name: expectedName, Value: expected, Personal: true})
	}
	switch {
	case unknown:
		list = append(list, warning(unnamed))
	case pay.AccountName != "":
		list = append(list, Fact{Name: "Name of the payee", Value: pay.AccountName, Personal: true})
		if expected != "" && !SameName(expected, pay.AccountName) {
			list = append(list, Fact{Name: "Warning", Value: "The name differs: expected is " + expected + ", registered is " + pay.AccountName + ".", Warning: true, Personal: true})
		}
	}
	before, err := a.Payments.PaidTo(ctx, pay.Tenant, pay.Account, payeeLooks)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(before, func(b book.Payment) bool { return b.ID == pay.ID })
	if len(others) == 0 {
		list = append(list, warning("A new payee: none of the last payouts went to this number."))
	}
	begun := pay.CreatedAt
	if begun.IsZero() {
		begun = a.Store.now()
	}
	for _, b := range others {
		if b.Amount == pay.Amount && b.CreatedAt.After(begun.Add(-sameAgain)) {
			list = append(list, warning("The same amount went to this number at "+at(b.CreatedAt)+". Check that this is not a repetition."))
			break
		}
	}
	return list, nil
}

// SameName reports whether two names have the same parts, in any order and case.
func SameName(a, b string) bool {
	words := func(text string) []string {
		list := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == ',' || r == '.' || r == '-' })
		slices.Sort(list)
		return list
	}
	return slices.Equal(words(a), words(b))
}

// checkPayout computes the facts of a waiting payout again.
func (a *Changes) checkPayout(ctx context.Context, r Request) ([]Fact, error) {
	pay, err := a.Payments.Find(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	expected := ""
	for _, f := range r.Facts.List {
		if f.Name == expectedName {
			expected = f.Value
		}
	}
	return a.PayoutFacts(ctx, pay, expected, r.Facts.has(warning(unnamed)))
}

// byKey describes the key that made a request, and the person who created the key.
func (a *Changes) byKey(ctx context.Context, request *Request, id string) error {
	k, err := a.Access.Key(ctx, request.Tenant, id)
	if err != nil {
		return err
	}
	request.Key, request.Requester, request.RequesterName = k.ID, k.Creator, "key "+k.Hint
	if k.Member != "" {
		request.RequesterName += " of " + k.Member
	}
	if k.Person == "" { // the text of an older key may name a person
		request.Member = k.Member
	}
	request.Barred, err = a.Access.Holders(ctx, request.Tenant, id)
	return err
}

// approvePayout releases the payout to be sent and ends the request in one transaction.
func (a *Changes) approvePayout(ctx context.Context, request *Request, finish Finish) error {
	p, err := payloadOf[heldPayout](*request)
	if err != nil {
		return err
	}
	return a.release(ctx, *request, "payout", func(row book.Payment) bool { return heldOf(row) == p }, finish)
}

// release allows the payment of a request to be sent, if the payment has not changed since the request.
func (a *Changes) release(ctx context.Context, request Request, what string, same func(row book.Payment) bool, finish Finish) error {
	// a group commit may use both after release has returned: ctx is detached, and request is a copy
	return a.Payments.Approve(context.WithoutCancel(ctx), request.ID, func(tx *db.Tx, row book.Payment) error {
		if !same(row) {
			return errChanged("The " + what)
		}
		if err := a.keyStands(tx, request); err != nil {
			return err
		}
		return finish(tx, []audit.Change{{What: what, Before: "waits for approval", After: "is sent"}})
	})
}

// keyStands refuses the request of a key that has been revoked in the meantime.
func (a *Changes) keyStands(tx *db.Tx, request Request) error {
	if request.Key == "" {
		return nil
	}
	k, err := a.Access.LockedKey(tx, request.Tenant, request.Key)
	if err == nil && !k.RevokedAt.IsZero() {
		err = problem.New(problem.Forbidden, "key_revoked", "The API key that requested this has been revoked")
	}
	return err
}

// disapprovePayout releases the hold of a payout and ends the request in one transaction. A recovery may have found
// the payout at a provider. Then it no longer waits, and disapprovePayout does not change it.
func (a *Changes) disapprovePayout(ctx context.Context, request Request, end func(*db.Tx) error) error {
	err := a.Payments.Disapprove(context.WithoutCancel(ctx), request.ID, end)
	if err != nil && problem.From(err).Code == payments.CodeNotWaiting {
		return a.Store.Write(ctx, end)
	}
	return err
}
