// Package notice notifies people by mail of facts that they should know: a change request that awaits them, money whose outcome is
// unknown.
//
// A fact is a row, written in the transaction that makes it, or by a watcher that claims it, so that two nodes notify once. A periodic
// worker finds the readers of new facts by their permissions at the place, and the choice of each. It puts the facts of a person and
// topic together into one message, so that a flood of facts is one mail. The more messages a person got within an hour, the longer
// the next one waits. A message is a durable job of its own kind. A mail server that hangs or refuses holds up nothing else.
//
// Delivery is at least once. Each attempt of a message has the same Message-ID. Bodies are plain text, without whole phone or account
// numbers, and nothing can be approved by a link.
//
// Files, from the top down:
//
//	notice.go   construction, and the periodic work
//	sort.go     the readers of facts
//	gather.go   facts put together into messages
//	claims.go   conditions that last, each notified once
//	links.go    messages with a link that works once
//	deliver.go  the job of a message
//	read.go     what pages and metrics show
//	requests.go change requests as readers see them
//	choose.go   when a person is notified, as the person chooses; test messages
//	choices.go  choices in force
//	mail.go     one attempt at a mail server
//	follow.go   the facts of entries of the audit log
//	write.go    a fact stored
//	words.go    a message in words
//	events.go   the table of events
package notice

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/tenant"
)

// The intervals and limits of notices.
const (
	workEvery = 20 * time.Second
	workName  = "notices"
	// jobKind is permanent: rows outlive programs.
	jobKind = "notice"
	// workers are messages in delivery at once, and perChannel those of one channel.
	workers    = 6
	perChannel = 3
	// stale facts are not notified any more, such as those from before the mail server was set up.
	stale = 24 * time.Hour
	// pauseStep is how much longer a person's next message of a topic waits for each one within the last hour.
	pauseStep = 5 * time.Minute
	pauseOver = time.Hour
	// mostHourly is the number of messages of the installation within an hour.
	mostHourly = 1000
	// giveUpAfter is the time within which a message must be delivered.
	giveUpAfter = 24 * time.Hour
	// keepFor is how long notices and messages are kept.
	keepFor    = 90 * 24 * time.Hour
	pruneBatch = 1000
	sortBatch  = 200
	// dailyAt is the hour of the daily message, in the time of Accra, which is UTC.
	dailyAt = 7
)

// Deps are the dependencies of Notices.
type Deps struct {
	DB      *db.DB
	Jobs    *jobs.Queue
	People  *identity.Identity
	Tenants *tenant.Store
	Clock   *clock.Clock
	Log     *slog.Logger
	SMTP    config.SMTP
	// Seal keeps the texts of messages with a link; nil: none are sent.
	Seal *config.Sealer
	// PublicURL is the address of this server in links, without a slash at its end; empty: messages have no links.
	PublicURL string
	// Request returns a change request as its readers see it.
	Request func(ctx context.Context, id string) (Request, error)
	// Watch reports the conditions that last. It runs before each round of messages.
	Watch func(ctx context.Context) error
}

// Notices notifies people. It is safe for concurrent use.
type Notices struct {
	Deps
	mail   mailer
	pauses []time.Duration // between the attempts of a message; the last one repeats
}

// New makes the notices of a node, and registers their work with the queue where a channel is configured. The queue must not have
// started.
func New(d Deps) *Notices {
	n := &Notices{Deps: d, mail: mailer{d.SMTP}, pauses: pauses}
	if n.Enabled() {
		n.Jobs.Register(jobs.Handler{Kind: jobKind, Workers: workers, Key: channelOf, PerKey: func(string) int { return perChannel }, Run: n.deliver})
		n.Jobs.Register(jobs.Handler{Kind: forgottenKind, Workers: 2, Run: n.forgotten})
		n.Jobs.Periodic(workName, workEvery, n.Work)
	}
	return n
}

// Enabled reports whether a channel is configured. Without a channel no notice is sent.
func (n *Notices) Enabled() bool { return len(n.Channels()) > 0 }

// Channels returns the channels that are configured.
func (n *Notices) Channels() (list []Channel) {
	if n.SMTP.Enabled() {
		list = append(list, Email)
	}
	return list
}

// Work makes one round: it looks for conditions, finds the readers of new facts, and makes messages. A part that fails does not keep
// the others from their work.
func (n *Notices) Work(ctx context.Context) error {
	var watched error
	if n.Watch != nil {
		watched = n.Watch(ctx)
	}
	return errors.Join(watched, n.sort(ctx), n.gather(ctx))
}

const (
	pruneNotices  = `DELETE FROM notices WHERE id IN (SELECT id FROM notices WHERE made_at < $1 ORDER BY made_at LIMIT $2)`
	pruneReaders  = `DELETE FROM notice_readers WHERE (notice, person) IN (SELECT notice, person FROM notice_readers WHERE notice < $1 ORDER BY notice LIMIT $2)`
	pruneMessages = `DELETE FROM notice_messages WHERE id IN (SELECT id FROM notice_messages WHERE made_at < $1 AND state <> 'pending' ORDER BY made_at LIMIT $2)`
	pruneClaims   = `DELETE FROM notice_claims WHERE (event, part, name) IN (SELECT event, part, name FROM notice_claims WHERE ended_at > 0 AND ended_at < $1 ORDER BY ended_at LIMIT $2)`
)

// Prune removes rows older than keepFor.
func (n *Notices) Prune(ctx context.Context) error {
	before := n.Clock.Now().Add(-keepFor)
	return errors.Join(
		db.Prune(ctx, n.DB, pruneReaders, pruneBatch, firstID(before)),
		db.Prune(ctx, n.DB, pruneNotices, pruneBatch, before),
		db.Prune(ctx, n.DB, pruneMessages, pruneBatch, before),
		db.Prune(ctx, n.DB, pruneClaims, pruneBatch, before))
}
