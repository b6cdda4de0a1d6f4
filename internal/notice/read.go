package notice

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/roles"
)

// Delivered records that people with a role received a notice.
type Delivered struct {
	Role roles.Role
	At   time.Time // when the first of them received it
}

const selectDelivered = `SELECT r.role, min(m.ended_at) FROM notice_claims c JOIN notice_readers r ON r.notice = c.notice JOIN notice_messages m ON m.id = r.message
	WHERE c.event = $1 AND c.part = '' AND c.name = $2 AND m.state = 'sent' GROUP BY r.role ORDER BY min(m.ended_at), r.role`

// Notified returns which roles received a notice about a condition, such as a payment whose outcome is unknown.
func (n *Notices) Notified(ctx context.Context, e Event, name string) ([]Delivered, error) {
	return db.ReadAll(ctx, n.DB, selectDelivered, []any{string(e), name}, func(d *Delivered, r *db.Row) error { return r.Scan(&d.Role, &d.At) })
}

// Health is the state of a channel.
type Health struct {
	Channel Channel
	Waiting int       // messages that are not delivered yet
	Oldest  time.Time // time of the oldest of them; zero: none
	Error   string    // error of the last attempt of the oldest one; empty: no attempt
	Failed  int       // messages of the last day that were given up or refused for good
}

// Fails reports whether the channel does not deliver now.
func (h Health) Fails() bool { return h.Error != "" }

const (
	selectWaiting = `SELECT channel, made_at, error FROM notice_messages WHERE state = 'pending' ORDER BY made_at LIMIT $1`
	countFailed   = `SELECT channel, count(*) FROM notice_messages WHERE state = 'failed' AND made_at > $1 GROUP BY channel`
	mostWaiting   = 10_000
)

// Health returns the state of each channel that has messages to deliver, or that is configured.
func (n *Notices) Health(ctx context.Context) (list []Health, err error) {
	all := map[Channel]*Health{}
	of := func(c Channel) *Health {
		if all[c] == nil {
			all[c] = &Health{Channel: c}
		}
		return all[c]
	}
	err = n.DB.Read(ctx, func(tx *db.Tx) error {
		clear(all)
		for _, c := range n.Channels() {
			of(c)
		}
		if err := tx.Query(selectWaiting, []any{mostWaiting}, func(r *db.Row) error {
			var c Channel
			var at time.Time
			var why string
			err := r.Scan(&c, &at, &why)
			h := of(c)
			if h.Waiting++; h.Waiting == 1 {
				h.Oldest, h.Error = at, why
			}
			return err
		}); err != nil {
			return err
		}
		return tx.Query(countFailed, []any{n.Clock.Now().AddDate(0, 0, -1)}, func(r *db.Row) error {
			var c Channel
			var count int
			err := r.Scan(&c, &count)
			of(c).Failed = count
			return err
		})
	})
	for _, c := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[c])
	}
	return list, err
}

// Message is a message for the page of messages. It has no body.
type Message struct {
	ID, Address, Title, Error string
	Channel                   Channel
	Topic                     Topic
	State                     State
	Tries                     int
	MadeAt, EndedAt           time.Time // zero until it was delivered
}

const selectMessages = `SELECT id, address, title, error, channel, topic, state, tries, made_at, ended_at FROM notice_messages
	WHERE $1 = '' OR id < $1 ORDER BY id DESC LIMIT $2`

// Messages lists messages, the newest first. before is the id of the last message of the previous page. If it is empty,
// the list starts with the newest message.
func (n *Notices) Messages(ctx context.Context, before string, limit int) ([]Message, error) {
	return db.ReadAll(ctx, n.DB, selectMessages, []any{before, int64(limit)}, func(m *Message, r *db.Row) error {
		return r.Scan(&m.ID, &m.Address, &m.Title, &m.Error, &m.Channel, &m.Topic, &m.State, &m.Tries, &m.MadeAt, &m.EndedAt)
	})
}
