package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"math/big"
	"net/netip"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/usertext"
)

const (
	// invitationDigits is the number of digits of an invitation's code.
	invitationDigits = 8
	// codeTries is the number of wrong codes after which an invitation ends.
	codeTries = 5
)

// newInvitationCode returns a random code.
func newInvitationCode() string {
	n, _ := rand.Int(rand.Reader, big.NewInt(100_000_000)) // never fails
	return fmt.Sprintf("%0*d", invitationDigits, n)
}

// hashInvitation returns the stored form of an invitation's token. It differs from hashToken, so that a server of an
// earlier release does not find the link: that release asks for no code.
func hashInvitation(token string) string { return hashToken("makola invitation 2 " + token) }

// hashCode returns the stored form of a code. The hash includes the token, so that nobody can find the code by trying
// all codes against the database.
func hashCode(token, code string) string { return hashToken("makola code 1 " + token + " " + code) }

const (
	lockCode  = `SELECT code, tries FROM sign_in_links WHERE hash = $1 AND used_at = 0 FOR UPDATE`
	wrongCode = `UPDATE sign_in_links SET tries = tries + 1, used_at = $2 WHERE hash = $1 AND used_at = 0`
)

// tryCode checks the code of an invitation. Concurrent tries are checked one after the other. The fifth wrong code
// ends the invitation.
func (i *Identity) tryCode(ctx context.Context, token, code string, p Person, from netip.Addr) error {
	var refusal error
	err := i.db.Write(ctx, func(tx *db.Tx) error {
		refusal = nil
		var stored string
		var tries int
		hash, ends := hashInvitation(token), i.clock.Now()
		found, err := tx.One(lockCode, []any{hash}, &stored, &tries)
		switch {
		case err != nil:
			return err
		case !found:
			refusal = errLink()
			return nil
		case subtle.ConstantTimeCompare([]byte(hashCode(token, usertext.Code(code))), []byte(stored)) == 1:
			return nil
		case tries+1 < codeTries:
			refusal = problem.Field("code", fmt.Sprintf("is not the code of this link: %d tries are left", codeTries-tries-1))
			tx.Defer(wrongCode, 1, hash, time.Time{})
			return nil
		}
		refusal = errLink()
		tx.Defer(wrongCode, 1, hash, ends)
		return i.note(tx, p, from, audit.Entry{Action: "person.link", Details: changesOf("link", "worked", "ended by wrong codes")})
	})
	if err == nil {
		err = refusal
	}
	return err
}

// errLink is returned for every unusable link. It does not reveal whether the link was unknown, used or expired.
func errLink() error {
	return problem.New(problem.Unauthenticated, "link_not_valid", "This link does not work: it was used before, has expired or is incomplete")
}
