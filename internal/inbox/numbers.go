package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
)

// Limits of numbers and keywords.
const (
	MaxAddress    = 21  // maximum characters of a number, as in SMPP
	MaxKeyword    = 20  // characters
	maxKeywords   = 200 // of one number
	maxNumbers    = 100 // numbers of one account; each keyword counts
	leastNumber   = 3   // minimum number of digits of a short code
	numbersAtOnce = 1_000
)

// Number is a number or short code of an account, whole or by a keyword.
type Number struct {
	Mode      tenant.Mode
	Number    string
	Keyword   string // first word of the text, folded; empty: the whole number
	Tenant    string
	Answers   bool // STOP and START are answered, at the price of a text
	CreatedAt time.Time
}

// Text is the number with its keyword, for people.
func (n Number) Text() string {
	if n.Keyword == "" {
		return n.Number
	}
	return n.Number + " " + n.Keyword
}

// Address returns the standard form of an address. A mobile number is in international form, other digits have no
// plus sign, and other texts have no capitals.
func Address(text string) string {
	if m, err := msisdn.Parse(text); err == nil {
		return m.International()
	}
	text = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(text), "+"))
	if utf8.RuneCountInString(text) > MaxAddress {
		return string([]rune(text)[:MaxAddress])
	}
	return text
}

// Check refuses a number that cannot be assigned.
func (s *Store) Check(n Number) error {
	var bad problem.Fields
	if len(n.Number) < leastNumber || len(n.Number) > MaxAddress || strings.Trim(n.Number, "0123456789") != "" {
		bad.Add("number", "must be a mobile number or a short code of 3 to 21 digits")
	}
	if n.Keyword != "" {
		switch {
		case n.Keyword != fold(n.Keyword) || utf8.RuneCountInString(n.Keyword) > MaxKeyword:
			bad.Add("keyword", fmt.Sprintf("must be one word of at most %d letters and digits", MaxKeyword))
		case s.words[n.Keyword] != "" || n.Keyword == "all":
			bad.Add("keyword", "must not be a word of opt-out, such as STOP")
		}
	}
	return bad.Err()
}

// Keyword is a keyword as it is stored.
func Keyword(text string) string { return strings.ToLower(strings.TrimSpace(text)) }

const (
	numberFields = `mode, number, keyword, tenant, answers, created_at`
	insertNumber = `INSERT INTO inbox_numbers (` + numberFields + `) VALUES ($1, $2, $3, $4, $5, $6)`
	deleteNumber = `DELETE FROM inbox_numbers WHERE mode = $1 AND number = $2 AND keyword = $3`
	keywordsOf   = `SELECT ` + numberFields + ` FROM inbox_numbers WHERE mode = $1 AND number = $2 ORDER BY keyword`
	numbersOf    = `SELECT ` + numberFields + ` FROM inbox_numbers WHERE $1 = '' OR tenant = $1 ORDER BY mode, number, keyword LIMIT $2`
)

func (n *Number) scan(r *db.Row) error {
	return r.Scan(&n.Mode, &n.Number, &n.Keyword, &n.Tenant, &n.Answers, &n.CreatedAt)
}

func readNumbers(tx *db.Tx, sql string, args ...any) ([]Number, error) {
	return db.All(tx, sql, args, (*Number).scan)
}

// Numbers returns the numbers of an account, or of all accounts.
func (s *Store) Numbers(ctx context.Context, tenantID string) ([]Number, error) {
	return db.Get(ctx, s.DB, func(tx *db.Tx) ([]Number, error) { return readNumbers(tx, numbersOf, tenantID, numbersAtOnce) })
}

// Assign gives a number to an account in tx, where the caller also writes the audit entry. A number and keyword that
// an account has is a Duplicate.
func (s *Store) Assign(tx *db.Tx, n Number) (Number, error) {
	if err := s.Check(n); err != nil {
		return Number{}, err
	}
	t, err := s.Tenants.Locked(tx, n.Tenant)
	if err != nil {
		return Number{}, err
	}
	n.Mode, n.CreatedAt = t.Mode, s.Clock.Now()
	own, err := readNumbers(tx, numbersOf, n.Tenant, maxNumbers)
	if err != nil {
		return Number{}, err
	}
	beside, err := readNumbers(tx, keywordsOf+tx.ForUpdate(), n.Mode, n.Number)
	switch {
	case err != nil:
		return Number{}, err
	case len(own) >= maxNumbers:
		return Number{}, problem.Field("number", fmt.Sprintf("cannot be assigned: an account may have at most %d numbers and keywords", maxNumbers))
	case len(beside) >= maxKeywords:
		return Number{}, problem.Field("keyword", fmt.Sprintf("cannot be added: a number may have at most %d keywords", maxKeywords))
	}
	_, err = tx.Exec(insertNumber, n.Mode, n.Number, n.Keyword, n.Tenant, n.Answers, n.CreatedAt)
	if errors.Is(err, db.ErrUnique) {
		err = problem.New(problem.Duplicate, "number_assigned", "This number with this keyword belongs to an account already")
	}
	return n, err
}

// Release takes a number from its account in tx.
func (s *Store) Release(tx *db.Tx, mode tenant.Mode, number, keyword string) (Number, error) {
	list, err := readNumbers(tx, keywordsOf+tx.ForUpdate(), mode, number)
	if err != nil {
		return Number{}, err
	}
	i := slices.IndexFunc(list, func(n Number) bool { return n.Keyword == keyword })
	if i < 0 {
		return Number{}, problem.New(problem.NotFound, "number_not_assigned", "No account has this number with this keyword")
	}
	_, err = tx.Exec(deleteNumber, mode, number, keyword)
	return list[i], err
}
