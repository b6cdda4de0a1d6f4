package changes

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/roles"
)

// The kinds of changes of numbers for texts from handsets.
const (
	KindAssignNumber  = "incoming.assign"
	KindReleaseNumber = "incoming.release"
)

// number is a number as the requester saw it. Its members and their order are hashed, so they never change.
type number struct {
	Tenant  string `json:"tenant"`
	Name    string `json:"name"`
	Mode    string `json:"mode"`
	Number  string `json:"number"`
	Keyword string `json:"keyword"`
	Answers bool   `json:"answers"`
}

func (p number) text() string { return inbox.Number{Number: p.Number, Keyword: p.Keyword}.Text() }

var (
	numberField  = Field{Name: "number", Label: "Number or short code", Hint: "Enter the number in the operator's form, such as 1400.", Max: inbox.MaxAddress, Required: true}
	keywordField = Field{Name: "keyword", Label: "Keyword", Hint: "Enter the first word of the texts, such as shop. Leave empty for every text to the number.", Max: inbox.MaxKeyword}
)

func (a *Changes) incomingKinds() []Kind {
	rule := Rule{Make: roles.ReviewSenders, Check: roles.ApproveAccess, Light: true}
	assign := func(tx *db.Tx, _ Request, p number) ([]audit.Change, error) {
		n, err := a.Inbox.Assign(tx, inbox.Number{Tenant: p.Tenant, Number: p.Number, Keyword: p.Keyword, Answers: p.Answers})
		if err == nil && string(n.Mode) != p.Mode {
			err = errChanged("The mode of the account")
		}
		return []audit.Change{{What: "number " + p.text(), Before: "", After: p.Tenant}}, err
	}
	release := func(tx *db.Tx, _ Request, p number) ([]audit.Change, error) {
		t, err := a.Tenants.Locked(tx, p.Tenant)
		if err != nil {
			return nil, err
		}
		was, err := a.Inbox.Release(tx, t.Mode, p.Number, p.Keyword)
		if err == nil && was.Tenant != p.Tenant {
			err = errChanged("The account of the number")
		}
		return []audit.Change{{What: "number " + p.text(), Before: p.Tenant, After: ""}}, err
	}
	return []Kind{
		written(a, KindAssignNumber, "Number for texts from handsets", rule, assign).by(a.lookNumber("Give %s to %s"), tenantField, numberField, keywordField,
			Field{Name: "answers", Label: "Answer STOP and START", Hint: "Each answer costs the account one text. Leave empty for on.", Options: onOff, Max: 3}).showing(a.checkNumber),
		written(a, KindReleaseNumber, "Release of a number for texts", rule, release).by(a.lookNumber("Take %s from %s"), tenantField, numberField, keywordField).showing(a.checkNumber),
	}
}

func (a *Changes) lookNumber(sentence string) func(ctx context.Context, o Order) (Draft, error) {
	return func(ctx context.Context, o Order) (Draft, error) {
		t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
		if err != nil {
			return Draft{}, err
		}
		n := inbox.Number{Mode: t.Mode, Tenant: t.ID, Number: inbox.Address(o.Values["number"]), Keyword: inbox.Keyword(o.Values["keyword"]), Answers: o.Values["answers"] != "off"}
		if err := a.Inbox.Check(n); err != nil {
			return Draft{}, err
		}
		title, err := a.titled(ctx, o.By.Place, t)
		return Draft{Tenant: t.ID, Sentence: fmt.Sprintf(sentence, "the number "+n.Text(), title),
			Payload: number{t.ID, t.Name, string(t.Mode), n.Number, n.Keyword, n.Answers}}, err
	}
}

// checkNumber returns the number with its keyword, and the other assignments of the same number.
func (a *Changes) checkNumber(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[number](r)
	if err != nil {
		return nil, err
	}
	list := []Fact{{Name: "Number", Value: p.Number}, {Name: "Texts", Value: textsOf(p.Keyword)}}
	all, err := a.Inbox.Numbers(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		if string(n.Mode) != p.Mode || n.Number != p.Number || n.Keyword == p.Keyword {
			continue
		}
		t, err := a.Tenants.Get(ctx, n.Tenant)
		if err != nil {
			return nil, err
		}
		list = append(list, Fact{Name: "Other keywords of the number", Value: textsOf(n.Keyword) + ": " + t.Name, Of: ofAccount(t.ID)})
	}
	return list, nil
}

// textsOf describes the texts that a keyword selects.
func textsOf(keyword string) string {
	if keyword == "" {
		return "all texts without another keyword"
	}
	return "texts that begin with " + keyword
}
