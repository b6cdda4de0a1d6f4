package records

import (
	"time"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/requestlog"
)

// WithBooks adds the address of the file for bookkeeping programs.
func WithBooks(f page.Files) page.Files {
	f.Books = f.XLSX + "&preset=" + presetBooks
	return f
}

// RequestsFile returns the list of failed requests as a file.
func (ps *Pages) RequestsFile(v *console.Visit) (console.Answer, error) {
	f, err := ps.requestFilter(v)
	if err != nil {
		return console.Answer{}, err
	}
	return console.Exported(v, v.FileName("requests", f.Tenant, time.Time{}, time.Time{}), requestColumns(v), func(each func(requestlog.Request) error) error {
		for {
			found, err := ps.requests(v, f)
			if err != nil {
				return err
			}
			for _, r := range found.Requests {
				if err := each(r); err != nil {
					return err
				}
			}
			if found.More == "" {
				return nil
			}
			f.Before = found.More
		}
	}), nil
}

// CampaignsFile returns the list of messages as a file: of an account, or of all.
func (ps *Pages) CampaignsFile(v *console.Visit) (console.Answer, error) {
	of := v.Tenant.ID
	if v.Route.Site == console.Operators {
		var err error
		if of, err = v.AccountParam(); err != nil {
			return console.Answer{}, err
		}
	}
	return console.Exported(v, v.FileName("messages", of, time.Time{}, time.Time{}), campaignColumns(nil), func(each func(messaging.Campaign) error) error {
		return console.ByPage(func(c messaging.Campaign) string { return c.ID }, func(before string, limit int) ([]messaging.Campaign, error) {
			return ps.Messaging.Campaigns(v.Ctx, of, before, limit)
		}, each)
	}), nil
}
