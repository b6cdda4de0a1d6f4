package notice

import (
	"cmp"
	"context"
	"slices"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Chosen is when a person is notified of a topic: by their choice, or by the default of their roles.
type Chosen struct {
	Topic        Topic
	Title, Means string
	Choice       Choice
	Kept         bool // the person cannot choose never
}

// Choices returns the choices of a person for the topics that the person's roles may see.
func (n *Notices) Choices(ctx context.Context, v identity.Visitor) (list []Chosen, err error) {
	var made map[Topic]Choice
	err = n.DB.Read(ctx, func(tx *db.Tx) (err error) {
		made, err = chosen(tx, v.Person.ID)
		return err
	})
	for _, t := range Topics() {
		if !learns(v, t) {
			continue
		}
		c := Chosen{Topic: t, Choice: Daily, Kept: keeps(v, t)}
		c.Title, c.Means = t.Title()
		for _, m := range v.Memberships {
			if inForce(t, m.Role, nil) == AtOnce {
				c.Choice = AtOnce
			}
		}
		if choice, there := made[t]; there && (choice != Never || !c.Kept) {
			c.Choice = choice
		}
		list = append(list, c)
	}
	return list, err
}

// learns reports whether one of a person's roles may see an event of a topic.
func learns(v identity.Visitor, t Topic) bool {
	for _, rule := range eventRules {
		if rule.topic == t && slices.ContainsFunc(v.Memberships, func(m identity.Membership) bool { return v.Can(m.Tenant, rule.needs) }) {
			return true
		}
	}
	return t == Security
}

// keeps reports whether a person must not turn off a topic.
func keeps(v identity.Visitor, t Topic) bool {
	return t.Kept() && slices.ContainsFunc(v.Memberships, func(m identity.Membership) bool { return m.Role == roles.Owner })
}

const (
	storeChoice = `INSERT INTO notice_choices (person, topic, choice, changed_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (person, topic) DO UPDATE SET choice = excluded.choice, changed_at = excluded.changed_at`

	dropDue = `UPDATE notice_readers SET message = 'none' WHERE person = $1 AND topic = $2 AND message = ''`
)

// Choose stores the choices of a person. Pending facts of topics that the person turned off are dropped.
func (n *Notices) Choose(ctx context.Context, v identity.Visitor, choices map[Topic]Choice) error {
	var bad problem.Fields
	for _, t := range Topics() {
		switch c, given := choices[t]; {
		case !given:
		case c != AtOnce && c != Daily && c != Never:
			bad.Add(string(t), "must be at_once, daily or never")
		case c == Never && keeps(v, t):
			bad.Add(string(t), "cannot be never, because you are an owner: choose at once or daily")
		}
	}
	if err := bad.Err(); err != nil {
		return err
	}
	return n.DB.Write(ctx, func(tx *db.Tx) error {
		for _, t := range Topics() {
			c, given := choices[t]
			if !given {
				continue
			}
			tx.Defer(storeChoice, 1, v.Person.ID, string(t), string(c), n.Clock.Now())
			if c == Never {
				tx.Defer(dropDue, -1, v.Person.ID, string(t))
			}
		}
		return nil
	})
}

// tests is the limit of a person's test messages.
var tests = identity.Limit{What: "notice.test", Most: 10, Of: "test notices"}

// errNoChannel is returned if a channel is not configured.
func errNoChannel() error {
	return problem.New(problem.Refused, "no_channel", "This notification channel is not configured. Ask the operator of this server to set it up.")
}

// SendTest sends a message to a person's own address or number, or to the hook of the installation. It ignores the person's
// choices.
func (n *Notices) SendTest(ctx context.Context, p identity.Person, c Channel) error {
	if !n.has(c) {
		return errNoChannel()
	}
	text := compose([]part{{event: Test, things: 1, lines: []string{"Notices of Makola arrive here."}}}, nil, n.PublicURL)
	m := message{id: newID(), person: p.ID, channel: c, topic: System, address: p.Email, title: text.title, body: text.body, madeAt: n.Clock.Now()}
	switch c {
	case Hook:
		m.person, m.address = hookReader, hookName
	case SMS:
		number, err := n.Phone(ctx, p.ID)
		if err != nil {
			return err
		}
		if number == "" {
			return problem.Field("number", "is required: save a phone number first")
		}
		m.address = ending(number)
	}
	return n.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := n.People.Take(tx, tests, p.ID, m.id, audit.Entry{}); err != nil {
			return err
		}
		return n.add(tx, m)
	})
}

// SetPhone stores the number at which a person receives notices by SMS. An empty number removes it. The audit log records the change
// without the digits.
func (n *Notices) SetPhone(ctx context.Context, v identity.Visitor, text, from string) error {
	if !n.has(SMS) {
		return errNoChannel()
	}
	number := ""
	if text != "" {
		parsed, err := msisdn.Parse(text)
		if err != nil {
			return problem.Field("number", "must be a phone number of Ghana, such as 0241234567")
		}
		number = parsed.Local()
	}
	return n.DB.Write(ctx, func(tx *db.Tx) error {
		if err := n.People.InForce(tx, v); err != nil {
			return err
		}
		if number == "" {
			tx.Defer(dropPhone, -1, v.Person.ID)
		} else {
			tx.Defer(storePhone, 1, v.Person.ID, number, n.Clock.Now())
		}
		return n.Audit.Write(tx, audit.Entry{Action: "person.phone", Actor: v.Person.Email, Person: v.Person.ID, Subject: v.Person.ID, Origin: from,
			Details: map[string]any{"changes": []audit.Change{{What: "phone number", Before: "another", After: cmp.Or(ending(number), "none")}}}})
	})
}
