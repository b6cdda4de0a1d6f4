package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
)

// channelOf returns the line of a message by its channel, so that no message waits for another channel that
// hangs.
func channelOf(job jobs.Job) string {
	var p payload
	_ = json.Unmarshal(job.Payload, &p) // an unknown channel of another release gets a separate line
	return string(p.Channel)
}

const (
	selectMessage = `SELECT id, person, channel, topic, address, title, body, secret, instead, state, tries, made_at, ends_at FROM notice_messages WHERE id = $1`

	endMessage = `UPDATE notice_messages SET state = $2, ended_at = $3, error = $4, tries = tries + 1, body = CASE WHEN secret = 1 THEN '' ELSE body END
		WHERE id = $1 AND state = 'pending'`

	failedOnce = `UPDATE notice_messages SET tries = tries + 1, error = $2 WHERE id = $1 AND state = 'pending'`
)

// pauses are the pauses between the attempts of a message; the last one repeats.
var pauses = []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute}

// deliver runs the job of one message.
func (n *Notices) deliver(ctx context.Context, job jobs.Job) jobs.Outcome {
	m, found, err := n.message(ctx, job.ID)
	switch {
	case err != nil:
		return jobs.Retry(err)
	case !found || m.state != Pending:
		return jobs.Done()
	}
	err = n.attempt(ctx, m)
	switch {
	case err == nil:
		return n.end(ctx, m, Sent, "")
	case ctx.Err() != nil: // the node stops
		return jobs.Later(0)
	case errors.Is(err, errFinal) || n.Clock.Now().After(m.endsAt):
		n.Log.WarnContext(ctx, "notice not delivered", "message", m.id, "channel", string(m.channel), "topic", string(m.topic), "tries", m.tries+1, "error", err)
		return n.end(ctx, m, Failed, why(err))
	}
	if m.tries == 0 {
		n.Log.WarnContext(ctx, "notice delayed, retrying", "message", m.id, "channel", string(m.channel), "topic", string(m.topic), "error", err)
	}
	if err := n.DB.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(failedOnce, -1, m.id, why(err))
		return nil
	}); err != nil {
		return jobs.Retry(err)
	}
	return jobs.RetryAfter(jobs.Jitter(m.id, m.tries, n.pauses[min(m.tries, len(n.pauses)-1)]), err)
}

// attempt sends a message once.
func (n *Notices) attempt(ctx context.Context, m message) error {
	if m.secret {
		if n.Seal == nil {
			return errors.New("this node has no master key")
		}
		body, err := n.open(m.id, m.body)
		if err != nil {
			return fmt.Errorf("%w: its text cannot be opened: %w", errFinal, err)
		}
		m.body = body
	}
	return n.dispatch(ctx, m)
}

// end stores the outcome of a message. If the outcome cannot be stored, the message is sent again under the same
// Message-ID.
func (n *Notices) end(ctx context.Context, m message, to State, why string) jobs.Outcome {
	err := n.DB.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(endMessage, -1, m.id, string(to), n.Clock.Now(), why)
		n.Jobs.Finish(tx, m.id)
		return nil
	})
	if err != nil {
		return jobs.Retry(err)
	}
	return jobs.Done()
}

func (n *Notices) message(ctx context.Context, id string) (m message, found bool, err error) {
	found, err = n.DB.ReadOne(ctx, selectMessage, []any{id}, &m.id, &m.person, &m.channel, &m.topic, &m.address, &m.title, &m.body, &m.secret, &m.instead, &m.state, &m.tries, &m.madeAt, &m.endsAt)
	return m, found, err
}

// why returns the reason of a failure in stored form: one line without complete numbers.
func why(err error) string { return line(strings.ReplaceAll(err.Error(), errFinal.Error()+": ", "")) }
