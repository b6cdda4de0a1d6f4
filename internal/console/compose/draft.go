package compose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/console/records"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/smstext"
)

// shownTexts is the number of recipients whose texts the page of a draft shows.
const shownTexts = 10

// find returns the draft of the path.
func (ps *Pages) find(v *console.Visit) (compose.Draft, error) {
	d, err := ps.Drafts.Get(v.Ctx, v.Tenant.ID, v.R.PathValue("id"))
	if problem.Is(err, problem.NotFound) {
		err = console.ErrNoPage()
	}
	return d, err
}

// draft shows a draft with its price.
func (ps *Pages) draft(v *console.Visit) (console.Answer, error) {
	d, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	return ps.show(v, d, nil)
}

// show shows a draft, with the refusal of the last action if there was one. It redirects a sent draft to its campaign.
func (ps *Pages) show(v *console.Visit, d compose.Draft, wrong error) (console.Answer, error) {
	if d.Status == compose.Sent {
		if len(d.Campaigns) == 1 {
			return console.Answer{To: campaignPath(v, d.Campaigns[0])}, nil
		}
		return console.Answer{Title: "Campaign sent", Body: sentPage(v, d)}, nil
	}
	p, err := ps.Drafts.Price(v.Ctx, d)
	if err != nil && slices.Contains([]problem.Kind{problem.Invalid, problem.Forbidden, problem.Unavailable}, problem.From(err).Kind) {
		return console.Answer{Title: "Campaign", Wrong: wrong != nil, Body: draftPage(ps.parts(v, d, p, unpriced(err)), nil)}, nil
	}
	if err != nil {
		return console.Answer{}, err
	}
	parts := ps.parts(v, d, p, wrong)
	prices := page.Table("Price", console.Grid(priceColumns(), p.Prices, nil))
	texts := page.Table("Texts", console.Grid([]console.Column[messaging.Addressed]{
		console.Text("Number", "", func(a messaging.Addressed) string { return records.Account(v, string(a.Number)) }),
		console.Text("Text", "", func(a messaging.Addressed) string { return a.Text }),
	}, p.Texts[:min(len(p.Texts), shownTexts)], nil))
	facts, err := ps.facts(v, d, p)
	if err != nil {
		return console.Answer{}, err
	}
	parts = append(parts, page.Panel("Campaign", page.Facts(facts)), page.Panel("Price", prices), page.Panel(fmt.Sprintf("Texts of the first %d recipients", min(len(p.Texts), shownTexts)), texts))
	if d.Status == compose.Requested {
		return console.Answer{Title: "Campaign", Wrong: wrong != nil, Body: draftPage(parts, nil)}, nil
	}
	confirm, err := ps.confirm(v, d, p, wrong)
	if err != nil {
		return console.Answer{}, err
	}
	buttons := []templ.Component{page.Button(draftPath(v, d.ID)+"/text", "Change text"), page.ActionButton(draftPath(v, d.ID)+"/discard", "Discard draft", "danger")}
	return console.Answer{Title: "Campaign", Wrong: wrong != nil, Body: draftPage(append(parts, page.Panel("Send", page.Asking(confirm))), buttons)}, nil
}

// unpriced returns an error with all reasons why a draft cannot be sent now.
func unpriced(err error) error {
	e := problem.From(err)
	var texts []string
	for _, field := range []string{"message", "sender_id", "at", "recipients"} {
		for _, text := range e.Fields[field] {
			texts = append(texts, map[string]string{"message": "Text", "sender_id": "Sender ID", "at": "Start", "recipients": "Recipients"}[field]+" "+text)
		}
	}
	if len(texts) == 0 {
		return err
	}
	return problem.New(e.Kind, e.Code, strings.Join(texts, "; "))
}

// parts returns the heading and the notes above a draft.
func (ps *Pages) parts(v *console.Visit, d compose.Draft, p compose.Price, wrong error) []templ.Component {
	parts := []templ.Component{page.Head("Campaign", "")}
	if wrong != nil {
		parts = append(parts, page.Note(page.Bad, "Not sent", console.Sentence(problem.From(wrong).Message)))
	}
	if d.Status == compose.Requested {
		note := page.Note(page.Open, "Awaiting approval", "Another person of the account must approve this campaign. Nothing is sent before the approval.")
		if r, err := ps.Approvals.Changes.Get(v.Ctx, approvals.By(v).Place, d.Request); err == nil && r.Needs == 0 {
			note = page.Note(page.Open, "Not sent yet", "The campaign needs no approval, but it could not be sent. Open its request to send or withdraw it.")
		}
		parts = append(parts, note)
		if v.Can(roles.ReadChanges) {
			parts = append(parts, page.Button(approvals.Path(v)+"/"+d.Request, "Show request"))
		}
	}
	if p.Lacking > 0 {
		parts = append(parts, page.Note(page.Open, "Check this point", page.Count(int64(p.Lacking))+" recipients get no text, because they have no value for a field. To include them, write a text for missing values, such as {first_name|friend}."))
	}
	if strange := unusual(d.Message); strange != "" {
		parts = append(parts, page.Note(page.Open, "Check this point", "The text has characters that make its segments shorter: "+strange+". A segment then has 70 characters instead of 160."))
	}
	return parts
}

// unusual returns the characters of a text that are not in the GSM alphabet, each once.
func unusual(text string) string {
	var found []string
	for _, r := range text {
		if _, ok := smstext.EncodeAs(string(r), smstext.GSM7); !ok && !slices.Contains(found, string(r)) && len(found) < 10 {
			found = append(found, string(r))
		}
	}
	return strings.Join(found, " ")
}

func priceColumns() []console.Column[messaging.Price] {
	type price = messaging.Price
	return []console.Column[price]{
		console.Count("Recipients", "", func(p price) int64 { return p.Recipients }),
		console.Text("Encoding", "", func(p price) string { return string(p.Encoding) }).Laid(console.Minor),
		console.Count("Segments each", "", func(p price) int64 { return p.Segments }),
		console.Count("Credits each", "", func(p price) int64 { return p.Credits }),
		console.Count("Credits", "", func(p price) int64 { return p.Credits * p.Recipients }),
	}
}

// facts are the details that a person confirms.
func (ps *Pages) facts(v *console.Visit, d compose.Draft, p compose.Price) ([]page.Fact, error) {
	class := "transactional: sent at any hour"
	if p.Promotional {
		class = "promotional: sent in these hours: " + ps.Hours.String() + ", Accra time"
	}
	begins := page.Text("At once")
	if !p.Begins.IsZero() {
		begins = page.Time(p.Begins)
	}
	facts := []page.Fact{{Name: "Sender ID", Value: page.Text(p.Sender)}, {Name: "Class", Value: page.Text(class)}, {Name: "Begins", Value: begins},
		{Name: "Text", Value: page.Pre("Text", d.Message)}, {Name: "Recipients", Value: page.Text(page.Count(int64(len(p.Texts))))}}
	for _, left := range []struct {
		name string
		n    int
	}{{"Opted out", p.OptedOut}, {"No value for a field", p.Lacking}, {"Invalid numbers", d.Invalid}, {"Repeated numbers", d.Repeated}} {
		if left.n > 0 {
			facts = append(facts, page.Fact{Name: left.name, Value: page.Text(page.Count(int64(left.n)))})
		}
	}
	facts = append(facts, page.Fact{Name: "Price", Value: page.Text(page.Count(p.Credits()) + " SMS credits")})
	if v.Can(roles.ReadBalances) {
		balance, err := ps.Ledger.Balance(v.Ctx, v.Tenant.SMSCredits())
		if err != nil {
			return nil, err
		}
		facts = append(facts, page.Fact{Name: "Credits now", Value: page.Text(page.Count(balance))}, page.Fact{Name: "Credits after", Value: page.Text(page.Count(balance - p.Credits()))})
	}
	return facts, nil
}

// confirm is the form that sends a draft as it is shown.
func (ps *Pages) confirm(v *console.Visit, d compose.Draft, p compose.Price, wrong error) (page.Form, error) {
	values := changes.Values{changes.FieldTenant: d.Tenant, "draft": d.ID, "digest": d.Digest, "credits": strconv.FormatInt(p.Credits(), 10)}
	request, err := ps.Approvals.Changes.Preview(v.Ctx, approvals.By(v), changes.KindSendTexts, values)
	if err != nil {
		return page.Form{}, err
	}
	needs, err := ps.Approvals.Changes.Approvers(v.Ctx, approvals.By(v), request)
	if err != nil {
		return page.Form{}, err
	}
	submit := fmt.Sprintf("Send to %s recipients", page.Count(int64(len(p.Texts))))
	if needs > 0 {
		submit = "Request approval"
	}
	f := page.Form{ID: "send", Action: draftPath(v, d.ID) + "/send", Submit: submit, Fields: []page.Field{
		{Name: "id", Type: "hidden", Value: uuid.Must(uuid.NewV7()).String()}, {Name: "digest", Type: "hidden", Value: values["digest"]},
		{Name: "credits", Type: "hidden", Value: values["credits"]},
		{Name: "reason", Label: "Purpose", Value: v.R.PostFormValue("reason"), Max: 500, Hint: "Optional, such as the opening of a new shop. Approvers see it."}}}
	if wrong != nil {
		f = console.Faulty(f, wrong)
	}
	return f, nil
}

// send sends the draft as it was shown, or requests its approval. A form that is sent again leads to the same campaign.
func (ps *Pages) send(v *console.Visit) (console.Answer, error) {
	d, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	v.FormPage = draftPath(v, d.ID)
	if d.Status != compose.Written {
		return console.Answer{To: draftPath(v, d.ID)}, nil
	}
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	shown := changes.Values{changes.FieldTenant: d.Tenant, "draft": d.ID, "digest": v.R.PostFormValue("digest"), "credits": v.R.PostFormValue("credits")}
	r, err := ps.Approvals.Changes.Do(v.Ctx, approvals.By(v), changes.KindSendTexts, v.R.PostFormValue("id"), shown, strings.TrimSpace(v.R.PostFormValue("reason")))
	if err == nil && r.Refused != nil {
		err = r.Refused
	}
	if err == nil {
		return console.Answer{To: draftPath(v, d.ID)}, nil
	}
	now, found := ps.find(v)
	if found != nil {
		return console.Answer{}, found
	}
	if now.Status == compose.Requested && problem.Is(err, problem.Unavailable) {
		return ps.show(v, now, err)
	}
	if now.Status != compose.Written { // the first click of a double click has sent the draft
		return console.Answer{To: draftPath(v, d.ID)}, nil
	}
	if e := problem.From(err); e.Code == console.CodeStepUp || !slices.Contains(shownKinds, e.Kind) {
		return console.Answer{}, err
	}
	return ps.show(v, now, err)
}

// shownKinds are the kinds of refusals that the page of a draft shows.
var shownKinds = []problem.Kind{problem.Invalid, problem.InsufficientCredits, problem.InProgress, problem.Forbidden, problem.RateLimited, problem.Gone, problem.Unavailable}

// edit shows the form that changes the text of a draft.
func (ps *Pages) edit(v *console.Visit) (console.Answer, error) {
	d, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	if d.Status != compose.Written {
		return console.Answer{To: draftPath(v, d.ID)}, nil
	}
	w := written{sender: d.SenderID, message: d.Message}
	if !d.At.IsZero() {
		w.at = d.At.UTC().Format(atForm)
	}
	return ps.askText(v, d, w, nil)
}

func (ps *Pages) askText(v *console.Visit, d compose.Draft, w written, wrong error) (console.Answer, error) {
	fields, err := ps.textFields(v, w)
	if err != nil {
		return console.Answer{}, err
	}
	f := page.Form{ID: "text", Action: draftPath(v, d.ID) + "/text", Submit: "Preview campaign", Fields: fields}
	if wrong != nil {
		f = console.Faulty(f, wrong)
	}
	return console.Answer{Title: "Change text", Wrong: wrong != nil, Body: textPage(f, draftPath(v, d.ID))}, nil
}

// change replaces the text of a draft.
func (ps *Pages) change(v *console.Visit) (console.Answer, error) {
	d, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	v.FormPage = draftPath(v, d.ID) + "/text"
	value := v.R.PostFormValue
	w := written{sender: value("sender_id"), message: strings.TrimSpace(value("message")), at: value("at")}
	text, err := w.text()
	if err == nil {
		_, err = ps.Drafts.Change(v.Ctx, d.Tenant, d.ID, text)
	}
	switch {
	case err == nil, problem.Is(err, problem.InProgress):
		return console.Answer{To: draftPath(v, d.ID)}, nil
	case problem.Is(err, problem.Invalid):
		return ps.askText(v, d, w, err)
	}
	return console.Answer{}, err
}

// discard deletes a draft.
func (ps *Pages) discard(v *console.Visit) (console.Answer, error) {
	d, err := ps.find(v)
	if err != nil {
		return console.Answer{}, err
	}
	if err := ps.Drafts.Discard(v.Ctx, d.Tenant, d.ID); err != nil && !problem.Is(err, problem.InProgress) {
		return console.Answer{}, err
	}
	return console.Answer{To: newPath(v)}, nil
}
