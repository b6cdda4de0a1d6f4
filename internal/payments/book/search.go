package book

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// Search is what an operator looks for among the payments of all tenants.
type Search struct {
	// Text is our id, a reference (the customer's, ours or the provider's), a number
	// or account in any spelling, an amount in cedis, or a part of the payee's name.
	Text   string
	Tenant string    // id; empty: all
	Status string    // a word as customers read it (Payment.Word); empty: all
	From   time.Time // when it was accepted at the earliest; zero: no bound
	To     time.Time // before which it was accepted; zero: no bound
	Before string    // id of the payment before which to search further; empty: from the newest on
	Limit  int       // at most so many
	// Windows is how many times 5,000 payments are looked at, where no index finds the text; 0 is once.
	Windows int
}

// Found is what a search found, newest first.
type Found struct {
	Payments []Payment
	// More, if not empty, is the id before which to search further: older payments
	// were not looked at.
	More string
	// Looked is how many payments were looked at, where no index found them.
	Looked int
}

// The bounds of a search. A value with an index is found at once, however old it is. Anything else
// is looked for among the newest payments of the range, which costs the same however many there
// are.
const (
	filterWindow = 10_000 // payments that one statement of Latest looks at
	searchWindow = 5_000  // ... and one of Search, which compares texts
)

// never matches nothing: no stored text holds a control character.
const never = "\x01"

const (
	// A tenant's references are unique to each kind: one look-up for each list. CROSS JOIN keeps SQLite from reading all
	// payments and looking up their lists.
	paymentsOfReference = `SELECT ` + paymentColumns + ` FROM payment_ends CROSS JOIN payments
WHERE payments.tenant = payment_ends.tenant AND payments.kind = payment_ends.kind AND payments.reference = $1`

	windowEnd = `SELECT COALESCE(min(id), ''), count(*) FROM (SELECT id FROM payments WHERE id < $1 AND id >= $2 ORDER BY id DESC LIMIT $3) AS newest`

	searchInWindow = `SELECT ` + paymentColumns + ` FROM payments WHERE id < $1 AND id >= $2 AND ($3 = '' OR tenant || '' = $3)
AND (account IN ($4, $5) OR amount = $6 OR upstream_id = $7 OR lower(account_name) LIKE $8 ESCAPE '!')
ORDER BY id DESC LIMIT $9`
)

// Search looks for payments.
func (rd *Reader) Search(ctx context.Context, s Search) (Found, error) {
	s.Text = strings.Join(strings.Fields(s.Text), " ")
	var bad problem.Fields
	if s.Text == "" {
		bad.Add("text", "is required")
	}
	if s.Status != "" && !slices.Contains(statusWords, s.Status) {
		bad.Add("status", "must be one of "+strings.Join(statusWords, ", "))
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
		found, err = s.scan(tx)
		return err
	})
	return found, err
}

// exact finds what the text names.
func (s Search) exact(tx *db.Tx) (rows []Payment, err error) {
	var all []Payment
	if err := tx.Query(paymentsOfReference, []any{s.Text}, appendPayment(&all)); err != nil {
		return nil, err
	}
	if id, err := uuid.Parse(s.Text); err == nil {
		if err := tx.Query(findAny, []any{id.String()}, appendPayment(&all)); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Payment) int { return cmp.Compare(b.ID, a.ID) })
	for _, pay := range all {
		known := slices.ContainsFunc(rows, func(row Payment) bool { return row.ID == pay.ID })
		if !known && s.takes(pay) && len(rows) < s.Limit {
			rows = append(rows, pay)
		}
	}
	return rows, nil
}

// takes says whether a payment that the text finds is within the other bounds.
func (s Search) takes(pay Payment) bool {
	return (s.Tenant == "" || pay.Tenant == s.Tenant) && (s.Status == "" || pay.Word() == s.Status) &&
		!pay.CreatedAt.Before(s.From) && (s.To.IsZero() || pay.CreatedAt.Before(s.To)) && (s.Before == "" || pay.ID < s.Before)
}

// scan reads back through the newest payments of the range, window by window.
func (s Search) scan(tx *db.Tx) (found Found, err error) {
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
	for range max(s.Windows, 1) {
		var end string
		var n int
		if _, err := tx.One(windowEnd, []any{top, bottom, searchWindow}, &end, &n); err != nil || n == 0 {
			return found, err
		}
		found.Looked += n
		var rows []Payment
		if err := tx.Query(searchInWindow, append([]any{top, end, s.Tenant}, s.terms()...), appendPayment(&rows)); err != nil {
			return found, err
		}
		for _, pay := range rows {
			if !s.takes(pay) {
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

// bound is what the ids of payments that were accepted at a time or later are not below.
func bound(at time.Time) string { return NewID(at)[:len("00000000-0000-7000")] }

var digitsOnly = regexp.MustCompile(`^[0-9]+$`)

// terms are the arguments of searchInWindow from the fourth on: what the text may be.
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
