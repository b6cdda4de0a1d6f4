package delivery

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
)

// sweptTables are the tables that the sweep empties. insert adds rows with the keys $1 and the time $2.
var sweptTables = []struct {
	table, sweep, insert string
	keep                 time.Duration
}{
	{"chunks", sweepStaged, `INSERT INTO chunks (tenant, campaign, no, state, turn, begun, marked_at, size, recipients, created_at)
		SELECT 'a tenant', 'a campaign', CAST(value AS BIGINT), 'staged', 0, 0, 0, 1, '', $2 FROM texts($1)`, stagedFor},
	{"early_receipts", sweepEarly, `INSERT INTO early_receipts (upstream_id, id, recipient, state, code, received_at)
		SELECT 'an id', value, '233241000001', 'delivered', '000', $2 FROM texts($1)`, earlyAfter},
}

// The sweep removes rows in small transactions. One transaction for a day's rows would block SQLite's only writer,
// and therefore every payment.
func TestSweep_smallSets(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{sleep: true})
		next := 0
		insert := func(sql string, count int, at time.Time) {
			keys := make([]string, count)
			for i := range keys {
				next++
				keys[i] = fmt.Sprint(next)
			}
			h.Write(func(tx *db.Tx) error {
				_, err := tx.Exec(sql, keys, at)
				return err
			})
		}
		const fresh, old = 3, 2*sweepAtOnce + 1
		for _, s := range sweptTables {
			insert(s.insert, fresh, h.clock.Now())
			insert(s.insert, old, h.clock.Now().Add(-s.keep-time.Second))
			h.Write(func(tx *db.Tx) error {
				removed, err := tx.Exec(s.sweep, h.clock.Now().Add(-s.keep), sweepAtOnce)
				if removed != sweepAtOnce {
					t.Errorf("%s: one statement removes %d rows, expected %d", s.table, removed, sweepAtOnce)
				}
				return err
			})
		}
		if err := h.retention().sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, s := range sweptTables {
			left := 0
			if _, err := d.ReadOne(t.Context(), `SELECT COUNT(*) FROM `+s.table, nil, &left); err != nil {
				t.Fatal(err)
			}
			if left != fresh {
				t.Errorf("%s: %d rows are left, expected %d", s.table, left, fresh)
			}
		}
	})
}

// The sweep also deletes the texts of small campaigns, after the last recipient was served.
func TestSweep_textsOfSmallCampaigns(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		sent := h.mustSend("the text", "0241000001", "0241000002")
		h.operator.SetReady(problem.New(problem.Unavailable, "away", "The operator is away"))
		waiting := h.mustAccept(h.order("the other text", "0241000003"))
		h.clock.Advance(time.Hour)
		sweep := h.retention()
		sweep.texts = time.Minute
		if err := sweep.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is := h.campaign(sent); is.Message != "" || is.Status != CampaignDone {
			t.Errorf("the ended campaign: %q, %s", is.Message, is.Status)
		}
		if is := h.campaign(waiting); is.Message != "the other text" {
			t.Errorf("the waiting campaign: %q", is.Message)
		}
		h.sound()
	})
}

// The sweep removes the text of a campaign some time after the campaign has ended, and nothing else of it. A running
// campaign keeps its text.
func TestSweep_textsOfFinishedCampaigns(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{sleep: true})
		insert := func(id, status string, left int64, at time.Time) {
			h.Write(func(tx *db.Tx) error {
				_, err := tx.Exec(`INSERT INTO campaigns (tenant, id, mode, kind, sender_id, sender, message, encoding, segments, credits, recipients, invalid, excluded, status,
					access_key, idempotency_key, idempotency_hash, created_at, numbers, turn, marked_at, left_over, refunded)
					VALUES ('a tenant', $1, 'live', 'campaign', '', 'ADOM', 'the text', 'GSM-7', 1, 1, 1, 0, 0, $2, '', '', '', $3, '', 0, 0, $4, 0)`, id, status, at, left)
				return err
			})
		}
		now, keep := h.clock.Now(), 48*time.Hour
		insert("old", "done", 0, now.Add(-keep-time.Second))
		insert("stopped", "stopped", 0, now.Add(-keep-time.Second))
		insert("new", "done", 0, now.Add(-keep+time.Second))
		insert("active", "active", 1, now.Add(-keep-time.Second))
		insert("ending", "stopped", 1, now.Add(-keep-time.Second))
		texts := func() (list map[string]string) {
			list = map[string]string{}
			if err := d.Read(t.Context(), func(tx *db.Tx) error {
				return tx.Query(`SELECT id, message FROM campaigns WHERE tenant = 'a tenant'`, nil, func(r *db.Row) error {
					var id, text string
					err := r.Scan(&id, &text)
					list[id] = text
					return err
				})
			}); err != nil {
				t.Fatal(err)
			}
			return list
		}
		sweep := h.retention()
		if err := sweep.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := texts(); got["old"] != "the text" {
			t.Errorf("without a setting texts stay: %v", got)
		}
		sweep.texts = keep
		if err := sweep.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"old": "", "stopped": "", "new": "the text", "active": "the text", "ending": "the text"}
		if got := texts(); !maps.Equal(got, want) {
			t.Errorf("texts are %v, want %v", got, want)
		}
	})
}
