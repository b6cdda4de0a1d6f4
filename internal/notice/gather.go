package notice

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/roles"
)

// The limits of a round.
const (
	// pauseStep is the delay of a reader's next message of a topic for each message of the last hour.
	pauseStep = 5 * time.Minute
	pauseOver = time.Hour
	// mostHourly is the maximum number of messages of the installation in an hour.
	mostHourly = 1000

	mostReaders = 1000 // persons and topics in one round
	mostNotices = 5000 // notices of one message
)

const (
	selectDue = `SELECT person, topic, count(*) FROM notice_readers WHERE message = '' AND due_at <= $1 GROUP BY person, topic ORDER BY person, topic LIMIT $2`

	selectSince = `SELECT count(*), coalesce(max(made_at), 0) FROM notice_messages WHERE person = $1 AND topic = $2 AND made_at > $3 AND secret = 0`

	countSince = `SELECT count(*) FROM notice_messages WHERE made_at > $1`

	selectOfReader = `SELECT ` + noticeColumns + ` FROM notice_readers r JOIN notices n ON n.id = r.notice
		WHERE r.person = $1 AND r.topic = $2 AND r.message = '' AND r.due_at <= $3 ORDER BY n.id LIMIT $4`

	takeNotices = `UPDATE notice_readers SET message = $2 WHERE person = $1 AND message = '' AND notice IN (SELECT value FROM texts($3))`
)

// unread is stored instead of a message's id for facts that ended before they were sent, or that their reader may
// no longer see.
const unread = "none"

// waiting is a reader with due facts of a topic.
type waiting struct {
	person string
	topic  Topic
}

// gather makes messages from the facts that are due.
func (n *Notices) gather(ctx context.Context) error {
	now := n.Clock.Now()
	var all []waiting
	hourly := 0
	err := n.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if _, err := tx.One(countSince, []any{now.Add(-pauseOver)}, &hourly); err != nil {
			return err
		}
		all, err = db.All(tx, selectDue, []any{now, mostReaders}, func(d *waiting, r *db.Row) error {
			var count int
			return r.Scan(&d.person, &d.topic, &count)
		})
		return err
	})
	if err != nil {
		return err
	}
	var failed error
	for _, d := range all {
		if hourly >= mostHourly {
			n.Log.WarnContext(ctx, "notices delayed: limit of messages of the installation reached", "within", pauseOver, "limit", mostHourly)
			break
		}
		made, err := n.tell(ctx, d, now)
		failed = errors.Join(failed, err)
		if made {
			hourly++
		}
	}
	return failed
}

// tell makes a message for a reader about a topic, unless the reader got one recently.
func (n *Notices) tell(ctx context.Context, d waiting, now time.Time) (made bool, err error) {
	to, reached, err := n.recipient(ctx, d.person, d.topic)
	if err != nil {
		return false, err
	}
	var list []stored
	var sent int
	var last time.Time
	err = n.DB.Read(ctx, func(tx *db.Tx) error {
		if _, err := tx.One(selectSince, []any{d.person, string(d.topic), now.Add(-pauseOver)}, &sent, &last); err != nil {
			return err
		}
		list, err = db.All(tx, selectOfReader, []any{d.person, string(d.topic), now, mostNotices}, (*stored).scan)
		return err
	})
	if err != nil || len(list) == 0 || sent > 0 && now.Sub(last) < time.Duration(sent)*pauseStep {
		return false, err
	}
	var parts []part
	if reached {
		if parts, err = n.parts(ctx, to, list); err != nil {
			return false, err
		}
	}
	if len(parts) == 0 {
		return false, n.DB.Write(ctx, func(tx *db.Tx) error { take(tx, d.person, unread, list); return nil })
	}
	names, err := n.names(ctx, parts)
	if err != nil {
		return false, err
	}
	text := compose(parts, names, n.PublicURL)
	m := message{id: newID(), person: d.person, channel: to.channel, topic: d.topic, address: to.address, title: text.title, body: text.body, madeAt: now}
	return true, n.DB.Write(ctx, func(tx *db.Tx) error {
		take(tx, d.person, m.id, list)
		return n.add(tx, m)
	})
}

// parts groups facts by event and place, in order of arrival. It leaves out facts that ended, or that the person may
// no longer see. Facts beyond the lines of a message are only counted.
func (n *Notices) parts(ctx context.Context, to recipient, list []stored) (parts []part, err error) {
	at := map[string]int{}
	for _, f := range list {
		s := standing{place: f.place, needs: eventRules[f.event].needs}
		i, known := at[string(f.event)+" "+f.place]
		if !known || len(parts[i].lines) < mostLines {
			if s, err = n.stands(ctx, f); err != nil {
				return nil, err
			}
		}
		if s.over || !to.sees(f, s) {
			continue
		}
		if !known {
			i = len(parts)
			at[string(f.event)+" "+f.place] = i
			parts = append(parts, part{event: f.event, place: s.place})
		}
		parts[i].things += f.things
		parts[i].lines = append(parts[i].lines, s.lines...)
	}
	return parts, nil
}

// names returns the names of the accounts of parts.
func (n *Notices) names(ctx context.Context, parts []part) (map[string]string, error) {
	names := map[string]string{}
	for _, p := range parts {
		if _, known := names[p.place]; known || p.place == roles.Installation {
			continue
		}
		t, err := n.Tenants.Get(ctx, p.place)
		if err != nil {
			return nil, err
		}
		names[p.place] = t.Name
	}
	return names, nil
}

// take assigns facts to a message. If another node took one of the facts, it fails and changes nothing.
func take(tx *db.Tx, person, message string, list []stored) {
	ids := make([]string, len(list))
	for i, f := range list {
		ids[i] = f.id
	}
	tx.Defer(takeNotices, int64(len(ids)), person, message, ids)
}
