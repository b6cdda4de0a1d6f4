package identity

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// A person may use a limited number of different subjects an hour, also concurrently. Each subject causes one audit
// entry an hour. Every person has a separate limit.
func TestUse_limitsEachPerson(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		c := clock.NewManual(time.Now())
		log := audit.New(d, c)
		i := New(d, c, log, Options{Development: true})
		l := Limit{What: "test", Most: 5, Of: "things"}
		use := func(person, key string) error {
			return i.Use(context.WithoutCancel(t.Context()), l, person, key, audit.Entry{Actor: person, Action: "test", Subject: key})
		}
		for _, id := range []string{"p1", "p2"} {
			if _, err := d.Exec(t.Context(), `INSERT INTO people (id, email, name, created_at, disabled_at, password) VALUES ($1, $1 || '@example.com', $1, 1, 0, '')`, id); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		refused := make(chan error, 20)
		for n := range 20 {
			all.Go(func() {
				if err := use("p1", fmt.Sprint(n%10)); err != nil {
					refused <- err
				}
			})
		}
		all.Wait()
		close(refused)
		for err := range refused {
			if !problem.Is(err, problem.RateLimited) || !strings.Contains(err.Error(), "5 things an hour") {
				t.Fatal(err)
			}
		}
		entries := func() int {
			t.Helper()
			list, err := log.List(t.Context(), audit.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		if n := entries(); n != 5 {
			t.Fatalf("%d different things were let through", n)
		}
		if err := use("p2", "0"); err != nil {
			t.Fatal(err)
		}
		c.Advance(limitedFor)
		if err := use("p1", "another"); err != nil || entries() != 7 {
			t.Fatal(err, entries())
		}
		if err := i.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// Repeated uses cause one audit entry, with their number, after the hour. If a limit counts each use, it also applies
// to repeated uses.
func TestUse_countsRepetitions(t *testing.T) {
	each(t, nil, func(f *fixture) {
		files := Limit{What: "files", Most: 20, Each: true, Of: "files"}
		taken, refused := 0, 0
		for range 60 {
			err := f.Use(t.Context(), files, f.person.ID, "all payouts", audit.Entry{Actor: f.person.Email, Person: f.person.ID, Action: "test.export", Tenant: "t1", Subject: "payouts"})
			if err == nil {
				taken++
			} else if problem.Is(err, problem.RateLimited) {
				refused++
			}
		}
		if taken != 20 || refused != 40 {
			t.Errorf("%d taken, %d refused", taken, refused)
		}
		entries := func(want int) []audit.Entry {
			t.Helper()
			list, err := f.audit.List(t.Context(), audit.Filter{Action: "test.export"})
			if err != nil || len(list) != want {
				t.Fatalf("%+v, %v", list, err)
			}
			return list
		}
		entries(1)
		f.clock.Advance(limitedFor)
		for range 2 { // the second node finds nothing to write
			if err := f.Prune(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		count := entries(2)[0]
		if count.Actor != f.person.Email || count.Tenant != "t1" || count.Subject != "payouts" || !strings.Contains(fmt.Sprintf("%s", count.Details), `"times":20`) {
			t.Errorf("%+v", count)
		}
		if err := f.Use(t.Context(), files, f.person.ID, "all payouts", audit.Entry{Actor: f.person.Email, Person: f.person.ID, Action: "test.export"}); err != nil {
			t.Error(err)
		}
		entries(3)
	})
}
