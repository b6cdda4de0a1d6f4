package records

import (
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
)

// shownNumbers is the most numbers in the lead of a list.
const shownNumbers = 20

// Incoming lists the texts from handsets to an account.
func (ps *Pages) Incoming(v *console.Visit) (console.Answer, error) {
	l := page.List{Title: "Incoming texts", Empty: page.Empty{Title: "No incoming texts", Text: "Texts that people send to your numbers and keywords appear here."}}
	return ps.incoming(v, l, inbox.Filter{Tenant: v.Tenant.ID})
}

// AllIncoming lists the texts from handsets to all accounts, and those to numbers that no account has.
func (ps *Pages) AllIncoming(v *console.Visit) (console.Answer, error) {
	l := page.List{Title: "Incoming texts", Empty: page.Empty{Title: "No incoming texts", Text: "Texts that people send to numbers of this installation appear here."}}
	return ps.incoming(v, l, inbox.Filter{All: true})
}

// incoming completes a list of texts. Its lead names the numbers.
func (ps *Pages) incoming(v *console.Visit, l page.List, f inbox.Filter) (console.Answer, error) {
	numbers, err := ps.Inbox.Numbers(v.Ctx, f.Tenant)
	if err != nil {
		return console.Answer{}, err
	}
	l.Lead = numbersLead(v, numbers)
	f.Before, f.Limit = v.Param("before"), console.PageRows+1
	list, err := ps.Inbox.Texts(v.Ctx, f)
	if err != nil {
		return console.Answer{}, err
	}
	list = console.Keyed(v, &l, "before", list, func(t inbox.Text) string { return t.ID })
	var names map[string]string
	if f.All {
		if names, err = namesOf(ps, v, list, func(t inbox.Text) string { return t.Tenant }); err != nil {
			return console.Answer{}, err
		}
	}
	l.Grid = console.Grid(incomingColumns(v, names), list, nil)
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}

// numbersLead names the numbers and keywords of an account, or of all accounts.
func numbersLead(v *console.Visit, numbers []inbox.Number) string {
	if len(numbers) == 0 {
		return "No number is assigned. An operator assigns a number or a keyword to an account."
	}
	texts := make([]string, 0, shownNumbers)
	for _, n := range numbers[:min(len(numbers), shownNumbers)] {
		text := n.Number
		if _, err := msisdn.Parse(text); err == nil {
			text = Account(v, text)
		}
		texts = append(texts, strings.TrimSpace(text+" "+n.Keyword))
	}
	lead := "Numbers and keywords: " + strings.Join(texts, ", ")
	if more := len(numbers) - len(texts); more > 0 {
		lead += " and " + strconv.Itoa(more) + " more"
	}
	return lead + "."
}

// answerWords are the states of answers for people.
var answerWords = map[inbox.Answer]string{inbox.AnswerDue: "being sent", inbox.AnswerSent: "sent", inbox.AnswerRefused: "not sent"}

// incomingColumns returns the columns of texts. names has the names of accounts by id. It is nil for a list of one
// account.
func incomingColumns(v *console.Visit, names map[string]string) []console.Column[inbox.Text] {
	type text = inbox.Text
	return []console.Column[text]{
		console.Time("Received", "", func(t text) time.Time { return t.ReceivedAt }).Laid(console.Under),
		console.Text("Account", "", func(t text) string {
			if t.Tenant == "" {
				return "none"
			}
			return names[t.Tenant]
		}).OnPage(names != nil).Laid(console.Minor),
		console.Text("From", "", func(t text) string { return Account(v, t.From) }),
		console.Text("To", "", func(t text) string { return strings.TrimSpace(t.To + " " + t.Keyword) }).Laid(console.Minor),
		console.Shown("Text", func(t text) templ.Component {
			if !v.Can(seeNumbers) {
				return page.Text("hidden")
			}
			return page.Text(page.Visible(t.Message))
		}).Laid(console.Wide),
		console.Shown("Opt-out", func(t text) templ.Component {
			switch t.Word {
			case inbox.Stop:
				return page.Mark(page.Badge{Tone: page.Bad, Word: "STOP"})
			case inbox.Start:
				return page.Mark(page.Badge{Tone: page.Good, Word: "START"})
			}
			return page.Text("")
		}),
		console.Text("Answer", "", func(t text) string { return answerWords[t.Answer] }).Laid(console.Minor),
	}
}

// OptOuts lists the numbers to which an account sends no campaign.
func (ps *Pages) OptOuts(v *console.Visit) (console.Answer, error) {
	number, err := v.PageNumber(0)
	if err != nil {
		return console.Answer{}, err
	}
	list, more, err := ps.Contacts.OptOutsPage(v.Ctx, v.Tenant.ID, int64(number), console.PageRows)
	if err != nil {
		return console.Answer{}, err
	}
	l := page.List{Title: "Opt-outs", Lead: "Numbers that get no campaign of this account. One-time passwords still reach them.",
		Empty: page.Empty{Title: "No opt-outs", Text: "Numbers whose owners sent STOP, or that an operator added, appear here."}}
	if number > 1 {
		l.Prev = v.Query("page", strconv.Itoa(number-1))
	}
	if more {
		l.Next = v.Query("page", strconv.Itoa(number+1))
	}
	l.Grid = console.Grid([]console.Column[contacts.OptOut]{
		console.Text("Number", "", func(o contacts.OptOut) string { return Account(v, o.MSISDN.International()) }),
		console.Text("Added by", "", func(o contacts.OptOut) string {
			if o.ByText {
				return "the person, by a text"
			}
			return "an operator"
		}),
		console.Text("Reason", "", func(o contacts.OptOut) string { return o.Reason }).Laid(console.Wide),
		console.Time("Since", "", func(o contacts.OptOut) time.Time { return o.CreatedAt }).Laid(console.Under),
	}, list, nil)
	return console.Answer{Title: l.Title, Body: page.Listing(l)}, nil
}
