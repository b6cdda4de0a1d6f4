package identity

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// wrong returns a code that differs from the given one, and another one for each n.
func wrong(code string, n int) string {
	value := 0
	_, _ = fmt.Sscan(code, &value)
	return fmt.Sprintf("%08d", (value+1+n)%100_000_000)
}

// The link of an invitation does not sign in without its code, because whoever requested the invitation has the link
// too.
func TestInvitation_needsTheCode(t *testing.T) {
	each(t, nil, func(f *fixture) {
		by := NewInvitation()
		f.tx(func(tx *db.Tx) error {
			_, _, err := f.Invite(tx, by, "kofi@example.com", "Kofi", Membership{roles.Installation, roles.Owner})
			return err
		})
		for _, code := range []string{"", wrong(by.Code, 0)} {
			if _, err := f.Accept(t.Context(), by.Token, code, password, "", home); !problem.Is(err, problem.Invalid) || problem.From(err).Fields["code"] == nil {
				t.Fatalf("code %q: %v", code, err)
			}
		}
		if _, err := f.Accept(t.Context(), by.Token, by.Code[:4]+" "+by.Code[4:], password, "", home); err != nil {
			t.Fatal(err)
		}
		var actions []string
		entries, err := audit.New(f.db, f.clock).List(t.Context(), audit.Filter{})
		for _, e := range entries {
			actions = append(actions, e.Action)
		}
		if err != nil || strings.Join(actions, " ") != "person.invitation" { // not person.password, because people are notified of that
			t.Errorf("%v, %v", actions, err)
		}
	})
}

// After five wrong codes the link and the code are invalid, even if the codes arrive concurrently.
func TestInvitation_endsAfterFiveCodes(t *testing.T) {
	each(t, nil, func(f *fixture) {
		by := NewInvitation()
		f.tx(func(tx *db.Tx) error { _, err := f.Reset(tx, by, f.person.Email); return err })
		var all sync.WaitGroup
		var asked atomic.Int64
		for n := range 3 * codeTries {
			all.Go(func() {
				if _, err := f.Accept(f.t.Context(), by.Token, wrong(by.Code, n), password, "", netip.Addr{}); problem.Is(err, problem.Invalid) {
					asked.Add(1)
				}
			})
		}
		all.Wait()
		for n := range codeTries { // some of the concurrent tries were refused because too many hashes ran
			_, _ = f.Accept(f.t.Context(), by.Token, wrong(by.Code, 100+n), password, "", home)
		}
		if asked.Load() >= codeTries {
			t.Errorf("%d codes were compared", asked.Load()+1)
		}
		if _, err := f.Accept(t.Context(), by.Token, by.Code, password, "", home); !problem.Is(err, problem.Unauthenticated) {
			t.Fatal(err)
		}
	})
}

// A server of an earlier release stored a link without a code. The link does not work.
func TestInvitation_withoutCodeIsRefused(t *testing.T) {
	each(t, nil, func(f *fixture) {
		token := newToken()
		f.tx(func(tx *db.Tx) error {
			now := f.clock.Now()
			tx.Defer(resetPerson, 1, f.person.ID, now, "", "")
			tx.Defer(insertLink, 1, hashToken(token), f.person.ID, now, now.Add(InvitationLasts), kindInvitation, "")
			return nil
		})
		if _, err := f.Accept(t.Context(), token, "", password, "", home); !problem.Is(err, problem.Unauthenticated) {
			t.Fatal(err)
		}
	})
}
