package changes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
)

// KindSendPayout is a payout that a line of the account's own policy wants to be approved by the account's own people,
// whether a key or a page asked for it. The act has the payment's id. The money is held from the first moment, and nothing
// is sent before the last approval; an act that ends otherwise ends the payment, and what was held goes back.
const KindSendPayout = "payout.send"

// heldPayout is what would be sent. Its members and their order are what is hashed: they never change.
type heldPayout struct {
	ID        string        `json:"id"`
	Tenant    string        `json:"tenant"`
	Amount    money.Pesewas `json:"pesewas"`
	Charges   money.Pesewas `json:"charges"`
	Payee     string        `json:"payee"` // a digest over channel, bank, account and name: acts hold no whole numbers
	Reference string        `json:"reference"`
	Key       string        `json:"key"`
}

func heldOf(p book.Payment) heldPayout {
	payee := sha256.Sum256([]byte(strings.Join([]string{p.ID, p.Channel, p.BankID, p.Account, p.AccountName}, "\n")))
	return heldPayout{p.ID, p.Tenant, p.Amount, p.Charges, hex.EncodeToString(payee[:]), p.Reference, p.Key}
}

// sendRule needs no check where no line of the account asks for one.
var sendRule = Rule{Make: identity.MakePayouts, Check: identity.CheckPayouts, Light: true, ByKey: true}

// HoldPayout says whether a payout waits for the approval of its account's own people (payments.Holds).
func (a *Changes) HoldPayout(ctx context.Context, by payments.Asker, pay book.Payment) (*payments.Hold, error) {
	asked, err := a.Store.Asked(ctx, KindSendPayout, pay.Tenant, pay.Amount)
	if err != nil || !asked {
		return nil, err
	}
	act := Request{ID: pay.ID, Kind: KindSendPayout, Tenant: pay.Tenant, Place: pay.Tenant, Amount: pay.Amount,
		Maker: by.Person, MakerName: by.Email, Origin: by.Origin, Reason: "Reference " + reference(pay)}
	// No name: who may see it finds it on the page of the payment, and there it is erased when the payee asks.
	act.Sentence = fmt.Sprintf("Send %s to %s, with a fee of %s", worth(pay, pay.Amount), masked(pay), worth(pay, pay.Charges))
	if by.Person == "" {
		if err := a.byKey(ctx, &act, pay.Key); err != nil {
			return nil, err
		}
	}
	if act.Payload, err = json.Marshal(heldOf(pay)); err != nil {
		return nil, err
	}
	act, err = a.Store.Planned(ctx, sendRule, act)
	if err != nil || act.Needs == 0 {
		return nil, err
	}
	return &payments.Hold{Until: act.ExpiresAt, Write: func(tx *db.Tx) error { return a.Store.InsertPlanned(tx, act) }}, nil
}

// masked is where a payout goes, for a sentence that people read who may not see whole numbers. The page of the payment shows
// the number to those who may.
func masked(pay book.Payment) string {
	if pay.BankID == "" {
		return pay.Channel + " " + pay.MSISDN().Masked()
	}
	return "bank " + pay.BankID + ", account ****" + pay.Account[max(0, len(pay.Account)-4):]
}

// reference is a payout's reference as everybody may see it who sees the act: one that holds a number is masked like the number.
func reference(pay book.Payment) string {
	if !pay.ReferenceHoldsNumber() {
		return pay.Reference
	}
	return "****" + pay.Reference[max(0, len(pay.Reference)-3):]
}

// byKey says which key asked for an act, and whose it is.
func (a *Changes) byKey(ctx context.Context, act *Request, id string) error {
	k, err := a.Access.Key(ctx, act.Tenant, id)
	if err != nil {
		return err
	}
	act.Key, act.Maker, act.MakerName = k.ID, k.Maker, "key "+k.Hint
	if k.Member != "" {
		act.MakerName += " of " + k.Member
	}
	if k.Person == "" { // an older key's text may mean somebody
		act.Member = k.Member
	}
	act.Barred, err = a.Access.Holders(ctx, act.Tenant, id)
	return err
}

func payoutKind() kind {
	return kind{does: "Sending a payout, by a page or a key", rule: sendRule, do: (*Changes).approvePayout, undone: (*Changes).disapprovePayout}
}

// approvePayout lets the payout go and ends the act in one transaction.
func (a *Changes) approvePayout(ctx context.Context, act *Request, _ string, end finish) error {
	var p heldPayout
	if err := json.Unmarshal(act.Payload, &p); err != nil {
		return fmt.Errorf("changes: the payload of %s: %w", act.ID, err)
	}
	// A lane answers a caller who leaves before its batch has ended, and would go on with what the caller has left.
	return a.Payments.Approve(context.WithoutCancel(ctx), p.ID, func(tx *db.Tx, row book.Payment) error {
		if heldOf(row) != p {
			return errChanged("The payout")
		}
		if err := a.keyStands(tx, *act); err != nil {
			return err
		}
		return end(tx, []audit.Change{{What: "payout", Before: "waits for approval", After: "is sent"}})
	})
}

// keyStands refuses what a key asked for that was revoked since.
func (a *Changes) keyStands(tx *db.Tx, act Request) error {
	if act.Key == "" {
		return nil
	}
	k, err := a.Access.LockedKey(tx, act.Tenant, act.Key)
	if err == nil && !k.RevokedAt.IsZero() {
		err = problem.New(problem.Forbidden, "key_revoked", "The API key that asked for this was revoked since")
	}
	return err
}

// disapprovePayout gives back what was held and ends the act in one transaction. A payout that does not wait any more, because a
// recovery has found it at a provider, is left as it is.
func (a *Changes) disapprovePayout(ctx context.Context, act Request, end func(*db.Tx) error) error {
	err := a.Payments.Disapprove(context.WithoutCancel(ctx), act.ID, end)
	if err != nil && problem.From(err).Code == payments.CodeNotWaiting {
		return a.Store.Write(ctx, end)
	}
	return err
}
