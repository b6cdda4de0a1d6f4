package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

// Source is one account at a provider or bank, whose statements are given as files.
type Source struct {
	ID       string // mode/profile/account
	Profile  string
	Provider string // empty: a bank
	Account  string
	Mode     tenant.Mode
	Layout   *Layout // nil: no person has confirmed one yet
}

// Title names the source for a person.
func (s Source) Title() string {
	p, _ := ProfileOf(s.Profile)
	title := p.Title + ", " + s.Account
	if s.Mode == tenant.Test {
		title += " (test)"
	}
	return title
}

// Lag returns how late a statement may show a movement.
func (s Source) Lag() time.Duration {
	p, _ := ProfileOf(s.Profile)
	return p.Lag
}

// withinFees reports whether the amounts of the statements include the fees.
func (s Source) withinFees() bool { return s.Layout != nil && s.Layout.Fees == FeesWithin }

// net reports whether the amounts of the statements are less fees that the statements do not have.
func (s Source) net() bool {
	p, _ := ProfileOf(s.Profile)
	return p.Net
}

// Charges returns the ledger account of the source's own charges.
func (s Source) Charges() ledger.AccountID {
	if s.Bank() {
		return ledger.BankFees(s.Account)
	}
	return ledger.ProviderFees(s.Provider)
}

// Bank reports whether the source is an account at a bank.
func (s Source) Bank() bool { return s.Provider == "" }

// Ledger returns the account of the ledger that the source is about.
func (s Source) Ledger() ledger.Key {
	key := ledger.Key{Asset: tenant.Tenant{Mode: s.Mode}.Money(), ID: ledger.FloatAt(s.Provider, s.Account)}
	if s.Bank() {
		key.ID = ledger.Bank(s.Account)
	}
	return key
}

var accountName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,30}$`)

// BankSource returns the name of the source of a bank account.
func BankSource(mode, account string) string { return mode + "/bank/" + account }

// ParseSource reads the name of a source: mode/profile/account, such as live/mtn/collection or live/bank/gcb. Without a mode it is live.
func ParseSource(name string) (Source, error) {
	if strings.Count(name, "/") == 1 {
		name = string(tenant.Live) + "/" + name
	}
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return Source{}, problem.Field("source", "must have the form of live/mtn/collection or live/bank/gcb")
	}
	s := Source{ID: name, Mode: tenant.Mode(parts[0]), Profile: parts[1], Account: parts[2]}
	p, known := ProfileOf(s.Profile)
	s.Provider = p.Provider
	switch {
	case s.Mode != tenant.Live && s.Mode != tenant.Test:
		return s, problem.Field("source", "must begin with live or test")
	case !known:
		return s, problem.Field("source", fmt.Sprintf("has no profile %q: they are mtn, hubtel and bank", s.Profile))
	case s.Bank() && !accountName.MatchString(s.Account):
		return s, problem.Field("source", "must name the bank account in lower-case letters, digits and dashes")
	case !s.Bank() && !slices.Contains(provider.AccountNames(), s.Account):
		return s, problem.Field("source", "must name an account of the provider: "+strings.Join(provider.AccountNames(), ", "))
	}
	return s, nil
}

const (
	sourceColumns = `id, profile, provider, account, mode, layout`

	selectSource = `SELECT ` + sourceColumns + ` FROM statement_sources WHERE id = $1`

	listSources = `SELECT ` + sourceColumns + ` FROM statement_sources WHERE layout <> '' ORDER BY id LIMIT 200`

	insertSource = `INSERT INTO statement_sources (id, profile, provider, account, mode, created_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING`

	claimSource = `UPDATE statement_sources SET reading = $2, reading_until = $3 WHERE id = $1 AND (reading = '' OR reading_until < $4)`

	releaseSource = `UPDATE statement_sources SET reading = '', reading_until = 0 WHERE id = $1 AND reading = $2`

	// A source whose first file was refused leaves nothing behind.
	dropSource = `DELETE FROM statement_sources WHERE id = $1 AND layout = '' AND reading = ''`

	confirmSource = `UPDATE statement_sources SET layout = $2 WHERE id = $1`
)

func (s *Source) scan(r *db.Row) error {
	var layout string
	if err := r.Scan(&s.ID, &s.Profile, &s.Provider, &s.Account, &s.Mode, &layout); err != nil || layout == "" {
		return err
	}
	s.Layout = &Layout{}
	if err := json.Unmarshal([]byte(layout), s.Layout); err != nil {
		return fmt.Errorf("reconcile: parse the layout of %s: %w", s.ID, err)
	}
	return nil
}

// Sources returns the sources that have statements.
func (s *store) Sources(ctx context.Context) ([]Source, error) {
	return db.ReadAll(ctx, s.db, listSources, nil, (*Source).scan)
}

// Source returns a source by its name. For a source without statements it returns the parts of the name.
func (s *store) Source(ctx context.Context, name string) (Source, error) {
	source, err := ParseSource(name)
	if err != nil {
		return source, err
	}
	err = s.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Query(selectSource, []any{source.ID}, source.scan)
	})
	return source, err
}

// readingTime is the maximum time for reading a file before another file of the source may start.
const readingTime = 15 * time.Minute

// claim ensures that only one file of a source is read at a time.
func (s *store) claim(ctx context.Context, source Source, id string) error {
	now := s.clock.Now()
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := tx.Exec(insertSource, source.ID, source.Profile, source.Provider, source.Account, string(source.Mode), now); err != nil {
			return err
		}
		n, err := tx.Exec(claimSource, source.ID, id, now.Add(readingTime), now)
		if err == nil && n == 0 {
			e := problem.New(problem.InProgress, "statement_in_progress", "Another statement of this source is being read: try again in a moment")
			e.RetryAfter = 5 * time.Second
			err = e
		}
		return err
	})
}

// release ends a claim.
func (s *store) release(ctx context.Context, source Source, id string) error {
	return s.db.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		if _, err := tx.Exec(releaseSource, source.ID, id); err != nil {
			return err
		}
		_, err := tx.Exec(dropSource, source.ID)
		return err
	})
}
