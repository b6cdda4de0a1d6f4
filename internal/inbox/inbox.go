// Package inbox keeps the texts that handsets send. A text belongs to the account that has its number or short code,
// whole or by a keyword. The account gets the event sms.received at the address that it set. STOP and START keep the
// account's list of numbers that get no campaign, and are answered once.
//
// A text is acknowledged after it is stored. An operator that lost the acknowledgement sends it again, and it is
// recognised by its content and connection. The parts of a long text are stored as they come and joined when all are
// there, or after a while without the rest. Texts of one handset, waiting parts and texts without an account are
// limited in number, and a text in its length.
//
// A file depends only on files that are listed below it:
//
//	inbox.go           texts and parts in the order in which they came
//	sweep.go           parts whose text stays incomplete, and texts that are old
//	parts.go           the parts of long texts
//	accept.go          a whole text: its account, STOP and START, its event
//	answer.go          answers to STOP and START
//	list.go, erasure.go  texts for people; a person's number
//	numbers.go         numbers and keywords of accounts
//	words.go           the words of STOP and START
//	store.go           the store and its dependencies
package inbox

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
)

// New makes a store and registers its jobs with a queue, if it has one.
func New(d Deps) *Store {
	if d.Keep <= 0 {
		d.Keep = defaultKeep
	}
	s := &Store{Deps: d, words: wordsOf(d.Words), texts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "makola_sms_incoming_total",
		Help: "Texts from handsets and their parts, by outcome: stored, part, repeated, unassigned, dropped."}, []string{"outcome"})}
	s.committer = groupcommit.New(groupcommit.Options{Systemic: func(err error) bool { return errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrAmbiguous) }}, s.store)
	if d.Jobs != nil {
		d.Jobs.Register(jobs.Handler{Kind: answerKind, Workers: answerWorkers, Run: s.sendAnswer})
		d.Jobs.Periodic("inbox-parts", partsEvery, s.closeParts)
		d.Jobs.Periodic("inbox-sweep", sweepEvery, s.sweep)
	}
	return s
}

// Receive queues a text from a handset behind earlier ones and returns at once. stored waits for the commit, after
// which the text may be acknowledged.
func (s *Store) Receive(ctx context.Context, mode tenant.Mode, m provider.Incoming) (stored func() error) {
	m.From, m.To = Address(m.From), Address(m.To)
	wait := s.committer.Queue(ctx, m.From, 4, received{Incoming: m, mode: mode, id: uuid.Must(uuid.NewV7()).String()})
	return func() error {
		done, err := wait()
		if err == nil {
			s.texts.WithLabelValues(string(done)).Inc()
		}
		return err
	}
}

// store stores a batch in one transaction, in order: the last STOP or START of a handset counts.
func (s *Store) store(ctx context.Context, batch []received) (verdicts []groupcommit.Verdict[outcome], err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		verdicts = make([]groupcommit.Verdict[outcome], len(batch))
		for i, r := range batch {
			done, err := s.take(tx, r)
			if err != nil {
				return err
			}
			verdicts[i].Value = done
		}
		return nil
	})
	return verdicts, err
}

// take stores one text or part.
func (s *Store) take(tx *db.Tx, r received) (outcome, error) {
	if r.Parts <= 1 {
		return s.accept(tx, r.text())
	}
	return s.takePart(tx, r)
}

// Close waits for the transactions that are under way.
func (s *Store) Close() { s.committer.Close() }

// Collectors returns the metrics of this node for a registry.
func (s *Store) Collectors() []prometheus.Collector { return []prometheus.Collector{s.texts} }
