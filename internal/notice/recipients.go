package notice

import (
	"context"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
)

// recipient is the channel and the address of a reader's messages about a topic.
type recipient struct {
	channel Channel
	address string
	sees    func(f stored, s standing) bool
}

// recipient returns the recipient of a reader's messages about a topic. It returns false if there is none
// now.
func (n *Notices) recipient(ctx context.Context, person string, t Topic) (to recipient, reached bool, err error) {
	if person == hookReader {
		return recipient{Hook, hookName, func(_ stored, s standing) bool { return s.place == roles.Installation }}, n.has(Hook), nil
	}
	people, err := n.People.Members(ctx, "", person, 1)
	if err != nil || len(people) != 1 || !people[0].DisabledAt.IsZero() {
		return to, false, err
	}
	p := people[0]
	to = recipient{Email, p.Email, func(f stored, s standing) bool { return mayRead(p, f, s) }}
	if n.has(Email) {
		return to, true, nil
	}
	number, err := n.Phone(ctx, person)
	to.channel, to.address = SMS, ending(number)
	return to, err == nil && number != "" && t.Kept() && n.has(SMS), err
}

// mayRead reports whether a person may still see a fact.
func mayRead(p identity.Listed, f stored, s standing) bool {
	return eventRules[f.event].own || p.Email == s.about || roles.Can(roles.SiteOf(s.place), roleAt(p, s.place), s.needs)
}

// roleAt returns the role of a person at a place. It is empty if the person has none.
func roleAt(p identity.Listed, place string) roles.Role {
	for _, m := range p.Memberships {
		if m.Tenant == place {
			return m.Role
		}
	}
	return ""
}
