package messaging

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/db"
)

// One owner at a time delivers a chunk. The chunk's turn is a random number that each step of the delivery replaces: a
// step counts only while the turn is the one that its owner left. A later owner takes the chunk by replacing the turn,
// and every step of the owner before is refused.

// newTurn makes a turn that no other step has.
func newTurn() int64 { return rand.Int64N(1<<62) + 1 } //nolint:gosec // not a secret

// turnRow is the row in which the turn of a chunk stands: the chunk's own, or, of a small campaign, the campaign's. It
// says how that row is read, locked, taken and moved on.
type turnRow struct {
	read   string // turn, recipients begun, when they were marked, recipients, when accepted; of one that is not over
	locked string // locks those of a set: key, turn, the campaign's status, done where the chunk is over
	turn   string // turn of one
	take   string // replaces the turn of one
	move   string // moves the turns of a set on
	end    string // ends those of a set; empty: the last step moves the turn, too
}

// The rows are locked, so that the turn that is read is still the last one at the end of the transaction.
var chunksRow = &turnRow{
	read: `SELECT turn, begun, marked_at, recipients, created_at FROM chunks WHERE tenant = $1 AND campaign = $2 AND no = $3 AND state = 'ready'`,
	locked: `SELECT k.tenant, k.campaign, k.no, k.turn,
		COALESCE((SELECT c.status FROM campaigns c WHERE c.tenant = k.tenant AND c.id = k.campaign), 'done') FROM rows($1) AS asked
		JOIN chunks k ON k.tenant IN (asked.of_tenant) AND k.campaign = asked.of_campaign AND k.no = asked.of_no AND k.state = 'ready'
		ORDER BY k.tenant || '', k.campaign, k.no FOR UPDATE OF k`,
	turn: `SELECT turn FROM chunks WHERE tenant = $1 AND campaign = $2 AND no = $3`,
	take: `UPDATE chunks SET turn = $4 WHERE tenant = $1 AND campaign = $2 AND no = $3`,
	move: `UPDATE chunks SET turn = r.to_turn, begun = chunks.begun + r.begin, marked_at = r.at FROM rows($1) AS r
		WHERE chunks.tenant IN (r.of_tenant) AND chunks.campaign = r.of_campaign AND chunks.no = r.of_no AND chunks.turn = r.of_turn AND chunks.state = 'ready'`,
	// The range is what an index finds, whatever the plan makes of the set. Chunks that are over have no row, so
	// that it holds few others.
	end: `DELETE FROM chunks WHERE tenant IN (SELECT value FROM texts($2)) AND campaign BETWEEN $3 AND $4 AND state = 'ready'
		AND (tenant, campaign, no, turn) IN (SELECT r.of_tenant, r.of_campaign, r.of_no, r.of_turn FROM rows($1) AS r)`,
}

// A small campaign is one chunk, all of which is marked at once. It is over when each recipient has a message that has
// an end, and its turn moves with the last step, too. The turn alone guards that, a small campaign has no other owner
// after its end: asked for left_over as well, PostgreSQL believes in a young table that few rows are so, and holds each
// of them against the whole set.
var campaignsRow = &turnRow{
	read: `SELECT c.turn, CASE WHEN c.turn = 0 THEN 0 ELSE c.recipients END, c.marked_at, c.numbers, c.created_at FROM campaigns c
		WHERE c.tenant = $1 AND c.id = $2 AND $3 >= 0 AND ` + waitingOfSmall + ` > 0`,
	locked: `SELECT c.tenant, c.id, 0, c.turn, CASE WHEN ` + waitingOfSmall + ` > 0 THEN c.status ELSE 'done' END FROM rows($1) AS asked
		JOIN campaigns c ON c.tenant IN (asked.of_tenant) AND c.id = asked.of_campaign ORDER BY c.tenant || '', c.id FOR UPDATE OF c`,
	turn: `SELECT turn FROM campaigns WHERE tenant = $1 AND id = $2 AND $3 >= 0`,
	take: `UPDATE campaigns SET turn = $4 WHERE tenant = $1 AND id = $2 AND $3 >= 0`,
	move: `UPDATE campaigns SET turn = r.to_turn, marked_at = r.at, refunded = campaigns.refunded + r.back
		FROM rows($1) AS r WHERE campaigns.tenant IN (r.of_tenant) AND campaigns.id = r.of_campaign AND campaigns.turn = r.of_turn`,
}

// turnRows are in the order in which their rows are locked and changed, so that no two transactions wait for each other.
var turnRows = []*turnRow{chunksRow, campaignsRow}

// row is where the chunk's turn stands.
func (k chunk) row() *turnRow {
	if k.Small {
		return campaignsRow
	}
	return chunksRow
}

// goes says that the row goes with the chunk's end.
func (r *turnRow) goes() bool { return r.end != "" }

// chunkKey finds a chunk.
type chunkKey struct {
	tenant, campaign string
	no               int64
}

func (k chunk) key() chunkKey { return chunkKey{k.Tenant, k.Campaign, k.No} }

// chunkTurn is a chunk with its last turn and the next one, and what is marked with it.
type chunkTurn struct {
	chunkKey
	was, turn int64
	begin     int64 // more recipients than before
	markedAt  time.Time
	back      int64 // messages whose credits go back; a large campaign counts them for all of its chunks
}

var chunkTurnColumns = []db.Column[chunkTurn]{
	{Name: "of_tenant", Text: func(c chunkTurn) string { return c.tenant }},
	{Name: "of_campaign", Text: func(c chunkTurn) string { return c.campaign }},
	{Name: "of_no", Int: func(c chunkTurn) int64 { return c.no }},
	{Name: "of_turn", Int: func(c chunkTurn) int64 { return c.was }},
	{Name: "to_turn", Int: func(c chunkTurn) int64 { return c.turn }},
	{Name: "begin", Int: func(c chunkTurn) int64 { return c.begin }},
	{Name: "at", Time: func(c chunkTurn) time.Time { return c.markedAt }},
	{Name: "back", Int: func(c chunkTurn) int64 { return c.back }},
}

// lockedTurn is what a transaction has read of a chunk that it locked.
type lockedTurn struct {
	turn    int64
	stopped bool // an operator stopped the campaign
}

// lock locks chunks, and reads those that are not over into locked.
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

// moveAll defers the turns of steps, the last ones of their chunks apart. Each row must still have the turn before.
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

// chunkJob is the job under which chunks are delivered: one, or, in a volley, several. It ends with the last of them.
type chunkJob struct {
	id   string
	left int // chunks that are not over; only the lane of the steps changes it
}
