package delivery

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

// A chunk has one owner at a time. Its turn is a random fencing token. A step needs the current turn and replaces it.
// A new owner replaces the turn, too, so that all later steps of the earlier owner fail.

// newTurn returns a random turn.
func newTurn() int64 { return rand.Int64N(1<<62) + 1 } // need not be unpredictable

// turnRow describes the row that has the turn of a chunk. It is the chunk's own row, or the campaign's row if the
// campaign is small. The fields are SQL statements for that row.
type turnRow struct {
	read   string // reads an unfinished chunk: turn, number of begun recipients, their claim time, recipients, acceptance time, texts
	locked string // locks a set and reads key, turn and the campaign's status; done means that the chunk is finished
	turn   string // reads the turn of a chunk
	take   string // replaces the turn of a chunk
	move   string // replaces the turns of a set
	end    string // deletes the rows of a set; empty: the row stays, and the last step replaces its turn
}

// chunksRow has the statements for the chunk's own row. The statement locked locks the rows, so that turns cannot change
// before the transaction ends.
var chunksRow = &turnRow{
	read: `SELECT turn, begun, marked_at, recipients, created_at, texts FROM chunks WHERE tenant = $1 AND campaign = $2 AND no = $3 AND state = 'ready'`,
	locked: `SELECT k.tenant, k.campaign, k.no, k.turn,
		COALESCE((SELECT c.status FROM campaigns c WHERE c.tenant = k.tenant AND c.id = k.campaign), 'done') FROM rows($1) AS asked
		JOIN chunks k ON k.tenant IN (asked.of_tenant) AND k.campaign = asked.of_campaign AND k.no = asked.of_no AND k.state = 'ready'
		ORDER BY unindexed(k.tenant), k.campaign, k.no FOR UPDATE OF k`,
	turn: `SELECT turn FROM chunks WHERE tenant = $1 AND campaign = $2 AND no = $3`,
	take: `UPDATE chunks SET turn = $4 WHERE tenant = $1 AND campaign = $2 AND no = $3`,
	move: `UPDATE chunks SET turn = r.to_turn, begun = chunks.begun + r.begin, marked_at = r.at FROM rows($1) AS r
		WHERE chunks.tenant IN (r.of_tenant) AND chunks.campaign = r.of_campaign AND chunks.no = r.of_no AND chunks.turn = r.of_turn AND chunks.state = 'ready'`,
	// The range of campaigns makes the statement use an index, whatever the plan does with the set. The range has few
	// other rows, because rows of finished chunks are deleted.
	end: `DELETE FROM chunks WHERE tenant IN (SELECT value FROM texts($2)) AND campaign BETWEEN $3 AND $4 AND state = 'ready'
		AND (tenant, campaign, no, turn) IN (SELECT r.of_tenant, r.of_campaign, r.of_no, r.of_turn FROM rows($1) AS r)`,
}

// A small campaign is one chunk, whose recipients are all claimed at once. It is finished when each recipient has a
// final message. Its row stays, and the last step replaces the turn, too. The turn is the only guard, because a
// finished small campaign has no other owner. A guard with left_over would mislead PostgreSQL in a young table: it
// expects few such rows and compares each with the whole set.
var campaignsRow = &turnRow{
	read: `SELECT c.turn, CASE WHEN c.turn = 0 THEN 0 ELSE c.recipients END, c.marked_at, c.numbers, c.created_at, '' FROM campaigns c
		WHERE c.tenant = $1 AND c.id = $2 AND $3 >= 0 AND ` + waitingOfSmall + ` > 0`,
	locked: `SELECT c.tenant, c.id, 0, c.turn, CASE WHEN ` + waitingOfSmall + ` > 0 THEN c.status ELSE 'done' END FROM rows($1) AS asked
		JOIN campaigns c ON c.tenant IN (asked.of_tenant) AND c.id = asked.of_campaign ORDER BY unindexed(c.tenant), c.id FOR UPDATE OF c`,
	turn: `SELECT turn FROM campaigns WHERE tenant = $1 AND id = $2 AND $3 >= 0`,
	take: `UPDATE campaigns SET turn = $4 WHERE tenant = $1 AND id = $2 AND $3 >= 0`,
	move: `UPDATE campaigns SET turn = r.to_turn, marked_at = r.at, refunded = campaigns.refunded + r.back
		FROM rows($1) AS r WHERE campaigns.tenant IN (r.of_tenant) AND campaigns.id = r.of_campaign AND campaigns.turn = r.of_turn`,
}

// turnRows has the order in which transactions lock and change rows with turns, so that they cannot deadlock.
var turnRows = []*turnRow{chunksRow, campaignsRow}

// row returns the row that has the chunk's turn.
func (k chunk) row() *turnRow {
	if k.Small {
		return campaignsRow
	}
	return chunksRow
}

// goes reports whether the row is deleted when the chunk ends.
func (r *turnRow) goes() bool { return r.end != "" }

// chunkKey identifies a chunk.
type chunkKey struct {
	tenant, campaign string
	no               int64
}

func (k chunk) key() chunkKey { return chunkKey{k.Tenant, k.Campaign, k.No} }

// chunkTurn is a change of a chunk's turn, together with the step's claims and refunds.
type chunkTurn struct {
	chunkKey
	was, turn int64
	begin     int64 // number of recipients that the step claims
	claimedAt time.Time
	back      int64 // number of refunded messages; a large campaign counts them in the campaign's row
}

var chunkTurnColumns = []db.Column[chunkTurn]{
	{Name: "of_tenant", Text: func(c chunkTurn) string { return c.tenant }},
	{Name: "of_campaign", Text: func(c chunkTurn) string { return c.campaign }},
	{Name: "of_no", Int: func(c chunkTurn) int64 { return c.no }},
	{Name: "of_turn", Int: func(c chunkTurn) int64 { return c.was }},
	{Name: "to_turn", Int: func(c chunkTurn) int64 { return c.turn }},
	{Name: "begin", Int: func(c chunkTurn) int64 { return c.begin }},
	{Name: "at", Time: func(c chunkTurn) time.Time { return c.claimedAt }},
	{Name: "back", Int: func(c chunkTurn) int64 { return c.back }},
}

// lockedTurn is the state of a locked chunk.
type lockedTurn struct {
	turn    int64
	stopped bool // an operator has stopped the campaign
}

// lock returns the query that locks chunks and adds the unfinished ones to locked.
func (r *turnRow) lock(keys []chunkKey, locked map[chunkKey]lockedTurn) db.Query {
	asked := make([]chunkTurn, len(keys))
	for i, k := range keys {
		asked[i].chunkKey = k
	}
	return db.Query{SQL: r.locked, Args: []any{db.RowsOf(chunkTurnColumns, asked)}, Each: func(row *db.Row) error {
		var k chunkKey
		var at lockedTurn
		var status CampaignStatus
		err := row.Scan(&k.tenant, &k.campaign, &k.no, &at.turn, &status)
		if at.stopped = status == CampaignStopped; status != CampaignDone {
			locked[k] = at
		}
		return err
	}}
}

// moveAll defers the replacement of turns and the deletion of finished chunks. Each row must still have the step's
// turn.
func (r *turnRow) moveAll(tx *db.Tx, moved, ended []chunkTurn) {
	if !r.goes() {
		moved, ended = append(moved, ended...), nil
	}
	slices.SortFunc(moved, func(a, b chunkTurn) int { return strings.Compare(a.campaign, b.campaign) })
	if len(moved) > 0 {
		tx.Defer(r.move, int64(len(moved)), db.RowsOf(chunkTurnColumns, moved))
	}
	if len(ended) > 0 {
		tenants, campaigns := make([]string, len(ended)), make([]string, len(ended))
		for i, c := range ended {
			tenants[i], campaigns[i] = c.tenant, c.campaign
		}
		tx.Defer(r.end, int64(len(ended)), db.RowsOf(chunkTurnColumns, ended), tenants, slices.Min(campaigns), slices.Max(campaigns))
	}
}

// chunkJob is the job of one chunk, or of all chunks of a small batch. The job ends with its last chunk.
type chunkJob struct {
	id   string
	left int // unfinished chunks; only the group commit of steps changes it
}
