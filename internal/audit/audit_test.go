package audit

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/dbtest"
)

var start = time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)

// write runs fn in one transaction and fails the test if that returns an error.
func write(t *testing.T, d *db.DB, fn func(tx *db.Tx) error) {
	t.Helper()
	if err := d.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func TestList_filters(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		a := New(d, c)
		for i, e := range []Entry{
			{Actor: "cli:ama", Action: "tenant.set", Tenant: "t1", Subject: "t1", Reason: "asked", Details: map[string]int{"x": 1}},
			{Actor: "cli:kofi", Action: "key.revoke", Tenant: "t1", Subject: "k"},
			{Actor: "cli:ama", Action: "provider.pause", Subject: "mtn"},
		} {
			c.Advance(time.Duration(i) * time.Second)
			write(t, d, func(tx *db.Tx) error { return a.Write(tx, e) })
		}
		all, err := a.List(t.Context(), Filter{})
		if err != nil || len(all) != 3 || all[0].Subject != "mtn" || all[2].Subject != "t1" {
			t.Fatalf("%+v, %v", all, err)
		}
		first := all[2]
		if !first.At.Equal(start) || first.Reason != "asked" || string(first.Details.(json.RawMessage)) != `{"x":1}` {
			t.Fatalf("%+v", first)
		}
		for _, c := range []struct {
			filter Filter
			want   int
		}{
			{Filter{Tenant: "t1"}, 2}, {Filter{Actor: "cli:ama"}, 2}, {Filter{Action: "key.revoke"}, 1},
			{Filter{Tenant: "t1", Actor: "cli:ama"}, 1}, {Filter{Limit: 1}, 1},
			{Filter{Words: "ASKED tenant"}, 1}, {Filter{Words: "ama mtn"}, 1}, {Filter{Words: "ama revoke"}, 0}, {Filter{Words: "t_nant"}, 0}, {Filter{Words: "%"}, 0}, {Filter{Words: `"x":1`}, 1},
			{Filter{From: start.Add(time.Second)}, 2}, {Filter{To: start.Add(time.Second)}, 1}, {Filter{From: start.Add(time.Second), To: start.Add(2 * time.Second), Words: "kofi"}, 1},
			{Filter{Before: all[0].ID}, 2}, {Filter{Before: all[2].ID}, 0}, {Filter{Tenant: "t2"}, 0},
		} {
			if got, err := a.List(t.Context(), c.filter); err != nil || len(got) != c.want {
				t.Errorf("%+v gave %d entries (%v), want %d", c.filter, len(got), err, c.want)
			}
		}
	})
}

func TestRecord_inTheSameTransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := New(d, clock.NewManual(start))
		failed := errors.New("the act failed")
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			return errors.Join(a.Write(tx, Entry{Actor: "x", Action: "y"}), failed)
		})
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
		if all, err := a.List(t.Context(), Filter{}); err != nil || len(all) != 0 {
			t.Fatalf("an act that failed is in the log: %v, %v", all, err)
		}
		for _, e := range []Entry{{Action: "y"}, {Actor: "x"}} {
			if err := d.Write(t.Context(), func(tx *db.Tx) error { return a.Write(tx, e) }); err == nil {
				t.Errorf("%+v was taken", e)
			}
		}
	})
}

func TestRecord_oncePerPeriod(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(start)
		here, there := New(d, c), New(d, c)
		record := func(l *Log, key, tenant string) {
			t.Helper()
			if err := l.RecordOnce(t.Context(), key, time.Hour, Entry{Actor: "a", Action: "tenant.view", Tenant: tenant}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			record(here, "one", "t1")
			record(there, "one", "t1")
			record(there, "two", "t1")
		}
		c.Advance(time.Hour)
		record(here, "one", "t1")
		if err := here.Record(t.Context(), Entry{Actor: "a", Action: "payments.export"}); err != nil {
			t.Fatal(err)
		}
		list, err := here.List(t.Context(), Filter{})
		if err != nil || len(list) != 4 || list[0].Action != "payments.export" || !list[1].At.Equal(start.Add(time.Hour)) || list[1].ID <= list[2].ID {
			t.Fatalf("%+v, %v", list, err)
		}
	})
}
