package messaging

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
)

const (
	// MaxRecipients is the maximum number of recipients of one request, including members of groups.
	MaxRecipients = 100_000
	// MaxGroups is the maximum number of contact groups of one request.
	MaxGroups = 100
	// MaxRead is the maximum number of contacts that one request reads. A contact in several groups counts once for
	// each.
	MaxRead = 200_000
	// maxInvalid is the maximum number of invalid recipients that are stored for a campaign's report.
	maxInvalid = 1_000
)

// recipientList has the recipients of a campaign, and those that are left out.
type recipientList struct {
	numbers      []msisdn.MSISDN
	invalid      []string // at most maxInvalid
	invalidCount int
	excluded     int
}

// recipients returns the recipients among numbers and groups, each number once, without numbers that opted out.
// credits is the price of one recipient.
func (m *Messaging) recipients(ctx context.Context, t tenant.Tenant, named, groups []string, credits int64) (recipientList, error) {
	list := parseRecipients(named)
	given := list.numbers
	someOptedOut, err := m.contacts.HasOptOuts(ctx, t.ID)
	if err != nil {
		return recipientList{}, err
	}
	read := m.db.Read
	if len(groups) > 0 {
		read = m.db.ReadSnapshot // a group that is deleted meanwhile is read completely or not at all
		ctx = db.Bulk(ctx, t.ID)
	}
	if someOptedOut || len(groups) > 0 {
		err = read(ctx, func(tx *db.Tx) error {
			numbers, err := m.withGroups(tx, t, groups, given, credits, someOptedOut)
			if err != nil {
				return err
			}
			list.numbers, err = contacts.WithoutOptOuts(tx, t.ID, numbers)
			list.excluded = len(numbers) - len(list.numbers)
			return err
		})
	}
	if err != nil {
		return recipientList{}, err
	}
	if len(list.numbers) == 0 {
		return recipientList{}, problem.Field("recipients", "must have at least one valid number that did not opt out")
	}
	return list, nil
}

// parseRecipients reads the numbers that a request names, each once.
func parseRecipients(texts []string) recipientList {
	list := recipientList{numbers: make([]msisdn.MSISDN, 0, len(texts))}
	seen := make(map[msisdn.MSISDN]bool, len(texts))
	for _, text := range texts {
		n, err := msisdn.Parse(text)
		switch {
		case err != nil:
			list.invalidCount++
			if len(list.invalid) < maxInvalid {
				list.invalid = append(list.invalid, usertext.Cut(strings.ToValidUTF8(text, "?"), 32))
			}
		case !seen[n]:
			seen[n] = true
			list.numbers = append(list.numbers, n)
		}
	}
	return list
}

// mayRead returns an error if groups have more contacts than one request may read, or cost more than the tenant's
// credits. It needs only the sizes of the groups, so it runs before their contacts are read. If nobody opted out, at
// least the contacts of the largest group are charged. The cost in the error counts repeated numbers several times,
// because only reading the groups would find them.
func (m *Messaging) mayRead(tx *db.Tx, t tenant.Tenant, credits int64, named []msisdn.MSISDN, groups []contacts.Group, someOptedOut bool) error {
	var all, largest int64
	for _, g := range groups {
		all, largest = all+g.Contacts, max(largest, g.Contacts)
	}
	if all > MaxRead {
		return problem.Field("group_id_list", fmt.Sprintf("must name groups of at most %d contacts together", MaxRead))
	}
	least := max(int64(len(named)), largest)
	if someOptedOut {
		charged, err := contacts.WithoutOptOuts(tx, t.ID, named)
		if err != nil {
			return err
		}
		least = int64(len(charged))
	}
	if least == 0 && all == 0 {
		return nil // no recipient is left, which the caller reports
	}
	balance, err := m.ledger.BalanceIn(tx, t.SMSCredits())
	if err == nil && balance < max(least, 1)*credits {
		err = Shortage{Balance: balance, Cost: (int64(len(named)) + all) * credits}.Err()
	}
	return err
}

// withGroups adds the numbers of the contact groups with these ids to the given numbers.
func (m *Messaging) withGroups(tx *db.Tx, t tenant.Tenant, ids []string, given []msisdn.MSISDN, credits int64, someOptedOut bool) ([]msisdn.MSISDN, error) {
	if len(ids) == 0 {
		return given, nil
	}
	groups, err := contacts.OwnGroups(tx, t.ID, ids)
	if err != nil {
		return nil, err
	}
	if err := m.mayRead(tx, t, credits, given, groups, someOptedOut); err != nil {
		return nil, err
	}
	numbers, seen := slices.Clone(given), make(map[msisdn.MSISDN]bool, len(given))
	for _, n := range given {
		seen[n] = true
	}
	for _, g := range groups {
		if err := contacts.Numbers(tx, g, func(n msisdn.MSISDN) {
			if !seen[n] {
				seen[n] = true
				numbers = append(numbers, n)
			}
		}); err != nil {
			return nil, err
		}
		if len(numbers) > MaxRecipients {
			return nil, tooManyRecipients()
		}
	}
	return numbers, nil
}

func tooManyRecipients() error {
	return problem.Field("recipients", fmt.Sprintf("must have at most %d numbers in one request, groups included", MaxRecipients))
}
