package notice

import (
	"context"
	"slices"

	"github.com/makola/makola/internal/db"
)

// Channel is a way to deliver messages. It is stored.
type Channel string

// The channels.
const (
	Email Channel = "email"
	SMS   Channel = "sms"
	Hook  Channel = "hook"
)

// hookReader is the reader id of the hook. No person has this id.
const hookReader = "hook"

// Enabled reports whether a channel is configured. Without a channel no notice is sent.
func (n *Notices) Enabled() bool { return len(n.Channels()) > 0 }

// Channels returns the channels that are configured.
func (n *Notices) Channels() (list []Channel) {
	if n.SMTP.Enabled() {
		list = append(list, Email)
	}
	if n.Ways.SMSEnabled() && n.Text != nil {
		list = append(list, SMS)
	}
	if n.Ways.HookEnabled() && n.Poster != nil {
		list = append(list, Hook)
	}
	return list
}

// has reports whether a channel is configured.
func (n *Notices) has(c Channel) bool {
	return slices.Contains(n.Channels(), c)
}

// hookName is the recipient's name for messages to the hook, because its URL may be a secret.
const hookName = "the hook of the installation"

// ending returns the last three digits of a number for display.
func ending(number string) string {
	if len(number) < 3 {
		return ""
	}
	return "..." + number[len(number)-3:]
}

const (
	selectPhone = `SELECT number FROM notice_phones WHERE person = $1`
	storePhone  = `INSERT INTO notice_phones (person, number, changed_at) VALUES ($1, $2, $3)
		ON CONFLICT (person) DO UPDATE SET number = excluded.number, changed_at = excluded.changed_at`
	dropPhone = `DELETE FROM notice_phones WHERE person = $1`
)

// Phone returns the number of a person, or an empty text.
func (n *Notices) Phone(ctx context.Context, person string) (number string, err error) {
	err = n.DB.Read(ctx, func(tx *db.Tx) error {
		number = ""
		_, err := tx.One(selectPhone, []any{person}, &number)
		return err
	})
	return number, err
}
