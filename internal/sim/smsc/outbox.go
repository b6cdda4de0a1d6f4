package smsc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/linxGnu/gosmpp/data"
	"github.com/linxGnu/gosmpp/pdu"
)

// outbox holds the receipts that wait, and gives them in turn to the connections
// that may receive. A receipt that a connection did not acknowledge goes out again
// through another.
type outbox struct {
	options *atomic.Pointer[Options]
	moments *moments
	tally   *tally

	taking, watchers atomic.Int64 // submits that may bring a receipt, and callers of quiet

	mu        sync.Mutex
	still     *sync.Cond // signalled when no receipt is under way
	receivers []*receiver
	turn      int
	queue     receiptQueue
	underWay  int // receipts without an acknowledgement
	closed    bool
}

// receiver is a connection that receipts go to. The outbox's mutex guards it.
type receiver struct {
	link     *link
	owed     map[int32]receipt // receipts without an acknowledgement, by sequence number
	sequence int32
	report   *pdu.DeliverSM
}

func newOutbox(o *atomic.Pointer[Options], m *moments, t *tally) *outbox {
	b := &outbox{options: o, moments: m, tally: t, queue: receiptQueue{limit: maxReceipts}}
	b.still = sync.NewCond(&b.mu)
	return b
}

func newReceiver(l *link) *receiver {
	return &receiver{link: l, owed: map[int32]receipt{}, report: pdu.NewDeliverSM().(*pdu.DeliverSM)}
}

// join adds a connection that receipts may go to.
func (b *outbox) join(r *receiver) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.receivers = append(b.receivers, r)
}

// leave removes a connection; the receipts that it owes an answer for go out
// again through another.
func (b *outbox) leave(r *receiver) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.receivers = slices.DeleteFunc(b.receivers, func(other *receiver) bool { return other == r })
	b.underWay -= len(r.owed)
	b.tally.repeated.Add(int64(len(r.owed)))
	b.queue.unpop(r.owed)
	clear(r.owed)
	b.pumpLocked()
}

// offer sends receipts out, or lets them wait for a connection that takes them.
func (b *outbox) offer(receipts ...receipt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.tally.dropped.Add(b.queue.push(receipts...))
	b.pumpLocked()
}

// pump gives waiting receipts to the connections in turn.
func (b *outbox) pump() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pumpLocked()
}

func (b *outbox) pumpLocked() {
	window := b.options.Load().ReceiptWindow
	for b.queue.len() > 0 {
		r := b.nextLocked(window)
		if r == nil {
			break
		}
		b.deliverLocked(r, b.queue.pop())
	}
	for _, r := range b.receivers {
		r.link.flush()
	}
	if b.quietLocked() {
		b.still.Broadcast()
	}
}

// nextLocked returns a connection with room in its window, in turn.
func (b *outbox) nextLocked(window int) *receiver {
	for range b.receivers {
		b.turn++
		if r := b.receivers[b.turn%len(b.receivers)]; len(r.owed) < window {
			return r
		}
	}
	return nil
}

func (b *outbox) deliverLocked(to *receiver, r receipt) {
	to.sequence = to.sequence&0x3fffffff + 1
	r.tries++
	to.owed[to.sequence] = r
	b.underWay++
	r.fill(to.report, b.options.Load(), b.moments.s.Clock().Now())
	to.report.SetSequenceNumber(to.sequence)
	b.tally.receipts.Add(1)
	to.link.send(to.report)
}

// retryReceipt is when a receipt is sent again that the client refused for now,
// and receiptTries how often.
const (
	retryReceipt = time.Second
	receiptTries = 100
)

// confirm treats a client's answer to a receipt.
func (b *outbox) confirm(from *receiver, sequence int32, status data.CommandStatusType) {
	b.mu.Lock()
	r, known := from.owed[sequence]
	if !known {
		b.mu.Unlock()
		return
	}
	delete(from.owed, sequence)
	b.underWay--
	again := false
	switch status {
	case data.ESME_ROK:
		b.tally.confirmed.Add(1)
	case data.ESME_RX_T_APPN, data.ESME_RMSGQFUL, data.ESME_RTHROTTLED, data.ESME_RSYSERR:
		if r.tries < receiptTries {
			again = true
			break
		}
		fallthrough
	default:
		b.tally.dropped.Add(1)
	}
	if b.queue.len() > 0 || b.underWay == 0 {
		b.pumpLocked()
	}
	b.mu.Unlock()
	if again {
		b.tally.repeated.Add(1)
		b.moments.later(retryReceipt, func() { b.offer(r) })
	}
}

// taken ends a submit that expected counted: its answer is on its way, and its
// receipt if that is due.
func (b *outbox) taken() {
	if b.taking.Add(-1) == 0 && b.watchers.Load() > 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.still.Broadcast()
	}
}

func (b *outbox) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.len()
}

// quietLocked reports whether every receipt that can go has gone and was answered,
// and no submit may bring another one at this moment.
func (b *outbox) quietLocked() bool {
	return b.taking.Load() == 0 && b.underWay == 0 && (b.queue.len() == 0 || len(b.receivers) == 0)
}

func (b *outbox) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed || b.quietLocked()
}

// quiet waits until no receipt is under way.
func (b *outbox) quiet(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.still.Broadcast()
	})()
	b.watchers.Add(1)
	defer b.watchers.Add(-1)
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.quietLocked() && !b.closed && ctx.Err() == nil {
		b.still.Wait()
	}
	return ctx.Err()
}

func (b *outbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.still.Broadcast()
}
