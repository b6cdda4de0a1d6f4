package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// fixture is an audit log with linked entries.
type fixture struct {
	*Log
	t     *testing.T
	db    *db.DB
	clock *clock.Clock
}

func each(t *testing.T, entries int, fn func(f *fixture)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		f := &fixture{Log: New(d, c).Keyed(ring(t, 1)), t: t, db: d, clock: c}
		f.write(entries)
		f.link(entries)
		fn(f)
	})
}

func (f *fixture) write(entries int) {
	f.t.Helper()
	write(f.t, f.db, func(tx *db.Tx) error {
		for n := range entries {
			e := Entry{Actor: "ama@example.com", Person: "p1", Origin: "10.0.0.1", Action: "tenant.set", Tenant: fmt.Sprint("t", n%3), Subject: fmt.Sprint(n),
				Reason: "asked", Details: map[string]any{"changes": []Change{{What: "limit", Before: "GHS 1.00", After: "GHS 2.00"}}}}
			if err := f.Write(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *fixture) link(want int) {
	f.t.Helper()
	if n, err := f.Link(f.t.Context()); err != nil || n != want {
		f.t.Fatalf("%d entries linked, %v; want %d", n, err, want)
	}
}

func (f *fixture) verify(kept Head) Verified {
	f.t.Helper()
	v, err := f.Verify(f.t.Context(), kept)
	if err != nil {
		f.t.Fatal(err)
	}
	return v
}

// alter changes the database, as somebody with access to it can.
func (f *fixture) alter(sql string, args ...any) {
	f.t.Helper()
	write(f.t, f.db, func(tx *db.Tx) error {
		n, err := tx.Exec(sql, args...)
		if err == nil && n == 0 {
			err = errors.New("nothing was altered: " + sql)
		}
		return err
	})
}

func TestVerify_linkedEntries(t *testing.T) {
	each(t, 7, func(f *fixture) {
		f.clock.Advance(lateAfter + 1)
		f.write(3)
		if at, err := f.UnlinkedSince(f.t.Context()); err != nil || !at.Equal(f.clock.Now()) {
			f.t.Fatal(at, err)
		}
		v := f.verify(Head{})
		if !v.OK() || v.Links != 7 || v.Unlinked != 3 || v.Late != 0 || v.Head.Number != 7 {
			f.t.Fatalf("%+v", v)
		}
		f.link(3)
		f.link(0)
		if at, err := f.UnlinkedSince(f.t.Context()); err != nil || !at.IsZero() {
			f.t.Fatal(at, err)
		}
		if after := f.verify(v.Head); !after.OK() || after.Links != 10 || after.Unlinked != 0 || after.Head == v.Head {
			f.t.Fatalf("%+v", after)
		}
		list, err := f.List(f.t.Context(), Filter{Limit: 1})
		if err != nil || list[0].Link == 0 || list[0].Person != "p1" || list[0].Origin != "10.0.0.1" || list[0].Changes()[0].After != "GHS 2.00" {
			f.t.Fatalf("%+v, %v", list, err)
		}
	})
}

// The hash covers every column of an entry and of a link.
func TestVerify_findsEveryAlteration(t *testing.T) {
	const third = ` WHERE id = (SELECT entry FROM audit_chain WHERE number = 3)`
	for what, c := range map[string]struct {
		sql    []string
		faults int64
		says   string
	}{
		"time":                  {[]string{"UPDATE audit_log SET at = at + 1" + third}, 1, "changed"},
		"actor":                 {[]string{"UPDATE audit_log SET actor = 'kofi'" + third}, 1, "changed"},
		"person":                {[]string{"UPDATE audit_log SET person = 'p2'" + third}, 1, "changed"},
		"origin":                {[]string{"UPDATE audit_log SET origin = ''" + third}, 1, "changed"},
		"action":                {[]string{"UPDATE audit_log SET action = 'tenant.see'" + third}, 1, "changed"},
		"subject":               {[]string{"UPDATE audit_log SET subject = 'x'" + third}, 1, "changed"},
		"reason":                {[]string{"UPDATE audit_log SET reason = 'askeD'" + third}, 1, "changed"},
		"details":               {[]string{"UPDATE audit_log SET details = '{}'" + third}, 1, "changed"},
		"moved between members": {[]string{"UPDATE audit_log SET subject = subject || 'a', reason = 'sked'" + third}, 1, "changed"},
		"id":                    {[]string{"UPDATE audit_log SET id = 'x'" + third}, 2, "removed"},
		"tenant":                {[]string{"UPDATE audit_log SET tenant = 'x'" + third}, 2, "removed"},
		"tenant on both sides":  {[]string{"UPDATE audit_log SET tenant = 'x'" + third, "UPDATE audit_chain SET tenant = 'x' WHERE number = 3"}, 1, "changed"},
		"entry removed":         {[]string{"DELETE FROM audit_log" + third}, 1, "removed"},
		"link removed":          {[]string{"DELETE FROM audit_chain WHERE number = 3"}, 3, "missing"},
		"both removed":          {[]string{"DELETE FROM audit_log" + third, "DELETE FROM audit_chain WHERE number = 3"}, 2, "missing"},
		"both removed, the rest moved up": {[]string{"DELETE FROM audit_log" + third, "DELETE FROM audit_chain WHERE number = 3",
			"UPDATE audit_chain SET number = number + 1000 WHERE number > 3", "UPDATE audit_chain SET number = number - 1001 WHERE number > 1000"}, 4, "changed"},
		"time of the link": {[]string{"UPDATE audit_chain SET linked_at = linked_at - 1 WHERE number = 3"}, 1, "changed"},
		"hash":             {[]string{"UPDATE audit_chain SET hash = '" + strings.Repeat("0", 64) + "' WHERE number = 3"}, 2, "changed"},
		"two exchanged": {[]string{"UPDATE audit_chain SET number = 1000 WHERE number = 3", "UPDATE audit_chain SET number = 3 WHERE number = 4",
			"UPDATE audit_chain SET number = 4 WHERE number = 1000"}, 3, "changed"},
		"the first removed":     {[]string{"DELETE FROM audit_chain WHERE number = 1"}, 3, "missing"},
		"put in as linked":      {[]string{"INSERT INTO audit_log (tenant, id, at, actor, action, subject, reason, details, linked) VALUES ('', 'x', 5, 'a', 'b', '', '', '{}', 1)"}, 1, "does not contain it"},
		"said to be not linked": {[]string{"UPDATE audit_log SET linked = 0" + third}, 1, "not linked"},
		"put in with a link": {[]string{"INSERT INTO audit_log (tenant, id, at, actor, action, subject, reason, details, linked) VALUES ('', 'x', 5, 'a', 'b', '', '', '{}', 1)",
			"INSERT INTO audit_chain (number, tenant, entry, linked_at, hash) VALUES (8, '', 'x', 5, '" + strings.Repeat("0", 64) + "')"}, 1, "changed"},
	} {
		t.Run(what, func(t *testing.T) {
			each(t, 7, func(f *fixture) {
				for _, sql := range c.sql {
					f.alter(sql)
				}
				v := f.verify(Head{})
				if v.FaultCount != c.faults || len(v.Faults) == 0 || !strings.Contains(v.Faults[0].What, c.says) {
					f.t.Errorf("%+v", v)
				}
				if n, err := f.Link(f.t.Context()); err != nil {
					f.t.Errorf("what was altered keeps new entries from the chain: %d, %v", n, err)
				}
			})
		})
	}
}

func TestVerify_storedHeadFindsTruncation(t *testing.T) {
	each(t, 7, func(f *fixture) {
		kept := f.verify(Head{}).Head
		f.alter("DELETE FROM audit_log WHERE id = (SELECT entry FROM audit_chain WHERE number = 7)")
		f.alter("DELETE FROM audit_chain WHERE number = 7")
		if v := f.verify(Head{}); !v.OK() {
			f.t.Fatalf("without the head nothing shows it: %+v", v)
		}
		if v := f.verify(kept); v.FaultCount != 1 || !strings.Contains(v.Faults[0].What, "ends at 6") {
			f.t.Fatalf("%+v", v)
		}
		f.alter("DELETE FROM audit_chain")
		f.alter("UPDATE audit_log SET linked = 0, actor = 'kofi'")
		f.clock.Advance(1000)
		f.link(6)
		f.write(4)
		f.link(4)
		if v := f.verify(Head{}); !v.OK() {
			f.t.Fatalf("%+v", v)
		}
		if v := f.verify(kept); v.FaultCount != 1 || !strings.Contains(v.Faults[0].What, "replaced") {
			f.t.Fatalf("%+v", v)
		}
	})
}

// An entry whose time is earlier than when it was written is linked at the end of the chain, and counted.
func TestLink_earlierTimeIsCounted(t *testing.T) {
	each(t, 2, func(f *fixture) {
		f.alter("INSERT INTO audit_log (tenant, id, at, actor, action, subject, reason, details) VALUES ('', '0', $1, 'a', 'b', '', '', '{}')", start.Add(-lateAfter-1000))
		f.link(1)
		if v := f.verify(Head{}); !v.OK() || v.Late != 1 || v.Links != 3 {
			f.t.Fatalf("%+v", v)
		}
	})
}

// The previous release writes neither person nor origin. Its entries have waited long for their links.
func TestLink_entriesOfEarlierRelease(t *testing.T) {
	each(t, 0, func(f *fixture) {
		write(f.t, f.db, func(tx *db.Tx) error {
			for n := range 2*linkAtOnce + 3 {
				tx.Defer("INSERT INTO audit_log (tenant, id, at, actor, action, subject, reason, details) VALUES ('t', $1, 5, 'cli:ama', 'b', '', '', '{\"before\": 1}')", 1, fmt.Sprintf("%06d", n))
			}
			return nil
		})
		f.link(2*linkAtOnce + 3)
		if v := f.verify(Head{}); !v.OK() || v.Links != 2*linkAtOnce+3 || v.Late != v.Links {
			f.t.Fatalf("%+v", v)
		}
		var last Linked
		n := 0
		err := f.Export(f.t.Context(), func(l Linked) error {
			if n++; l.Link != int64(n) || l.Hash == "" || l.LinkedAt.IsZero() {
				f.t.Fatalf("line %d is %+v", n, l)
			}
			last = l
			return nil
		})
		if err != nil || n != 2*linkAtOnce+3 || last.ID != fmt.Sprintf("%06d", n-1) {
			f.t.Fatalf("%d lines, the last %+v, %v", n, last, err)
		}
	})
}

func TestLink_concurrentNodesMakeOneChain(t *testing.T) {
	each(t, 1, func(f *fixture) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				other := New(f.db, f.clock)
				for range 20 {
					err := f.db.Write(context.WithoutCancel(f.t.Context()), func(tx *db.Tx) error { return other.Write(tx, Entry{Actor: "a", Action: "b"}) })
					if err != nil {
						f.t.Error(err)
					}
					if _, err := other.Link(context.WithoutCancel(f.t.Context())); err != nil && !errors.Is(err, db.ErrUnique) && !errors.Is(err, db.ErrGuard) {
						f.t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if _, err := f.Link(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		if v := f.verify(Head{}); !v.OK() || v.Links != 81 || v.Unlinked != 0 {
			f.t.Fatalf("%+v", v)
		}
	})
}

func TestKeep_linksAndLogsTheHead(t *testing.T) {
	each(t, 2, func(f *fixture) {
		head := f.verify(Head{}).Head
		ctx, stop := context.WithCancel(f.t.Context())
		var text strings.Builder
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Keep(ctx, slog.New(slog.NewTextHandler(&text, nil)), noneOlder)
		}()
		f.write(3)
		clocktest.Await(f.t, "the entries are linked", func() bool { return f.verify(Head{}).Links == 6 })
		f.write(1)
		clocktest.Await(f.t, "the next one is linked", func() bool { return f.verify(Head{}).Links == 7 })
		stop()
		<-done
		if !strings.Contains(text.String(), "hash="+head.Hash) && !strings.Contains(text.String(), "keyed=true") || strings.Contains(text.String(), "ERROR") {
			f.t.Fatal(text.String())
		}
	})
}

// A verification from a head finds later changes, but no changes before the head. It reads no link before the head.
func TestVerifySince_findsLaterFaults(t *testing.T) {
	each(t, 4, func(f *fixture) {
		since := f.verify(Head{}).Head
		f.write(3)
		f.link(3)
		after := func(head Head) Verified {
			t.Helper()
			v, err := f.VerifySince(t.Context(), head, since)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		whole := f.verify(since)
		if v := after(since); !v.OK() || v.Head != whole.Head || v.Links != 3 {
			t.Errorf("as linked: %+v", v)
		}
		entry := `(SELECT entry FROM audit_chain WHERE number = $1)`
		for name, c := range map[string]struct {
			breaks, mends string
			number        int64
			later         bool
		}{
			"an old entry":      {`UPDATE audit_log SET actor = 'esi' WHERE id = ` + entry, `UPDATE audit_log SET actor = 'ama@example.com' WHERE id = ` + entry, since.Number - 1, false},
			"a new entry":       {`UPDATE audit_log SET actor = 'esi' WHERE id = ` + entry, `UPDATE audit_log SET actor = 'ama@example.com' WHERE id = ` + entry, since.Number + 2, true},
			"the verified link": {`UPDATE audit_chain SET hash = substr(hash, 64) || substr(hash, 1, 63) WHERE number = $1`, `UPDATE audit_chain SET hash = substr(hash, 2) || substr(hash, 1, 1) WHERE number = $1`, since.Number, true},
			"a new link":        {`UPDATE audit_chain SET number = number + 1000 WHERE number = $1`, `UPDATE audit_chain SET number = number - 1000 WHERE number = $1 + 1000`, since.Number + 1, true},
		} {
			f.alter(c.breaks, c.number)
			if f.verify(since).OK() {
				t.Errorf("%s: not found by a whole verification", name)
			}
			if v := after(since); v.OK() == c.later {
				t.Errorf("%s: %+v", name, v)
			}
			f.alter(c.mends, c.number)
			if !f.verify(since).OK() {
				t.Fatalf("%s: not mended", name)
			}
		}
	})
}
