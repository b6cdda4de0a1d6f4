package identity

import (
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// Nobody is created with an address or name that looks like another person's. A person that an older release created
// stays, and can be disabled.
func TestPeople_lookAlikesAreRefused(t *testing.T) {
	each(t, operator, func(f *fixture) {
		role := Membership{"t1", roles.Finance}
		for field, who := range map[string][2]string{"email": {"\u0430ma@example.com", "Ama Owusu"}, "name": {"kofi@example.com", "\u0410ma Owusu"}} {
			f.refused(problem.Invalid, func(tx *db.Tx) error {
				_, _, err := f.Invite(tx, NewInvitation(), who[0], who[1], role)
				if problem.From(err).Fields[field] == nil {
					f.t.Errorf("%+q: %v", who, err)
				}
				return err
			})
			if _, err := f.Ensure(f.t.Context(), who[0], who[1], nil); problem.From(err).Fields[field] == nil {
				f.t.Errorf("%+q: %v", who, err)
			}
		}
		for _, name := range []string{"Am\u200ba", "Ama\u202e", "Ama\u0085"} {
			if _, err := f.Ensure(f.t.Context(), "esi@example.com", name, nil); !problem.Is(err, problem.Invalid) {
				f.t.Errorf("%+q: %v", name, err)
			}
		}
		f.exec(insertPerson, "older", "\u0430ma@example.com", "\u0410ma", start)
		f.tx(func(tx *db.Tx) error { _, err := f.Disable(tx, "\u0430ma@example.com"); return err })
		if _, err := f.Ensure(f.t.Context(), "\u0430ma@example.com", "\u0410ma", nil); err != nil {
			f.t.Error(err)
		}
	})
}
