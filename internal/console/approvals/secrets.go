package approvals

import (
	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/page"
)

// madeOf is a secret of a request that waits for the visitor.
type madeOf struct{ path, button string }

// kept lists the secrets of a request that wait for the visitor.
func (ps *Pages) kept(v *console.Visit, a changes.Request) (list []madeOf, err error) {
	show, link := "Show the secret", changes.HasLink(a)
	if link {
		show = "Show the link"
	}
	for _, m := range []struct {
		part changes.Part
		madeOf
	}{{changes.Secret, madeOf{"/reveal", show}}, {changes.Code, madeOf{"/code", "Show the code"}}} {
		waits, err := ps.Changes.Store.Kept(v.Ctx, a, m.part, v.Who.Person.ID)
		if err != nil {
			return nil, err
		}
		if waits {
			list = append(list, m.madeOf)
		}
	}
	return list, nil
}

// revealMade shows the requester the secret of a change: the text of a key, or a link.
func (ps *Pages) revealMade(v *console.Visit) (console.Answer, error) {
	v.FormPage = requestPath(v)
	text, err := ps.Changes.Reveal(v.Ctx, By(v), changes.Secret, v.R.PathValue("id"))
	if err != nil {
		return console.Answer{}, err
	}
	a, err := ps.Changes.Get(v.Ctx, v.Tenant.ID, v.R.PathValue("id"))
	title, lead := "API key", "Copy it now. It is not stored and will not be shown again."
	if changes.HasLink(a) {
		text = v.PublicURL() + "/first?t=" + text
		title, lead = "Link", "Send this link to the person. It works once, within 24 hours, with a code that the approver gives to the person. It will not be shown again."
		if a.Needs == 0 {
			lead = "Send this link to the person. It works once, within 24 hours, with the code on the page of the request. It will not be shown again."
		}
	}
	return console.Answer{Title: title, Body: page.Revealed(title, lead, []page.Fact{{Name: title, Value: page.Copyable(text)}}, v.FormPage)}, err
}

// revealCode shows the approver of an invitation or a reset the code without which its link does not work.
func (ps *Pages) revealCode(v *console.Visit) (console.Answer, error) {
	v.FormPage = requestPath(v)
	code, err := ps.Changes.Reveal(v.Ctx, By(v), changes.Code, v.R.PathValue("id"))
	if err != nil {
		return console.Answer{}, err
	}
	const title = "Code"
	return console.Answer{Title: title, Body: page.Revealed(title, "Give this code to the person yourself, such as by a call to a number that you know. Do not give it to the requester. It will not be shown again.",
		[]page.Fact{{Name: title, Value: page.Copyable(code)}}, v.FormPage)}, nil
}
