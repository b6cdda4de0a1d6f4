package tenant

import (
	"errors"
	"strconv"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// Quota is the maximum number of one thing that a tenant may store: a number from 1 on, or one of the constants
// below. Values are stored.
type Quota int64

// Quotas that are not numbers. The zero value means that the installation's setting applies.
const (
	InstallationQuota Quota = 0  // the installation's setting applies
	NoQuota           Quota = -1 // no limit, whatever the installation's setting is
)

// String returns a quota as operators write it: a number, none or default.
func (q Quota) String() string {
	switch q {
	case InstallationQuota:
		return "default"
	case NoQuota:
		return "none"
	}
	return strconv.FormatInt(int64(q), 10)
}

var errQuota = errors.New("must be none, default, or a whole number (0 is none)")

// ParseQuota parses the result of String. 0 means none, as in the installation's settings.
func ParseQuota(text string) (Quota, error) {
	switch text {
	case "default":
		return InstallationQuota, nil
	case "none", "0":
		return NoQuota, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, errQuota
	}
	return Quota(n), nil
}

// over returns the limit that applies if the installation's setting is setting. 0 means no limit.
func (q Quota) over(setting int64) int64 {
	switch q {
	case InstallationQuota:
		return setting
	case NoQuota:
		return 0
	}
	return int64(q)
}

// Quotas are a tenant's own limits on stored data. Each replaces the installation's limit.
type Quotas struct {
	Contacts  Quota // in all groups together
	Groups    Quota
	Senders   Quota // sender IDs, including rejected ones
	Campaigns Quota // active large campaigns
}

// Over returns the limits that apply to the tenant with these settings of the installation.
func (q Quotas) Over(settings config.Quotas) config.Quotas {
	return config.Quotas{
		Contacts:  q.Contacts.over(settings.Contacts),
		Groups:    q.Groups.over(settings.Groups),
		Senders:   q.Senders.over(settings.Senders),
		Campaigns: q.Campaigns.over(settings.Campaigns),
	}
}

// Stored is how much of a quota a tenant has used. Most is 0 if there is no limit.
type Stored struct{ Used, Most int64 }

// Room returns refusal if the count of a query plus more would exceed most. A most of 0 means no limit. Room runs
// before the rows are written, and locks nothing. So concurrent requests may each exceed the limit by their own rows.
func Room(tx *db.Tx, count, id string, more, most int64, refusal error) error {
	if most == 0 || more == 0 {
		return nil
	}
	var n int64
	if _, err := tx.One(count, []any{id}, &n); err != nil {
		return err
	}
	if n+more > most {
		return refusal
	}
	return nil
}

// check adds errors for values that the table does not allow.
func (q Quotas) check(f *problem.Fields) {
	for _, each := range []struct {
		name  string
		quota Quota
	}{{"quota_contacts", q.Contacts}, {"quota_groups", q.Groups}, {"quota_sender_ids", q.Senders}, {"quota_campaigns", q.Campaigns}} {
		if each.quota < NoQuota {
			f.Add(each.name, errQuota.Error())
		}
	}
}

// QuotaChange has the new value of each quota. A nil value changes nothing.
type QuotaChange struct {
	Contacts  *Quota
	Groups    *Quota
	Senders   *Quota
	Campaigns *Quota
}

func (q *Quotas) set(c QuotaChange) {
	set(&q.Contacts, c.Contacts)
	set(&q.Groups, c.Groups)
	set(&q.Senders, c.Senders)
	set(&q.Campaigns, c.Campaigns)
}
