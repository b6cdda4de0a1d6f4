package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/console/words"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/notice"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/senderid"
)

// mostDoubts is the maximum number of payments with an unknown outcome that are watched, oldest first.
const mostDoubts = 20_000

// noticeOfRequest converts a change request for notices.
func (a *App) noticeOfRequest(ctx context.Context, id string) (notice.Request, error) {
	r, err := a.changes.Store.Get(ctx, id)
	if err != nil {
		return notice.Request{}, err
	}
	rule, _ := a.changes.Rule(r.Kind)
	n := notice.Request{Place: r.Place, Title: a.changes.Title(r.Kind), Amount: r.Amount, Requester: r.RequesterName, RequesterID: r.Requester, Barred: r.Barred, Approver: rule.Check,
		Waits: r.State == changes.Waiting && r.Needs > 0, Note: r.Note}
	if about, is := changes.About(r); is {
		n.About = about
	}
	if last := len(r.Checks) - 1; last >= 0 {
		n.Decided = r.Checks[last].Person != r.Requester
	}
	if r.Tenant == "" || r.Tenant == r.Place { // the title already names the account of the page
		return n, nil
	}
	t, err := a.tenants.Get(ctx, r.Tenant)
	n.Account = t.Name
	return n, err
}

// mailLink returns the function that mails the links of invitations. It is nil if pages show the links to the
// requester instead.
func (a *App) mailLink() func(tx *db.Tx, email, token string) error {
	if !a.notices.Links() {
		return nil
	}
	return a.notices.Invite
}

// watchPayments reports the payments whose outcome has been unknown for too long.
func (a *App) watchPayments(ctx context.Context) error {
	list, err := a.payments.Doubts(ctx, mostDoubts)
	if err != nil {
		return err
	}
	names := map[string]string{}
	all := make([]notice.Condition, len(list))
	for i, d := range list {
		if _, known := names[d.Tenant]; !known {
			t, err := a.tenants.Get(ctx, d.Tenant)
			if err != nil {
				return err
			}
			names[d.Tenant] = t.Name
		}
		all[i] = notice.Condition{Name: d.ID, Place: roles.Installation, Line: fmt.Sprintf("%s of %s by %s, account %s, since %s, %s",
			words.KindWords[d.Kind], "GHS "+money.Grouped(d.Amount.String()), cmp.Or(d.Rail, "no provider"), notice.Name(names[d.Tenant]), d.Since.UTC().Format("2 Jan 2006, 15:04"), d.ID)}
	}
	return a.notices.Report(ctx, notice.PaymentUnknown, "", all)
}

// textNotice sends a notice by SMS, charged to the operator's account. The notice's id is the idempotency key, so it
// is sent once.
func (a *App) textNotice(ctx context.Context, id, number, text string) error {
	by := idempotency.Caller{Tenant: a.cfg.Notices.SMSAccount, IdempotencyKey: id, BodyHash: id}
	list, err := a.senders.List(ctx, by.Tenant)
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Name == a.cfg.Notices.SMSSender && s.Status == senderid.Approved {
			_, _, err := a.messaging.Send(ctx, by, messaging.Send{SenderID: s.ID, Message: text, Recipients: []string{number}})
			return err
		}
	}
	return errors.New("the account of notices has no approved sender ID of that name")
}
