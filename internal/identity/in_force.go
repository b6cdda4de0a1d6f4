package identity

import (
	"github.com/makola/makola/internal/db"
)

// InForce refuses, in tx, a visitor whose session has ended. It also refuses one who has a factor and did not give it
// within the last five minutes. A personal token counts as given with the factor at its creation.
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
