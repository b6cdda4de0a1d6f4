package records

import (
	"fmt"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments/book"
)

// forAccount removes from a payment's page the parts that belong to the installation: its providers, its costs and the
// references that providers gave. Only this file decides which of these facts an account's people see.
func (s *story) forAccount(wallet ledger.AccountID) {
	var own []ledger.Transfer
	for _, t := range s.transfers {
		if t.From == wallet || t.To == wallet {
			own = append(own, t)
		}
	}
	s.transfers = own
	for i := range s.audit {
		s.audit[i].Details = nil
	}
}

// upstream returns the label of the provider's id for visitors who may see it, and an empty text for others.
// Everybody sees the network's own transaction id, because a payer or payee who misses the money quotes it.
func (s story) upstream(v *console.Visit) string {
	switch {
	case s.payment.UpstreamID == "":
	case s.payment.Rail == "mtn" && s.payment.Status == book.StatusSuccess:
		return "MTN transaction ID"
	case v.Route.Site == console.Operators:
		return "Provider's ID"
	}
	return ""
}

// where returns a sentence about the money of the payment: where it is now and what happens next. It is empty for a
// contradicted payment, whose note explains it.
func (s story) where() string {
	p := s.payment
	switch {
	case !p.ContradictedAt.IsZero(), p.AwaitsApproval():
		return ""
	case p.Received():
		return fmt.Sprintf("%s arrived in this account's wallet on %s.", page.Cedis(p.Amount), page.When(p.SettledAt))
	case p.Kind == book.KindCollection:
		return s.whereCollected()
	case p.Status == book.StatusWaiting:
		return "No money is on hold: the payer of the collection pays first."
	case p.Status.Open():
		return fmt.Sprintf("%s left the wallet and is on hold. It goes to the recipient, or returns to the wallet when this payment fails.", page.Cedis(p.Held()))
	case p.Status == book.StatusSuccess && p.Kind == book.KindPayout:
		return fmt.Sprintf("%s was paid to the recipient on %s.", page.Cedis(p.Amount), page.When(p.SettledAt))
	case p.Status == book.StatusSuccess:
		return fmt.Sprintf("The recipient got the %s on %s.", goods[p.Kind], page.When(p.SettledAt))
	case p.Kind == book.KindTopUp && p.Parent != "":
		return s.whereUndelivered()
	}
	return fmt.Sprintf("%s returned to the wallet on %s.", page.Cedis(p.Amount+p.Charges), page.When(p.SettledAt))
}

var goods = map[book.Kind]string{book.KindTopUp: "airtime", book.KindBundle: "data package"}

func (s story) whereCollected() string {
	p := s.payment
	switch {
	case p.Status.Open():
		return fmt.Sprintf("The wallet has not changed. It is credited with %s when the payer has paid.", page.Cedis(p.Net()))
	case p.Status == book.StatusSuccess && p.Refunded > 0:
		return fmt.Sprintf("%s was credited to the wallet on %s. %s of this was refunded to the payer or is being refunded.", page.Cedis(p.Net()), page.When(p.SettledAt), page.Cedis(p.Refunded))
	case p.Status == book.StatusSuccess:
		return fmt.Sprintf("%s was credited to the wallet on %s.", page.Cedis(p.Net()), page.When(p.SettledAt))
	}
	return "No money moved."
}

// whereUndelivered locates the money of undelivered airtime that was paid by mobile money.
func (s story) whereUndelivered() string {
	if s.parent.Status != book.StatusSuccess {
		return "No money moved: the payer did not pay."
	}
	return fmt.Sprintf("The payer paid, but the airtime was not delivered. %s has been in this account's wallet since %s.", page.Cedis(s.parent.Net()), page.When(s.parent.SettledAt))
}
