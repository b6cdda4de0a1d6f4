package identity

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/usertext"
)

const selectAnybody = `SELECT id FROM people LIMIT 1`

// SetUp reports whether this installation has any people.
func (i *Identity) SetUp(ctx context.Context) (bool, error) {
	found := false
	err := i.db.Read(ctx, func(tx *db.Tx) (err error) {
		var id string
		found, err = tx.One(selectAnybody, nil, &id)
		return err
	})
	return found, err
}

const insertPerson = `INSERT INTO people (id, email, name, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (email) DO NOTHING`

const selectPersonByEmail = `SELECT id, email, name, created_at, disabled_at FROM people WHERE email = $1`

const insertMembership = `INSERT INTO memberships (tenant, person, role, created_at, changed_at) VALUES ($1, $2, $3, $4, $4)
	ON CONFLICT (tenant, person) DO NOTHING`

// Ensure returns the person with an e-mail address. It creates a missing person and adds missing memberships. An
// existing membership keeps its role.
func (i *Identity) Ensure(ctx context.Context, email, name string, memberships []Membership) (Person, error) {
	email, err := checkPerson(email, name, memberships)
	if err != nil {
		return Person{}, err
	}
	var p Person
	id := uuid.Must(uuid.NewV7()).String()
	err = i.db.Write(ctx, func(tx *db.Tx) error {
		now := i.clock.Now()
		n, err := tx.Exec(insertPerson, id, email, name, now)
		if err == nil && n == 1 {
			err = checkNew(email, name)
		}
		if err != nil {
			return err
		}
		p = Person{}
		if _, err := tx.One(selectPersonByEmail, []any{email}, &p.ID, &p.Email, &p.Name, &p.CreatedAt, &p.DisabledAt); err != nil {
			return err
		}
		for _, m := range memberships {
			tx.Defer(insertMembership, -1, m.Tenant, p.ID, string(m.Role), now)
		}
		return nil
	})
	return p, err
}

// checkPerson returns an error for values that cannot be stored. Otherwise it returns the e-mail address in the form
// in which addresses are compared.
func checkPerson(email, name string, memberships []Membership) (string, error) {
	var bad problem.Fields
	email = strings.ToLower(strings.TrimSpace(email))
	if !usertext.IsEmail(email) {
		bad.Add("email", "must be an e-mail address")
	}
	if name == "" || utf8.RuneCountInString(name) > 120 || !plain(name) || strings.TrimSpace(name) != name {
		bad.Add("name", "must have 1 to 120 characters and no space at its beginning or end")
	}
	for _, m := range memberships {
		if !m.Role.ExistsAt(roles.SiteOf(m.Tenant)) {
			bad.Add("role", "has no role named "+string(m.Role))
		}
	}
	return email, bad.Err()
}

// checkNew returns an error for a new person who could be confused with another. The address may contain only ASCII
// letters, and the name no invisible or look-alike letters. Existing people keep their names.
func checkNew(email, name string) error {
	var bad problem.Fields
	if strings.ContainsFunc(email, func(r rune) bool { return r > unicode.MaxASCII }) {
		bad.Add("email", "must have only ASCII characters, because other letters look like them: write the domain in its xn-- form")
	}
	if !usertext.Honest(name) {
		bad.Add("name", "must have no invisible characters, and only letters of one alphabet in each word: type it instead of pasting it")
	}
	return bad.Err()
}

// plain reports whether a text is valid UTF-8 without control characters.
func plain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}
