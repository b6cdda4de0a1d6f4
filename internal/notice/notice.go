// Package notice notifies people by mail, SMS and a hook of facts that they should know: a change request that awaits them, money whose outcome is
// unknown.
//
// A fact is a row. The transaction that causes the fact writes it, or a watcher that first claims it, so that two nodes write one
// notice. A periodic worker finds the readers of new facts by their permissions at the place, and reads their choices. It combines the
// facts of a person and topic into one message, so that a flood of facts is one mail. The more messages a person got within an hour,
// the longer the next message waits. A message is a durable job with a separate kind. So a mail server that hangs or refuses delays no
// other work.
//
// Delivery is at least once. Each attempt of a message has the same Message-ID. Bodies are plain text, without whole phone or account
// numbers, and nothing can be approved by a link.
//
// Files, from the top down:
//
//	notice.go       construction, and the periodic work
//	undelivered.go  messages that mail does not deliver
//	sort.go         the readers of facts
//	gather.go       facts put together into messages
//	recipients.go   where the messages of a reader go
//	claims.go       conditions that last, each notified once
//	deliver.go      the job of a message
//	links.go        messages with a link that works once
//	reseal.go       their texts under another master key
//	hook.go         one request to the hook, and one SMS
//	mail.go         one attempt at a mail server
//	read.go         what pages and metrics show
//	choose.go       when a person is notified, as the person chooses; test messages
//	requests.go     change requests as readers see them
//	choices.go      choices in force
//	message.go      a message stored with its job
//	channels.go     the channels that are configured, and the numbers of people
//	deps.go         dependencies, and a change request as readers see it
//	follow.go       the facts of entries of the audit log
//	write.go        a fact stored
//	words.go        a message in words
//	events.go       the table of events
package notice

import (
	"context"
	"errors"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
)

// The intervals and limits of the work.
const (
	workEvery = 20 * time.Second
	workName  = "notices"
	// workers is the number of messages in delivery at once, and perChannel the number for one channel.
	workers    = 6
	perChannel = 3
	// keepFor is how long notices and messages are kept.
	keepFor    = 90 * 24 * time.Hour
	pruneBatch = 1000
)

// New makes the notices of a node. If a channel is configured, it registers their work with the queue. The queue must not have
// started.
func New(d Deps) *Notices {
	n := &Notices{Deps: d, pauses: pauses}
	if n.Enabled() {
		n.Jobs.Register(jobs.Handler{Kind: jobKind, Workers: workers, Key: channelOf, PerKey: func(string) int { return perChannel }, Run: n.deliver})
		n.Jobs.Register(jobs.Handler{Kind: forgottenKind, Workers: 2, Run: n.forgotten})
		n.Jobs.Periodic(workName, workEvery, n.Work)
	}
	return n
}

// Work makes one round: it looks for conditions, finds the readers of new facts, and makes messages. If one part fails, the others
// still run.
func (n *Notices) Work(ctx context.Context) error {
	var watched error
	if n.Watch != nil {
		watched = n.Watch(ctx)
	}
	return errors.Join(watched, n.undelivered(ctx), n.sort(ctx), n.gather(ctx))
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
