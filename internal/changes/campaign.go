package changes

import (
	"context"
	"fmt"
	"strconv"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
)

// KindStopCampaign ends a campaign. Its unsent messages fail, and their credits are returned.
const KindStopCampaign = "campaign.stop"

// stopped is the payload of a request to stop a campaign, as the requester saw it. Its members and their order are
// hashed, so they never change.
type stopped struct {
	Tenant   string `json:"tenant"`
	Campaign string `json:"campaign"`
}

// StopCampaign requests the end of a campaign.
func (a *Changes) StopCampaign(ctx context.Context, by By, id, campaign, reason string) (Request, error) {
	return a.Do(ctx, by, KindStopCampaign, id, Values{"campaign": campaign}, reason)
}

func (a *Changes) lookStop(ctx context.Context, o Order) (Draft, error) {
	c, err := a.Messaging.CampaignOf(ctx, o.Values["campaign"])
	if err != nil {
		return Draft{}, err
	}
	if o.By.Place != roles.Installation && o.By.Place != c.Tenant {
		return Draft{}, problem.New(problem.NotFound, "campaign_not_found", "Campaign not found")
	}
	t, err := a.Tenants.Get(ctx, c.Tenant)
	if err != nil {
		return Draft{}, err
	}
	title, err := a.titled(ctx, o.By.Place, t)
	if err != nil {
		return Draft{}, err
	}
	sentence := fmt.Sprintf("Stop the campaign from %s of %s, of %s: %d recipients", c.Sender, at(c.CreatedAt), title, c.Recipients)
	return Draft{Tenant: t.ID, Sentence: sentence, Payload: stopped{t.ID, c.ID}}, nil
}

// stopKind needs no approver, because a wrong text must be stopped at once.
func (a *Changes) stopKind() Kind {
	return written(a, KindStopCampaign, "Stop of a campaign", Rule{Make: roles.StopCampaigns, Check: roles.ApproveAccess, Light: true}, func(tx *db.Tx, request Request, p stopped) ([]audit.Change, error) {
		c, err := a.Messaging.StopCampaign(tx, p.Campaign)
		if err == nil && c.Tenant != p.Tenant {
			err = errChanged("The account")
		}
		return []audit.Change{{What: "campaign " + p.Campaign, Before: string(messaging.CampaignActive), After: string(messaging.CampaignStopped)}}, err
	}).by(a.lookStop, Field{Name: "campaign", Label: "Campaign", Hint: "The id of the campaign.", Max: 64, Required: true}).showing(a.checkStop)
}

// checkStop returns the progress of the campaign.
func (a *Changes) checkStop(ctx context.Context, r Request) ([]Fact, error) {
	p, err := payloadOf[stopped](r)
	if err != nil {
		return nil, err
	}
	c, err := a.Messaging.CampaignOf(ctx, p.Campaign)
	if err != nil {
		return nil, err
	}
	return []Fact{{Name: "Sender ID", Value: c.Sender}, {Name: "Begun", Value: at(c.CreatedAt)}, {Name: "Recipients", Value: strconv.FormatInt(c.Recipients, 10)},
		{Name: "Credits of one recipient", Value: strconv.FormatInt(c.Credits, 10)}, {Name: "State now", Value: string(c.Status)}}, nil
}
