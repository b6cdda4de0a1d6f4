package messaging

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/label"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/smstext"
	"github.com/makola/makola/internal/tenant"
)

const (
	// MaxRecipients is the most recipients of one request, groups included.
	MaxRecipients = 100_000
	// MaxGroups is the most contact groups of one request.
	MaxGroups = 100
	// MaxRead is the most contacts that one request reads; a contact in several groups counts for each.
	MaxRead = 200_000
	// maxInvalid is how many invalid recipients of a campaign are kept for its report.
	maxInvalid = 1_000
)

// Send is a message to numbers, to contact groups, or to both.
type Send struct {
	SenderID   string
	Message    string
	Recipients []string
	Groups     []string
}

// Send accepts a campaign: it is charged and stored when Send returns, and delivered afterwards. replayed means that
// the caller's idempotency key had accepted it before. Errors: Invalid (sender_id, message, recipients,
// group_id_list, an idempotency key with another body), Forbidden (a group of another tenant), InsufficientCredits
// with Shortage as Data, Unavailable (no SMS rail).
func (m *Messaging) Send(ctx context.Context, caller idempotency.Caller, s Send) (c Campaign, replayed bool, err error) {
	t, err := m.tenants.Get(ctx, caller.Tenant)
	if err != nil {
		return Campaign{}, false, err
	}
	if c, replayed, err = m.admissions.earlier(ctx, caller); replayed || err != nil {
		return c, replayed, err
	}
	if held, err := heldInRecovery(ctx, m.recovery, caller.Tenant); err != nil || held {
		return Campaign{}, false, cmp.Or[error](err, errRecovering())
	}
	var bad problem.Fields
	switch {
	case len(s.Recipients) == 0 && len(s.Groups) == 0:
		bad.Add("recipients", noRecipients)
	case len(s.Recipients) > MaxRecipients:
		bad.Merge(tooManyRecipients())
	case len(s.Groups) > MaxGroups:
		bad.Add("group_id_list", fmt.Sprintf("must have at most %d groups", MaxGroups))
	}
	if c, err = m.newCampaign(ctx, t, caller, "sender_id", s.SenderID, s.Message, bad); err != nil {
		return Campaign{}, false, err
	}
	list, err := m.recipients(ctx, t, s, c.Credits)
	if err != nil {
		return Campaign{}, false, err
	}
	c.Recipients, c.Invalid, c.Excluded = int64(len(list.numbers)), int64(list.invalidCount), int64(list.excluded)
	if len(list.numbers) > smallChunk {
		if err := m.roomForCampaign(ctx, t); err != nil {
			return Campaign{}, false, err
		}
	}
	a := admission{tenant: t, campaign: c, invalid: list.invalid}
	for no, rest := int64(0), list.numbers; len(rest) > 0; no++ {
		n := min(len(rest), chunkSize)
		a.chunks = append(a.chunks, chunk{Tenant: c.Tenant, Campaign: c.ID, No: no, State: chunkReady, Recipients: rest[:n], CreatedAt: c.CreatedAt,
			Small: len(list.numbers) <= smallChunk})
		rest = rest[n:]
	}
	if a.campaign.Left = int64(len(a.chunks)); a.chunks[0].Small {
		a.campaign.Left, a.campaign.numbers = 0, list.numbers
	}
	if len(list.numbers) <= smallCampaign {
		return m.admissions.accept(ctx, &a)
	}
	return m.admissions.acceptStaged(ctx, &a)
}

// noRecipients is the contract's refusal of a request without recipients.
const noRecipients = "At least one of recipients or group must be present"

// newCampaign checks the text and the sender ID, which every message needs. It refuses all bad fields at once, with
// those in bad that the caller found before.
func (m *Messaging) newCampaign(ctx context.Context, t tenant.Tenant, caller idempotency.Caller, senderField, senderID, text string, bad problem.Fields) (Campaign, error) {
	encoding, segments := checkText(text, &bad)
	sender, err := m.senders.Usable(ctx, senderField, t.ID, senderID)
	if err != nil && !problem.Is(err, problem.Invalid) {
		return Campaign{}, err
	}
	if refused := bad.Err(); refused != nil {
		if bad.Merge(err) {
			refused = bad.Err()
		}
		return Campaign{}, oneSentence(refused)
	}
	if err != nil {
		return Campaign{}, err
	}
	if m.sms[t.Mode] == nil {
		return Campaign{}, problem.New(problem.Unavailable, "sms_unavailable", "SMS cannot be sent at the moment: no operator is connected")
	}
	return Campaign{
		Tenant: t.ID, ID: uuid.Must(uuid.NewV7()).String(), Mode: t.Mode, Kind: KindCampaign, SenderID: sender.ID, Sender: sender.Name,
		Message: text, Encoding: encoding, Segments: segments, Credits: smstext.Credits(text), Status: CampaignActive,
		Key: caller.Key, IdempotencyKey: caller.IdempotencyKey, IdempotencyHash: caller.BodyHash, CreatedAt: m.clock.Now(),
	}, nil
}

// checkText adds to bad why a text cannot be sent.
func checkText(text string, bad *problem.Fields) (smstext.Encoding, int64) {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' }
	switch {
	case strings.TrimSpace(text) == "":
		bad.Add("message", "is required")
	case !utf8.ValidString(text):
		bad.Add("message", "must be valid UTF-8 text")
	case strings.ContainsFunc(text, control):
		bad.Add("message", "must not contain control characters")
	default:
		encoding, segments := smstext.Count(text)
		if segments > smstext.MaxSegments {
			bad.Add("message", fmt.Sprintf("needs %d segments, the most is %d", segments, smstext.MaxSegments))
		}
		return encoding, int64(segments)
	}
	return "", 0
}

// oneSentence makes noRecipients the whole message of a refusal without other bad fields, because clients show the
// message.
func oneSentence(err error) error {
	p := problem.From(err)
	if texts := p.Fields["recipients"]; len(p.Fields) == 1 && len(texts) == 1 && texts[0] == noRecipients {
		p.Message = noRecipients
	}
	return p
}

// recipientList is who is sent to, and who is not.
type recipientList struct {
	numbers      []msisdn.MSISDN
	invalid      []string // at most maxInvalid of them
	invalidCount int
	excluded     int
}

// recipients puts numbers and groups together, each number once, without those that opted out. credits is the price of one.
func (m *Messaging) recipients(ctx context.Context, t tenant.Tenant, s Send, credits int64) (recipientList, error) {
	list := parseRecipients(s.Recipients)
	given := list.numbers
	someOptedOut, err := m.optOuts.Get(ctx, t.ID)
	if err != nil {
		return recipientList{}, err
	}
	read := m.db.Read
	if len(s.Groups) > 0 {
		read = m.db.ReadSnapshot // a group is there whole or, when it is deleted meanwhile, not at all
		ctx = db.Bulk(ctx, t.ID)
	}
	if someOptedOut || len(s.Groups) > 0 {
		err = read(ctx, func(tx *db.Tx) error {
			groups, err := ownGroups(tx, t.ID, s.Groups)
			if err != nil {
				return err
			}
			if len(groups) > 0 {
				if err := m.mayAfford(tx, t, credits, given, groups, someOptedOut); err != nil {
					return err
				}
			}
			numbers, err := withGroups(tx, groups, given)
			if err != nil {
				return err
			}
			out, err := optedOut(tx, t.ID, numbers)
			list.numbers, list.excluded = without(numbers, out), len(out)
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
				list.invalid = append(list.invalid, label.Cut(strings.ToValidUTF8(text, "?"), 32))
			}
		case !seen[n]:
			seen[n] = true
			list.numbers = append(list.numbers, n)
		}
	}
	return list
}

// mayAfford refuses a send to groups that the tenant's credits cannot pay for, before the contacts are read: every named
// recipient is charged unless it opted out, and so is every contact of the largest group where nobody did. The refusal
// says the cost without numbers that are named twice, which only reading would tell.
func (m *Messaging) mayAfford(tx *db.Tx, t tenant.Tenant, credits int64, named []msisdn.MSISDN, groups []Group, someOptedOut bool) error {
	var all, largest int64
	for _, g := range groups {
		all, largest = all+g.Contacts, max(largest, g.Contacts)
	}
	least := int64(len(named))
	if someOptedOut {
		out, err := optedOut(tx, t.ID, named)
		if err != nil {
			return err
		}
		least -= int64(len(out))
	} else {
		least = max(least, largest)
	}
	if least == 0 && all == 0 {
		return nil // there is nobody to send to, which is another refusal
	}
	balance, err := m.ledger.BalanceIn(tx, t.SMSCredits())
	if err == nil && balance < max(least, 1)*credits {
		err = insufficient(balance, (int64(len(named))+all)*credits)
	}
	return err
}

// ownGroups reads groups of the tenant, each once. One that is not the tenant's is Forbidden, an unknown one
// too: the request may not be used to find out which exist.
func ownGroups(tx *db.Tx, tenantID string, ids []string) ([]Group, error) {
	var groups []Group
	contacts, read := int64(0), map[string]bool{}
	for _, id := range ids {
		if read[id] {
			continue
		}
		read[id] = true
		g, err := ownGroup(tx, selectGroup, tenantID, id)
		if problem.Is(err, problem.NotFound) || problem.Is(err, problem.Forbidden) {
			err = problem.New(problem.Forbidden, "group_not_owned", "You do not own one or more of the contact groups")
		}
		if err != nil {
			return nil, err
		}
		if contacts += g.Contacts; contacts > MaxRead {
			return nil, problem.Field("group_id_list", fmt.Sprintf("must name groups of at most %d contacts together", MaxRead))
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// withGroups adds the numbers of groups to those that were given.
func withGroups(tx *db.Tx, groups []Group, given []msisdn.MSISDN) ([]msisdn.MSISDN, error) {
	if len(groups) == 0 {
		return given, nil
	}
	numbers, seen := slices.Clone(given), make(map[msisdn.MSISDN]bool, len(given))
	for _, n := range given {
		seen[n] = true
	}
	for _, g := range groups {
		if err := groupNumbers(tx, g, func(n msisdn.MSISDN) {
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

const groupPage = `SELECT id, msisdn FROM contacts WHERE tenant = $1 AND group_id = $2 AND id > $3 ORDER BY id LIMIT 1000`

// groupNumbers reads a group's numbers.
func groupNumbers(tx *db.Tx, g Group, add func(msisdn.MSISDN)) error {
	for after, more := "", true; more; {
		more = false
		if err := tx.Query(groupPage, []any{g.Tenant, g.ID, after}, func(r *db.Row) error {
			var number string
			if err := r.Scan(&after, &number); err != nil {
				return err
			}
			more = true
			add(msisdn.MSISDN(number))
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
