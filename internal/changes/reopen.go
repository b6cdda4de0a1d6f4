package changes

import (
	"context"
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging/otp"
	"github.com/makola/makola/internal/roles"
)

// KindReopen reopens a range of numbers that was closed to a customer's one-time passwords.
const KindReopen = "otp.reopen"

// reopened is the payload of a request to reopen an OTP range. Its members and their order are hashed, so they never
// change.
type reopened struct {
	Tenant string `json:"tenant"`
	Range  string `json:"range"`
}

func (a *Changes) lookReopen(ctx context.Context, o Order) (Draft, error) {
	t, err := a.Tenants.Get(ctx, o.Values[FieldTenant])
	if err != nil {
		return Draft{}, err
	}
	prefix := otp.RangeOf(o.Values["range"])
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Open the range %s to one-time passwords of %s again", prefix, title)
	return Draft{Tenant: t.ID, Sentence: sentence, Payload: reopened{t.ID, prefix}}, nil
}

// reopenKind needs no approver, because a range with further suspicious traffic closes again by itself.
func (a *Changes) reopenKind() Kind {
	return written(a, KindReopen, "Reopening of a number range", Rule{Make: roles.ChangeTenants, Check: roles.ApproveAccess, Light: true}, func(tx *db.Tx, request Request, p reopened) ([]audit.Change, error) {
		was, err := a.Messaging.Codes.ReopenRange(tx, p.Tenant, p.Range)
		return []audit.Change{{What: "range " + p.Range, Before: fmt.Sprintf("closed: %d of %d verified", was.Verified, was.Sent), After: "open"}}, err
	}).by(a.lookReopen, tenantField, Field{Name: "range", Label: "Range", Hint: "Enter the first digits of the range, or a number in it.", Max: 20, Required: true})
}
