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

// outbox has the waiting receipts and sends them to the receiving connections in turn. If a connection ends without
// acknowledging a receipt, the receipt is sent again through another connection.
type outbox struct {
	options *atomic.Pointer[Options]
	moments *moments
	tally   *tally

	taking, watchers atomic.Int64 // number of submits in progress that may cause a receipt, and of callers of quiet

	mu        sync.Mutex
	still     *sync.Cond // signalled when no receipt is in progress
	receivers []*receiver
	turn      int
	queue     receiptQueue
	underWay  int // number of unacknowledged receipts
	closed    bool
}

// receiver is a connection that receives receipts. The outbox's mutex protects it.
type receiver struct {
	link     *link
	owed     map[int32]receipt // unacknowledged receipts by sequence number
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

// join adds a connection that receives receipts.
func (b *outbox) join(r *receiver) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.receivers = append(b.receivers, r)
}

// leave removes a connection. Its unacknowledged receipts are sent again through another connection.
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

// offer sends receipts, or queues them until a connection can receive them.
func (b *outbox) offer(receipts ...receipt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.tally.dropped.Add(b.queue.push(receipts...))
	b.pumpLocked()
}

// pump sends waiting receipts to the connections in turn.
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

// nextLocked returns the next connection with room in its window, or nil.
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

// retryReceipt is the pause before a receipt that the client refused for now is sent again. receiptTries is the
// maximum number of attempts.
const (
	retryReceipt = time.Second
	receiptTries = 100
)

// confirm handles a client's response to a receipt.
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

// taken is called at the end of a submit. Its response has been queued, and its receipt if that is due already.
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

// quietLocked reports whether all receipts that can be sent were sent and acknowledged, and no submit in progress may
// cause another one.
func (b *outbox) quietLocked() bool {
	return b.taking.Load() == 0 && b.underWay == 0 && (b.queue.len() == 0 || len(b.receivers) == 0)
}

func (b *outbox) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed || b.quietLocked()
}

// quiet waits until no receipt is in progress.
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
