package notice

import (
	"context"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/roles"
)

// failsAfter is how long a mail may be late before another channel carries it.
const (
	failsAfter      = 15 * time.Minute
	mostUndelivered = 1000
)

const selectUndelivered = `SELECT m.id, m.person, m.topic, m.address, m.title, m.made_at, coalesce(p.number, ''), EXISTS (SELECT 1 FROM notice_messages i WHERE i.instead = m.id)
	FROM notice_messages m LEFT JOIN notice_phones p ON p.person = m.person
	WHERE m.channel = 'email' AND m.secret = 0 AND m.topic IN ('money', 'security') AND m.made_at > $1
		AND (m.state = 'failed' OR m.state = 'pending' AND m.tries > 0 AND m.made_at < $2) ORDER BY m.made_at LIMIT $3`

// undelivered sends messages about money and security on another channel if mail does not deliver them. The person gets an SMS if a
// number is known. The hook and the operators always get one notice.
func (n *Notices) undelivered(ctx context.Context) error {
	if !n.has(Email) || len(n.Channels()) == 1 {
		return nil
	}
	now := n.Clock.Now()
	var failing []Condition
	var texts []message
	err := n.DB.Read(ctx, func(tx *db.Tx) error {
		failing, texts = nil, nil
		return tx.Query(selectUndelivered, []any{now.Add(-giveUpAfter), now.Add(-failsAfter), mostUndelivered}, func(r *db.Row) error {
			var m message
			var number string
			var replaced bool
			err := r.Scan(&m.id, &m.person, &m.topic, &m.address, &m.title, &m.madeAt, &number, &replaced)
			failing = append(failing, Condition{Name: m.id, Place: roles.Installation, Line: "To " + m.address + ": " + m.title})
			if number != "" && !replaced && n.has(SMS) {
				texts = append(texts, message{id: newID(), person: m.person, channel: SMS, topic: m.topic, address: ending(number), title: m.title, instead: m.id, madeAt: now})
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	if len(texts) > 0 {
		if err := n.DB.Write(ctx, func(tx *db.Tx) error {
			for _, m := range texts {
				if err := n.add(tx, m); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return n.Report(ctx, Undelivered, "", failing)
}
