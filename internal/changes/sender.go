package changes

import (
	"cmp"
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/senderid"
)

// The kinds of changes of sender IDs: an approved sender ID that an operator creates for a customer, and the review
// of a waiting one.
const (
	KindCreateSender  = "sender.create"
	KindApproveSender = "sender.approve"
	KindRejectSender  = "sender.reject"
	KindSenderClass   = "sender.class"
)

// sender is the sender ID as the reviewer saw it. Its members and their order are hashed.
type sender struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Name   string `json:"name"`
}

// ReviewSender requests the review of a sender ID. The customer sees the reason of a rejection.
func (a *Changes) ReviewSender(ctx context.Context, by By, id, senderID string, to senderid.Status, reason string) (Request, error) {
	kind, known := map[senderid.Status]string{senderid.Approved: KindApproveSender, senderid.Rejected: KindRejectSender}[to]
	if !known {
		return Request{}, problem.Field("status", "must be approved or rejected")
	}
	return a.Do(ctx, by, kind, id, Values{"sender": senderID}, reason)
}

func (a *Changes) lookReview(to senderid.Status) func(ctx context.Context, o Order) (Draft, error) {
	does := map[senderid.Status]string{senderid.Approved: "Approve", senderid.Rejected: "Reject"}[to]
	return func(ctx context.Context, o Order) (Draft, error) {
		s, err := a.Senders.Find(ctx, o.Values["sender"])
		if err != nil {
			return Draft{}, err
		}
		t, err := a.Tenants.Get(ctx, s.Tenant)
		if err != nil {
			return Draft{}, err
		}
		title, err := a.titled(ctx, o.By.Place, t)
		return Draft{Tenant: t.ID, Sentence: fmt.Sprintf("%s the sender ID %q of %s", does, s.Name, title), Payload: sender{t.ID, s.ID, s.Name}}, err
	}
}

// broughtOver is the requested sender ID. Its members and their order are hashed.
type broughtOver struct {
	Tenant      string `json:"tenant"`
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

func (a *Changes) lookCreateSender(ctx context.Context, o Order) (Draft, error) {
	v := o.Values
	if err := senderid.CheckName(v["name"]); err != nil {
		return Draft{}, err
	}
	t, err := a.Tenants.Get(ctx, v[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Create the approved sender ID %q of %s, with the id %s", v["name"], title, v["id"])
	return Draft{Tenant: t.ID, Sentence: sentence, Payload: broughtOver{t.ID, v["id"], v["name"], v["description"]}}, nil
}

func (a *Changes) createSenderKind() Kind {
	return written(a, KindCreateSender, "Sender ID from another provider", Rule{Make: roles.ReviewSenders, Check: roles.ApproveAccess, Light: true}, func(tx *db.Tx, request Request, p broughtOver) ([]audit.Change, error) {
		made, err := a.Senders.Create(tx, senderid.Sender{Tenant: p.Tenant, ID: p.ID, Name: p.Name, Description: p.Description}, request.Reason, request.RequesterName)
		return []audit.Change{{What: "sender ID " + p.Name, Before: "", After: string(made.Status)}}, err
	}).by(a.lookCreateSender, tenantField, Field{Name: "id", Label: "Id", Hint: "Enter the id that the account's programs use.", Max: 64, Required: true},
		Field{Name: "name", Label: "Sender ID", Max: 64, Required: true}, Field{Name: "description", Label: "Description", Max: 500}).showing(a.checkSender)
}

func (a *Changes) reviewKind(name, title string, to senderid.Status) Kind {
	return written(a, name, title, Rule{Make: roles.ReviewSenders, Check: roles.ApproveAccess, Light: true}, func(tx *db.Tx, request Request, p sender) ([]audit.Change, error) {
		s, err := a.Senders.Review(tx, p.Tenant, p.ID, to, request.Reason, request.RequesterName)
		if err == nil && s.Name != p.Name {
			err = errChanged("The name")
		}
		return []audit.Change{{What: "sender ID " + p.Name, Before: string(senderid.Pending), After: string(to)}}, err
	}).by(a.lookReview(to), Field{Name: "sender", Label: "Sender ID", Hint: "The id of the sender ID.", Max: 64, Required: true}).showing(a.checkSender)
}

// classed is the class of a sender ID. Its members and their order are hashed.
type classed struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

func (a *Changes) lookClass(ctx context.Context, o Order) (Draft, error) {
	s, err := a.Senders.Find(ctx, o.Values["sender"])
	if err != nil {
		return Draft{}, err
	}
	if string(s.Class) == o.Values["class"] {
		return Draft{}, problem.New(problem.Invalid, "nothing_changed", "Nothing would change")
	}
	t, err := a.Tenants.Get(ctx, s.Tenant)
	if err != nil {
		return Draft{}, err
	}
	title, err := a.titled(ctx, o.By.Place, t)
	return Draft{Tenant: t.ID, Sentence: fmt.Sprintf("Change the sender ID %q of %s to %s; now it is %s", s.Name, title, o.Values["class"], s.Class),
		Payload: classed{t.ID, s.ID, s.Name, string(s.Class), o.Values["class"]}}, err
}

func (a *Changes) classKind() Kind {
	return written(a, KindSenderClass, "Class of a sender ID", Rule{Make: roles.ReviewSenders, Check: roles.ApproveAccess, Light: true}, func(tx *db.Tx, _ Request, p classed) ([]audit.Change, error) {
		was, err := a.Senders.SetClass(tx, p.Tenant, p.ID, senderid.Class(p.After))
		if err == nil && string(was.Class) != p.Before {
			err = errChanged("The class")
		}
		return []audit.Change{{What: "class of sender ID " + p.Name, Before: p.Before, After: p.After}}, err
	}).by(a.lookClass, Field{Name: "sender", Label: "Sender ID", Hint: "The id of the sender ID.", Max: 64, Required: true},
		Field{Name: "class", Label: "Class", Hint: "Promotional texts are sent only in the hours of MAKOLA_SMS_PROMOTIONAL_HOURS.", Options: []string{string(senderid.Transactional), string(senderid.Promotional)}, Max: 13, Required: true}).showing(checkClass)
}

// checkSender returns the purpose of a sender ID, and warns of a similar name of another account.
func (a *Changes) checkSender(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[broughtOver](r)
	if err != nil {
		return nil, err
	}
	if r.Kind != KindCreateSender {
		s, err := a.Senders.Find(ctx, p.ID)
		if err != nil {
			return nil, err
		}
		p.Description = s.Description
	}
	list := []Fact{{Name: "Sender ID", Value: p.Name}, {Name: "Description", Value: cmp.Or(p.Description, "none")}}
	if near := senderid.Near(p.Name); near != "" {
		list = append(list, warning("The name is like "+near+"."))
	}
	return list, nil
}

// checkClass returns the class of a sender ID before and after.
func checkClass(_ context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[classed](r)
	return append([]Fact{{Name: "Sender ID", Value: p.Name}}, becomes("Class", p.Before, p.After)...), err
}
