package changes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// oneHand reports whether one person may control both accounts. This is possible if one of them invited or reset
// the other without an approval. It is also possible if a third person at this place invited or reset both
// without an approval.
func oneHand(holders []identity.Holder, a, b identity.Holder) bool {
	if a.Sponsor == b.ID || b.Sponsor == a.ID {
		return true
	}
	return a.Sponsor != "" && a.Sponsor == b.Sponsor && slices.ContainsFunc(holders, func(h identity.Holder) bool { return h.ID == a.Sponsor })
}

// seconds lists the people who may approve a request as a second person. It leaves out people whom the requester, or a
// command without a person, invited or reset without an approval. An account that the requester may control counts only
// if nobody else may approve. So two people can work together. This exception ends with a third person.
func (s *Store) seconds(holders []identity.Holder, a Request, rule Rule) (list []identity.Holder) {
	var authors, apart []identity.Holder
	for _, h := range holders {
		dependent := h.Sponsor == identity.Machine || h.Sponsor != "" && (h.Sponsor == a.Requester || slices.Contains(a.Barred, h.Sponsor))
		switch {
		case a.own(h.Person):
			authors = append(authors, h)
		case s.production && (dependent || !h.HasFactor), !roles.Can(roles.SiteOf(a.Place), h.Role, rule.Check):
		default:
			list = append(list, h)
		}
	}
	for _, h := range list {
		if !slices.ContainsFunc(authors, func(author identity.Holder) bool { return oneHand(holders, h, author) }) {
			apart = append(apart, h)
		}
	}
	if s.production && len(apart) > 0 {
		return apart
	}
	return list
}

// others counts the possible approvers. Accounts that one person may control count as one. In production people without
// a second factor do not count, so an unused invitation locks nobody out.
func (s *Store) others(holders []identity.Holder, a Request, rule Rule) int {
	var counted []identity.Holder
	for _, h := range s.seconds(holders, a, rule) {
		if !s.production || !slices.ContainsFunc(counted, func(c identity.Holder) bool { return oneHand(holders, h, c) }) {
			counted = append(counted, h)
		}
	}
	return len(counted)
}

// independent refuses an approver whose account may belong to the requester, or to a person who has approved
// already.
func (s *Store) independent(tx *db.Tx, by By, rule Rule, a Request) error {
	if !s.production {
		return nil
	}
	holders, err := s.people.Holders(tx, a.Place)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(holders, func(h identity.Holder) bool { return h.ID == by.Visitor.Person.ID })
	second := func(h identity.Holder) bool { return h.ID == by.Visitor.Person.ID }
	if at < 0 || !slices.ContainsFunc(s.seconds(holders, a, rule), second) {
		return problem.New(problem.Forbidden, "not_independent",
			"Another person must approve this: the requester may have received your link and your code. You may approve after a reset that another person approves")
	}
	for _, h := range holders {
		before := func(c Check) bool { return c.Person == h.ID && !c.Lapsed }
		if h.ID != holders[at].ID && slices.ContainsFunc(a.Checks, before) && oneHand(holders, h, holders[at]) {
			return problem.New(problem.Forbidden, "not_independent", "Another person must approve this: one person may control your account and the account of "+h.Email+", who approved before")
		}
	}
	return nil
}

// firstApprovals is the number of a person's first approvals that show who invited the person.
const firstApprovals = 3

const countChecks = `SELECT count(*) FROM act_checks WHERE checker = $1`

// remark returns the remark on an approval. It is empty if the approver has approved often enough before.
func (s *Store) remark(tx *db.Tx, by By, a Request) (string, error) {
	before := 0
	if _, err := tx.One(countChecks, []any{by.Visitor.Person.ID}, &before); err != nil || before >= firstApprovals {
		return "", err
	}
	with, err := s.people.Acquainted(tx, by.Visitor, a.Requester)
	if err != nil {
		return "", err
	}
	parts := []string{fmt.Sprintf("approval %d of this person", before+1)}
	if with.InvitedBy != "" {
		parts = append(parts, "invited or reset by "+with.InvitedBy)
	}
	if with.Network {
		parts = append(parts, "from a network of the requester")
	}
	if with.Browser {
		parts = append(parts, "in the same kind of browser as the requester")
	}
	return strings.Join(parts, ", "), nil
}
