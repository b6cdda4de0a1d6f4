package delivery

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
)

// Within a minute the report distinguishes receipts with ids in another number base from receipts of another program.
func TestUnmatchedReceipts_inAnotherBase(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 100})
		for _, c := range []struct{ answer, receipt, to, state, base string }{
			{"1f4", "500", "233241000001", ReceiptsOtherBase, "decimal"},
			{"000001f4", "500", "233241000001", ReceiptsOtherBase, "decimal"},
			{"500", "1f4", "233241000001", ReceiptsOtherBase, "hexadecimal"},
			{"1280", "500", "233241000001", ReceiptsOtherBase, "hexadecimal"}, // an id that has only digits may be hexadecimal
			{"1f4", "501", "233241000001", ReceiptsUnmatched, ""},
			{"1f4", "500", "233241000002", ReceiptsUnmatched, ""}, // the receipt names another number
			{"1f4", "500", "", ReceiptsUnmatched, ""},
			{"mc-1", "mc-2", "233241000001", ReceiptsUnmatched, ""},
		} {
			for _, text := range []string{"hello", strings.Repeat("a", 161)} {
				h.Write(func(tx *db.Tx) (err error) {
					for _, sql := range []string{"DELETE FROM early_receipts", "DELETE FROM parts", "UPDATE messages SET upstream_id = ''"} {
						_, err = tx.Exec(sql)
					}
					return err
				})
				h.operator.Script(func(_ int, s provider.Segment) provider.Outcome {
					if s.Part > 1 {
						return h.operator.Accept()
					}
					return provider.Outcome{Class: provider.Accepted, UpstreamID: c.answer}
				})
				h.mustSend(text, "0241000001")
				at := h.clock.Now()
				h.receipt(c.receipt, c.to, delivered)
				h.clock.Advance(time.Minute)
				u, err := h.UnmatchedReceipts(t.Context())
				if err != nil || u.State() != c.state || u.Base != c.base || u.Receipts != 1 || !u.Since.Equal(at) {
					t.Fatalf("%s answered, %s reported: %+v, %v", c.answer, c.receipt, u, err)
				}
				if why := u.Why(); !strings.Contains(why, "1 receipts since "+at.Format(time.RFC3339)+" match no message") || c.base != "" && !strings.Contains(why, c.receipt+", read as "+c.base+", is "+c.answer) {
					t.Errorf("%s", why)
				}
			}
		}
	})
}

// Unmatched receipts are logged at once, and then every ten minutes.
func TestUnmatchedReceipts_areLogged(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10, sleep: true})
		var lines strings.Builder
		h.receipts.log = slog.New(slog.NewTextHandler(&lines, nil))
		h.receipt("1a2b", "233241000002", delivered)
		logged := func(after time.Duration, want int) {
			t.Helper()
			h.clock.Advance(after)
			if err := h.receipts.logUnmatched(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(lines.String(), "unmatched delivery receipts"); n != want {
				t.Errorf("%d lines, expected %d", n, want)
			}
		}
		logged(0, 0)
		logged(time.Minute, 1)
		logged(time.Minute, 1)
		logged(unmatchedLogged, 2)
	})
}

// If an operator writes the ids of its receipts in another base, no receipt matches.
func TestUnmatchedReceipts_counted(t *testing.T) {
	each(t, func(t *testing.T, d *db.DB) {
		h := open(t, d, options{credits: 10})
		h.mustSend("hello", "0241000001", "0241000002")
		begun := h.clock.Now()
		h.receipt("id-000001", "233241000001", delivered)
		h.receipt("1a2b", "233241000002", delivered)
		strays := func(want int64) UnmatchedReceipts {
			t.Helper()
			s, err := h.UnmatchedReceipts(t.Context())
			if err != nil || s.Receipts != want {
				t.Fatalf("%+v, %v; expected %d", s, err, want)
			}
			return s
		}
		strays(0) // their message may still come
		h.Pass(unmatchedAfter + time.Second)
		if s := strays(1); s.ID != "1a2b" || s.Since.Before(begun) {
			t.Errorf("%+v", s)
		}
		h.Pass(earlyAfter + sweepEvery)
		strays(0)
	})
}
