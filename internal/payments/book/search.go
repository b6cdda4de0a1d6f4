package book

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// Search is an operator's search among the payments of all tenants.
type Search struct {
	// Text is our id, a reference (the customer's, ours or the provider's), a number or account in any spelling, an
	// amount in GHS, or part of the payee's name.
	Text   string
	Tenant string    // id; empty: all
	Status string    // a public status (Payment.PublicStatus); empty: all
	From   time.Time // earliest time of acceptance, inclusive; zero: no limit
	To     time.Time // latest time of acceptance, exclusive; zero: no limit
	Before string    // id; only older payments are searched; empty: all
	Limit  int       // maximum number of results
	// Windows limits a scan without an index, in units of 5,000 payments. 0 means 1. The scan begins no further unit after
	// 50 ms.
	Windows int
	// Anonymous leaves out data that identifies a person: numbers, accounts, names, and references with a number in
	// them.
	Anonymous bool
}

// leastStart is the minimum length of a search text to match the beginnings of references.
const leastStart = 6

// leastAccount is the minimum number of digits of an account.
const leastAccount = 6

// Person reports whether the text may be a number, an account or a part of a name.
func (s Search) Person() bool {
	terms := s.normalized().terms()
	plain, _ := terms[0].(string)
	return terms[1] != never || terms[4] != never || plain != never && len(plain) >= leastAccount
}

// Number reports whether the text holds a whole mobile number.
func (s Search) Number() bool {
	terms := s.normalized().terms()
	return terms[1] != never || holdsMobile(s.Text)
}

func (s Search) normalized() Search {
	s.Text = strings.Join(strings.Fields(s.Text), " ")
	return s
}

// mobileRun matches a mobile number among other digits or characters.
var mobileRun = regexp.MustCompile(`(?:^|[^0-9])((?:00)?233[25][0-9]{8}|0[25][0-9]{8})(?:[^0-9]|$)`)

func holdsMobile(text string) bool { return mobileRun.MatchString(text) }

// unseparated removes the separators that people write between digits.
var unseparated = strings.NewReplacer(" ", "", "-", "", ".", "", "(", "", ")", "", "/", "")

// ReferenceHoldsNumber reports whether the customer's reference contains the payment's account or any mobile number,
// with or without separators.
func (p Payment) ReferenceHoldsNumber() bool {
	own := p.Account
	if m, err := msisdn.Parse(p.Account); err == nil {
		own = strings.TrimPrefix(m.Local(), "0")
	}
	for _, text := range []string{p.Reference, unseparated.Replace(p.Reference)} {
		if holdsMobile(text) || len(own) >= leastAccount && strings.Contains(text, own) {
			return true
		}
	}
	return false
}

// Found is the result of a search, newest first.
type Found struct {
	Payments []Payment
	// More is the id from which to continue the search, or empty if all payments were searched.
	More string
	// Scanned is the number of payments read by a scan without an index.
	Scanned int
}

// Limits of a scan. Payments are found at any age by a value with an index. Other values are compared only with the
// newest payments of the range, so that the cost is constant.
const (
	latestWindow = 1_000 // payments in one statement of Latest
	latestMost   = 10 * latestWindow
	searchWindow = 5_000 // payments in one statement of Search, which compares texts

	// scanFor is the time after which a scan begins no further statement, because a person waits.
	scanFor = 50 * time.Millisecond
)

// never matches no row: no stored text contains a control character.
const never = "\x01"

const (
	// References are unique within a tenant and kind, so this statement looks up one row in each list. CROSS JOIN
	// keeps SQLite from scanning all payments first.
	paymentsOfReference = `SELECT ` + paymentColumns + ` FROM payment_ends CROSS JOIN payments
WHERE payments.tenant = payment_ends.tenant AND payments.kind = payment_ends.kind AND payments.reference = $1`

	// Without ORDER BY the statement stops at the limit, even if many references have this beginning.
	paymentsOfStart = `SELECT ` + paymentColumns + ` FROM payment_ends CROSS JOIN payments
WHERE payments.tenant = payment_ends.tenant AND payments.kind = payment_ends.kind AND payments.reference >= $1 AND payments.reference < $2
AND ($3 = '' OR payment_ends.tenant = $3) AND ($4 = '' OR payments.id < $4) LIMIT $5`

	windowEnd = `SELECT COALESCE(min(id), ''), count(*) FROM (SELECT id FROM payments WHERE id < $1 AND id >= $2 ORDER BY id DESC LIMIT $3) AS newest`

	searchInWindow = `SELECT ` + paymentColumns + ` FROM payments WHERE id < $1 AND id >= $2 AND ($3 = '' OR tenant || '' = $3)
AND (account IN ($4, $5) OR amount = $6 OR upstream_id = $7 OR lower(account_name) LIKE $8 ESCAPE '!')
ORDER BY id DESC LIMIT $9`
)

// Search searches payments. It looks for values with an index first, and scans only if there is no match.
func (rd *Reader) Search(ctx context.Context, s Search) (Found, error) {
	s = s.normalized()
	var bad problem.Fields
	if s.Text == "" {
		bad.Add("text", "is required")
	}
	if s.Status != "" && !slices.Contains(publicStatuses, s.Status) {
		bad.Add("status", "must be one of "+strings.Join(publicStatuses, ", "))
	}
	if err := bad.Err(); err != nil {
		return Found{}, err
	}
	s.Limit = max(s.Limit, 1)
	var found Found
	err := rd.db.Read(ctx, func(tx *db.Tx) (err error) {
		found = Found{}
		if found.Payments, err = s.exact(tx); err != nil || len(found.Payments) > 0 {
			return err
		}
		found, err = s.scan(tx, rd.clock)
		return err
	})
	return found, err
}

// exact returns the payments that the text identifies by a value with an index.
func (s Search) exact(tx *db.Tx) (rows []Payment, err error) {
	var all []Payment
	if err := tx.Query(paymentsOfReference, []any{s.Text}, appendPayment(&all)); err != nil {
		return nil, err
	}
	if len(all) == 0 && len(s.Text) >= leastStart {
		if err := tx.Query(paymentsOfStart, []any{s.Text, s.Text + "\U0010ffff", s.Tenant, s.Before, s.Limit}, appendPayment(&all)); err != nil {
			return nil, err
		}
	}
	if id, err := uuid.Parse(s.Text); err == nil {
		if err := tx.Query(findAny, []any{id.String()}, appendPayment(&all)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Payment) int { return cmp.Compare(b.ID, a.ID) })
	for _, pay := range all {
		known := slices.ContainsFunc(rows, func(row Payment) bool { return row.ID == pay.ID })
		if !known && s.matches(pay) && (!s.Anonymous || !pay.ReferenceHoldsNumber()) && len(rows) < s.Limit {
			rows = append(rows, pay)
		}
	}
	return rows, nil
}

// matches reports whether a payment passes all filters except the text.
func (s Search) matches(pay Payment) bool {
	return (s.Tenant == "" || pay.Tenant == s.Tenant) && (s.Status == "" || pay.PublicStatus() == s.Status) &&
		!pay.CreatedAt.Before(s.From) && (s.To.IsZero() || pay.CreatedAt.Before(s.To)) && (s.Before == "" || pay.ID < s.Before)
}

// scan reads backwards from the newest payment of the range. Each statement reads one window.
func (s Search) scan(tx *db.Tx, c *clock.Clock) (found Found, err error) {
	begun := c.Elapsed()
	top, bottom := "g", "" // ids are hexadecimal
	if !s.To.IsZero() {
		top = bound(s.To)
	}
	if s.Before != "" {
		top = min(top, s.Before)
	}
	if !s.From.IsZero() {
		bottom = bound(s.From)
	}
	for window := range max(s.Windows, 1) {
		if window > 0 && c.Elapsed()-begun >= scanFor {
			break
		}
		var end string
		var n int
		if _, err := tx.One(windowEnd, []any{top, bottom, searchWindow}, &end, &n); err != nil || n == 0 {
			return found, err
		}
		found.Scanned += n
		var rows []Payment
		terms := s.terms()
		if s.Anonymous {
			terms[0], terms[1], terms[4] = never, never, never
		}
		if err := tx.Query(searchInWindow, append([]any{top, end, s.Tenant}, terms...), appendPayment(&rows)); err != nil {
			return found, err
		}
		for _, pay := range rows {
			if !s.matches(pay) {
				continue
			}
			if found.Payments = append(found.Payments, pay); len(found.Payments) == s.Limit {
				found.More = pay.ID
				return found, nil
			}
		}
		if n < searchWindow {
			return found, nil
		}
		top = end
	}
	found.More = top
	return found, nil
}

// bound returns the smallest id of a payment accepted at or after this time.
func bound(at time.Time) string { return NewID(at)[:len("00000000-0000-7000")] }

var digitsOnly = regexp.MustCompile(`^[0-9]+$`)

// terms returns the fourth and later arguments of searchInWindow. Each is the text in one of its possible meanings.
func (s Search) terms() []any {
	account, number, amount, name := never, never, int64(-1), never
	if m, err := msisdn.Parse(s.Text); err == nil {
		number = string(m)
	}
	if plain := strings.NewReplacer(" ", "", "-", "").Replace(s.Text); digitsOnly.MatchString(plain) {
		account = plain
	}
	text := strings.ToUpper(s.Text)
	text = strings.TrimSpace(strings.TrimPrefix(text, "GHS"))
	if sum, err := money.Parse(strings.ReplaceAll(text, ",", "")); err == nil {
		amount = int64(sum)
	}
	if len(s.Text) >= 3 && strings.ContainsFunc(s.Text, func(r rune) bool { return r > '9' }) {
		name = "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(strings.ToLower(s.Text)) + "%"
	}
	return []any{account, number, amount, s.Text, name, searchWindow}
}
