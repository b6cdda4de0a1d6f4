package delivery

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/messaging/otp"
)

const rowsOfChunk = `SELECT no, recipient, status, submitted_at FROM messages WHERE tenant = $1 AND campaign = $2 AND no >= $3 AND no < $4 ORDER BY no`

// chunkOwner reads chunks and takes them over from dead owners.
type chunkOwner struct {
	db       *db.DB
	resend   bool
	codes    *otp.Codes
	receipts *receiptBook
}

// resume reads a chunk, and takes it over if an earlier owner has started it. Messages that the earlier owner had in
// flight become unknown, or queued if Deps.Resend is set. A nil result means that the chunk is finished.
func (o *chunkOwner) resume(ctx context.Context, job jobs.Job) (*work, error) {
	var payload chunkPayload
	if err := json.Unmarshal(job.Payload, &payload); err != nil {
		return nil, fmt.Errorf("parse the payload of a chunk: %w", err)
	}
	var w *work
	err := o.db.Read(ctx, func(tx *db.Tx) (err error) {
		w, err = o.readWork(tx, payload, "")
		return err
	})
	if err != nil || w == nil || w.turn == 0 {
		return w, err
	}
	err = o.db.Write(ctx, func(tx *db.Tx) (err error) {
		if w, err = o.readWork(tx, payload, tx.ForUpdate()); err != nil || w == nil {
			return err
		}
		return o.takeOver(tx, w)
	})
	return w, err
}

// readWork reads a chunk. lock is empty, or the SQL clause that locks its row.
func (o *chunkOwner) readWork(tx *db.Tx, payload chunkPayload, lock string) (*work, error) {
	w := &work{chunk: chunk{Tenant: payload.Tenant, Campaign: payload.Campaign, No: payload.Chunk, State: chunkReady, Small: payload.Alone}}
	var code otp.Code
	found := false
	err := tx.Gather(
		code.Find(payload.Tenant, payload.Campaign),
		db.Query{SQL: selectCampaign, Args: []any{payload.Tenant, payload.Campaign}, Each: w.campaign.Scan},
		db.Query{SQL: w.chunk.row().read + lock, Args: []any{payload.Tenant, payload.Campaign, payload.Chunk}, Each: func(r *db.Row) error {
			var list, texts string
			found = true
			if err := r.Scan(&w.turn, &w.next, &w.claimedAt, &list, &w.chunk.CreatedAt, &texts); err != nil {
				return err
			}
			w.chunk.Recipients = parseList(list)
			var err error
			w.chunk.Texts, err = parseTexts(texts)
			return err
		}})
	if err != nil || !found {
		return nil, err
	}
	if w.campaign.ID == "" {
		return nil, fmt.Errorf("chunk %d has no campaign %s", payload.Chunk, payload.Campaign)
	}
	w.render(o.codes, &code)
	return w, nil
}

// takeOver replaces the turn, so that every later step of the earlier owner is refused. Claimed messages without a
// result may have been sent by the earlier owner.
func (o *chunkOwner) takeOver(tx *db.Tx, w *work) error {
	w.turn = newTurn()
	tx.Defer(w.chunk.row().take, 1, w.chunk.Tenant, w.chunk.Campaign, w.chunk.No, w.turn)
	known := map[int64]message{}
	from := w.chunk.No * chunkSize
	if err := tx.Query(rowsOfChunk, []any{w.chunk.Tenant, w.chunk.Campaign, from, from + chunkSize}, func(r *db.Row) error {
		msg := message{Tenant: w.chunk.Tenant, Campaign: w.chunk.Campaign, stored: true}
		err := r.Scan(&msg.No, &msg.Recipient, &msg.Status, &msg.SubmittedAt)
		known[msg.No] = msg
		return err
	}); err != nil {
		return err
	}
	to, why := StatusUnknown, "the node stopped while it sent the message"
	if o.resend && w.campaign.Kind == KindCampaign {
		to, why = StatusQueued, ""
	}
	writes := newStepWrites()
	for place := range w.next {
		msg, found := known[from+int64(place)]
		if !found {
			msg = w.message(place, StatusSending, w.claimedAt)
		}
		if msg.Status == StatusSending {
			o.receipts.times.submitted(msg.SubmittedAt)
			msg.Status, msg.Error = to, why
			writes.result(result{message: msg})
		}
		if msg.stored = true; msg.Status == StatusQueued {
			w.retry = append(w.retry, msg)
		}
	}
	writes.deferAll(tx)
	return nil
}
