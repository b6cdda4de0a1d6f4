package changes

import (
	"context"
	"fmt"
	"strconv"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// KindSendTexts sends a campaign that a person wrote on a page. The request freezes the draft. A request that ends without
// being applied makes it a draft again.
const KindSendTexts = "campaign.send"

// sentTexts is the payload of a request to send a campaign, as the requester saw it. Its members and their order are
// hashed, so they never change.
type sentTexts struct {
	Tenant      string `json:"tenant"`
	Draft       string `json:"draft"`
	Digest      string `json:"digest"` // digest of the text, the start time and the recipients
	Sender      string `json:"sender"`
	Promotional bool   `json:"promotional,omitempty"`
	Recipients  int    `json:"recipients"`
	Credits     int64  `json:"credits"`
}

func sentTextsOf(d compose.Draft, p compose.Price) sentTexts {
	return sentTexts{Tenant: d.Tenant, Draft: d.ID, Digest: d.Digest, Sender: p.Sender, Promotional: p.Promotional, Recipients: len(p.Texts), Credits: p.Credits()}
}

// stillAs reports whether a campaign still has the sender and class that its requester saw, with no more recipients
// and no higher price.
func (s sentTexts) stillAs(p compose.Price) bool {
	return s.Sender == p.Sender && s.Promotional == p.Promotional && len(p.Texts) <= s.Recipients && p.Credits() <= s.Credits
}

// textsKind needs no approver, because the credits are paid already. A line of the account's policy may require one.
func (a *Changes) textsKind() Kind {
	return Kind{Name: KindSendTexts, Title: "Campaign", Rule: Rule{Make: roles.SendCampaigns, Check: roles.ApproveAccess, Light: true}, Check: a.checkTexts, Apply: a.sendTexts, Undone: a.withdrawTexts,
		Instead: "People of the account send campaigns on its page"}.by(a.lookTexts, tenantField, Field{Name: "draft", Label: "Draft", Max: 36, Required: true},
		Field{Name: "digest", Label: "Digest of the draft as shown", Max: 64, Required: true}, Field{Name: "credits", Label: "Price as shown, in credits", Max: 19, Required: true})
}

func (a *Changes) lookTexts(ctx context.Context, o Order) (Draft, error) {
	if o.By.Machine != "" {
		return Draft{}, problem.New(problem.Forbidden, "person_needed", a.kinds[KindSendTexts].Instead)
	}
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	d, err := a.Compose.Get(ctx, t.ID, o.Values["draft"])
	if err != nil {
		return Draft{}, err
	}
	if d.Request != "" {
		if r, err := a.Get(ctx, o.By.Place, d.Request); err == nil { // the form was sent again, or another person sent the draft
			return Draft{Again: &r}, nil
		}
	}
	p, err := a.Compose.Price(ctx, d)
	if err != nil {
		return Draft{}, err
	}
	if o.Values["digest"] != d.Digest || o.Values["credits"] != strconv.FormatInt(p.Credits(), 10) {
		return Draft{}, problem.New(problem.Invalid, CodeChanged, "The campaign or its price has changed since this page was shown. Check it again")
	}
	return Draft{Tenant: t.ID, Amount: money.Pesewas(p.Credits() * creditWorth), Sentence: textsSentence(t, p), Payload: sentTextsOf(d, p), Reason: "Campaign from " + p.Sender,
		Begin: []func(*db.Tx) error{func(tx *db.Tx) error { return a.Compose.RequestIn(tx, d, o.ID) }}}, nil
}

func textsSentence(t tenant.Tenant, p compose.Price) string {
	return fmt.Sprintf("Send texts from %s to %d recipients for %s, %s", p.Sender, len(p.Texts), t.SMSCredits().Asset.Text(p.Credits()), begins(p))
}

// begins returns the start time of a campaign as text.
func begins(p compose.Price) string {
	if p.Begins.IsZero() {
		return "at once"
	}
	return "from " + at(p.Begins)
}

// checkTexts returns the text, the recipients who get none, and the credits.
func (a *Changes) checkTexts(ctx context.Context, r Request) ([]Fact, error) {
	s, err := payloadOf[sentTexts](r)
	if err != nil {
		return nil, err
	}
	t, err := a.Tenants.Get(ctx, s.Tenant)
	if err != nil {
		return nil, err
	}
	d, err := a.Compose.Get(ctx, s.Tenant, s.Draft)
	if problem.Is(err, problem.NotFound) || err == nil && d.Status == compose.Sent {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p, err := a.Compose.Price(ctx, d)
	if problem.Is(err, problem.Forbidden) && r.State == Waiting {
		return []Fact{warning("The account is blocked. The campaign cannot be sent.")}, nil
	}
	if err != nil {
		if problem.Is(err, problem.Invalid) && r.State == Waiting && !d.At.IsZero() && !d.At.After(a.Store.now()) {
			return []Fact{warning("The start time has passed, so the campaign cannot be sent. Withdraw the request and choose another time.")}, nil
		}
		return nil, err
	}
	list, err := a.balances(ctx, "SMS credits of "+t.Name, t.SMSCredits(), -p.Credits())
	if err != nil {
		return nil, err
	}
	list = append(list, Fact{Name: "Text", Value: d.Message, Unstored: true},
		Fact{Name: "Begins", Value: begins(p)}, Fact{Name: "Recipients", Value: strconv.Itoa(len(p.Texts))})
	if p.OptedOut > 0 {
		list = append(list, Fact{Name: "Opted out", Value: strconv.Itoa(p.OptedOut)})
	}
	if p.Lacking > 0 {
		list = append(list, warning(fmt.Sprintf("%d recipients get no text, because they have no value for a field.", p.Lacking)))
	}
	return list, nil
}

// sendTexts charges and stores the campaigns of the draft and ends the request in one transaction.
func (a *Changes) sendTexts(ctx context.Context, request *Request, finish Finish) error {
	s, err := payloadOf[sentTexts](*request)
	if err != nil {
		return err
	}
	request.Made = s.Draft
	return a.Compose.Send(context.WithoutCancel(ctx), s.Tenant, s.Draft, s.Digest, func(tx *db.Tx, p compose.Price) error {
		if !s.stillAs(p) {
			return errChanged("The campaign")
		}
		return finish(tx, []audit.Change{{What: "campaign from " + s.Sender, Before: "requested", After: fmt.Sprintf("accepted for %d recipients, %d credits", len(p.Texts), p.Credits())}})
	})
}

// withdrawTexts makes the campaign a draft again and ends the request in one transaction.
func (a *Changes) withdrawTexts(ctx context.Context, request Request, end func(*db.Tx) error) error {
	s, err := payloadOf[sentTexts](request)
	if err != nil {
		return err
	}
	return a.Store.Write(ctx, func(tx *db.Tx) error {
		if err := a.Compose.Withdraw(tx, s.Tenant, s.Draft, request.ID); err != nil {
			return err
		}
		return end(tx)
	})
}
