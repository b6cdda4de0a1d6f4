package compose

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/senderid"
)

const (
	// maxText is the maximum size in bytes of a text of the form.
	maxText = 4 * compose.MaxMessage
	// maxNumbers is the maximum size in bytes of the pasted numbers.
	maxNumbers = 2 << 20
	// atForm is the format of times in the browser's field.
	atForm = "2006-01-02T15:04"
)

// written is the form as a person filled it in.
type written struct {
	id      string
	sender  string
	message string
	groups  []string
	numbers string
	at      string
}

// text returns the part of the form that a draft may change. Browsers send each line break as two characters, so text stores it
// as one: each character is paid for.
func (w written) text() (t compose.Text, err error) {
	t = compose.Text{SenderID: w.sender, Message: strings.ReplaceAll(w.message, "\r\n", "\n")}
	if n := len([]rune(t.Message)); n > compose.MaxMessage {
		return t, problem.Field("message", fmt.Sprintf("must have at most %d characters; it has %d", compose.MaxMessage, n))
	}
	if w.at != "" {
		if t.At, err = time.Parse(atForm, w.at); err != nil {
			return t, problem.Field("at", "must be a date and a time")
		}
	}
	return t, nil
}

// newCampaign shows the form. The second factor is required before a person chooses a file, because a chosen file is lost on
// another page.
func (ps *Pages) newCampaign(v *console.Visit) (console.Answer, error) {
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	return ps.ask(v, written{id: uuid.Must(uuid.NewV7()).String()}, nil)
}

// ask shows the form with its errors, and the drafts of the account.
func (ps *Pages) ask(v *console.Visit, w written, wrong error) (console.Answer, error) {
	fields, err := ps.textFields(v, w)
	if err != nil {
		return console.Answer{}, err
	}
	groups, err := ps.Contacts.Groups(v.Ctx, v.Tenant.ID)
	if err != nil {
		return console.Answer{}, err
	}
	var choices []page.Option
	for _, g := range groups {
		choices = append(choices, page.Option{Value: g.ID, Text: fmt.Sprintf("%s (%s)", g.Name, page.Count(g.Contacts))})
	}
	if len(choices) > 0 {
		fields = append(fields, page.Field{Name: "group", Label: "Contact groups", Value: strings.Join(w.groups, ","), Several: true, Options: choices,
			Hint: "Hold Ctrl to choose several groups. A number in several groups gets one text."})
	}
	f := page.Form{ID: "campaign", Action: newPath(v), Submit: "Preview campaign", Fields: append([]page.Field{{Name: "id", Type: "hidden", Value: w.id}}, append(fields,
		page.Field{Name: "numbers", Label: "Numbers", Type: page.Lines, Value: w.numbers, Max: maxNumbers, Hint: "Enter one number on each line, or separate the numbers by commas."},
		page.Field{Name: "file", Label: "File (XLSX or CSV)", Type: "file", Hint: "At most 20 MB and 100,000 rows. Each column with a heading is a field: the column Balance due becomes {balance_due}."})...)}
	if wrong != nil {
		f = console.Faulty(f, renamed(wrong))
	}
	drafts, err := ps.Drafts.List(v.Ctx, v.Tenant.ID)
	if err != nil {
		return console.Answer{}, err
	}
	return console.Answer{Title: "New campaign", Wrong: wrong != nil, Body: newPage(f, ps.listed(v, drafts), len(drafts) > 0)}, nil
}

// renamed returns an error with the field names of the form.
func renamed(err error) error {
	e := *problem.From(err)
	if texts := e.Fields["recipients"]; len(texts) > 0 {
		e.Fields = map[string][]string{"numbers": texts}
	}
	if texts := e.Fields["groups"]; len(texts) > 0 {
		e.Fields = map[string][]string{"group": texts}
	}
	return &e
}

// textFields are the fields of the form for the text, its sender ID and its start.
func (ps *Pages) textFields(v *console.Visit, w written) ([]page.Field, error) {
	all, err := ps.Senders.List(v.Ctx, v.Tenant.ID)
	if err != nil {
		return nil, err
	}
	var choices []page.Option
	for _, s := range all {
		if s.Status == senderid.Approved {
			choices = append(choices, page.Option{Value: s.ID, Text: s.Name + " (" + string(s.Class) + ")"})
		}
	}
	if len(choices) == 0 {
		choices = []page.Option{{Text: "No approved sender ID"}}
	}
	return []page.Field{
		{Name: "sender_id", Label: "Sender ID", Value: w.sender, Options: choices, Hint: "Promotional texts are sent in these hours: " + ps.Hours.String() + ", Accra time."},
		{Name: "message", Label: "Text", Type: page.Lines, Value: w.message, Max: compose.MaxMessage, Required: true,
			Hint: "Write {first_name} to insert the first name of each recipient, or {first_name|friend} to insert friend if there is no name."},
		{Name: "at", Label: "Start", Type: "datetime-local", Value: w.at, Max: len(atForm), Hint: "Accra time. Leave empty to send at once."},
	}, nil
}

// listed is the table of the drafts of the account.
func (ps *Pages) listed(v *console.Visit, drafts []compose.Draft) page.Grid {
	return console.Grid([]console.Column[compose.Draft]{
		console.Text("Text", "", func(d compose.Draft) string { return beginning(d.Message) }).Laid(console.Link),
		console.Count("Recipients", "", func(d compose.Draft) int64 { return int64(d.Count) }),
		console.Text("Status", "", func(d compose.Draft) string { return statusTexts[d.Status] }),
		console.Time("Written", "", func(d compose.Draft) time.Time { return d.CreatedAt }).Laid(console.Under),
	}, drafts, func(d compose.Draft) string { return draftPath(v, d.ID) })
}

var statusTexts = map[compose.Status]string{compose.Written: "Draft", compose.Requested: "Awaiting approval", compose.Sent: "Sent"}

// beginning returns the first characters of a text.
func beginning(text string) string {
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return text
}

// create reads the form and its file as they arrive, and redirects to the draft.
func (ps *Pages) create(v *console.Visit) (console.Answer, error) {
	v.FormPage = newPath(v)
	if err := v.NeedFactor(); err != nil {
		return console.Answer{}, err
	}
	var w written
	into := map[string]*string{"id": &w.id, "sender_id": &w.sender, "message": &w.message, "numbers": &w.numbers, "at": &w.at}
	part, err := v.Upload(maxNumbers, func(field, text string) {
		switch to := into[field]; {
		case to != nil:
			*to = text
		case field == "group" && text != "" && len(w.groups) <= messaging.MaxGroups: // one more than allowed is refused
			w.groups = append(w.groups, text)
		}
	})
	if err != nil {
		return console.Answer{}, err
	}
	text, err := w.text()
	if err != nil {
		return ps.ask(v, w, err)
	}
	from := compose.Source{Numbers: w.numbers, Groups: w.groups}
	if part != nil && part.FileName() != "" {
		from.File = part
	}
	d, err := ps.Drafts.Create(v.Ctx, v.Tenant.ID, w.id, v.Who.Person.ID, text, from)
	switch {
	case err == nil:
		return console.Answer{To: draftPath(v, d.ID)}, nil
	case problem.Is(err, problem.Invalid), problem.Is(err, problem.Forbidden), problem.Is(err, problem.Unavailable):
		return ps.ask(v, w, err)
	}
	return console.Answer{}, console.BrokenUpload(err)
}
