package identity

import (
	"github.com/makola/makola/internal/db"
)

// InForce returns an error in tx if the visitor's session has ended. It also returns an error if the visitor has a
// factor and did not give it within the last five minutes. For a personal token the factor counts as given, because
// the person gave it when the token was created.
func (i *Identity) InForce(tx *db.Tx, v Visitor) error {
	if v.token != "" {
		_, err := i.bearer(tx, v.token)
		return err
	}
	row, err := readSession(tx, v.hash)
	switch {
	case err != nil:
		return err
	case !row.live(i.clock.Now()):
		return errSession()
	case row.visitor.HasFactor && !i.SteppedUp(row.visitor):
		return errStepUp()
	}
	return nil
}
