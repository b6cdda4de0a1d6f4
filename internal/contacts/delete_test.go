package contacts

import (
	"context"
	"fmt"
	"testing"

	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/test/dbtest"
)

// The contacts of a deleted group are deleted in transactions of a thousand rows. The group disappears with the first transaction.
func TestDeleteGroup_inBatches(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, faults *db.Faults) {
		f := open(t, d, config.Quotas{})
		kept := f.group("0241000001")
		large := f.group(numbers(5_000)...)
		page, _, err := f.Contacts(t.Context(), "shop", large.ID, 1, 100)
		if err != nil {
			t.Fatal(err)
		}
		// cut runs work. After the given number of commits, the next commit fails and the context of work ends.
		cut := func(after int, work func(context.Context) error) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			faults.Decide(func(b db.Boundary) db.Fault {
				if b != db.BoundaryCommit {
					return db.FaultNone
				}
				if after--; after >= 0 {
					return db.FaultNone
				}
				cancel()
				return db.FaultBefore
			})
			defer faults.Decide(nil)
			return work(ctx)
		}
		left := func(want int64) {
			t.Helper()
			if n := f.count(`SELECT count(*) FROM contacts WHERE group_id = $1`, large.ID); n != want {
				t.Errorf("%d contacts are left, want %d", n, want)
			}
		}

		if err := cut(0, func(ctx context.Context) error { return f.DeleteGroup(ctx, "shop", large.ID) }); err == nil {
			t.Error("a deletion that was not committed is answered as done")
		}
		left(5_000)
		if err := cut(2, func(ctx context.Context) error { return f.DeleteGroup(ctx, "shop", large.ID) }); err != nil {
			t.Errorf("a group whose contacts are left to the sweep: %v", err)
		}
		left(4_000)
		for name, err := range map[string]error{
			"deleted again": f.DeleteGroup(t.Context(), "shop", large.ID),
			"renamed":       second(f.UpdateGroup(t.Context(), "shop", large.ID, "again", "")),
			"read":          third(f.Contacts(t.Context(), "shop", large.ID, 1, 1)),
			"added to":      third(f.AddContact(t.Context(), shop, large.ID, NewContact{Phone: "0249999999"})),
			"changed":       second(f.UpdateContact(t.Context(), "shop", page[99].ID, NewContact{FirstName: "Ama"})),
			"taken from":    f.DeleteContact(t.Context(), "shop", page[99].ID),
		} {
			if !problem.Is(err, problem.NotFound) {
				t.Errorf("a deleted group is %s: %v", name, err)
			}
		}
		if err := d.Read(t.Context(), func(tx *db.Tx) error {
			_, err := OwnGroups(tx, "shop", []string{large.ID})
			return err
		}); !problem.Is(err, problem.Forbidden) {
			t.Errorf("a deleted group is sent to: %v", err)
		}
		if groups, err := f.Groups(t.Context(), "shop"); err != nil || len(groups) != 1 || groups[0].ID != kept.ID || groups[0].Contacts != 1 {
			t.Errorf("the groups are %+v, %v", groups, err)
		}

		for n := int64(3_000); n >= 0; n -= 1_000 {
			_ = cut(1, f.Sweep) // the next run continues
			left(n)
		}
		if err := f.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		if n := f.count(`SELECT count(*) FROM contact_groups`); n != 1 {
			t.Errorf("%d groups have a row", n)
		}
		if n := f.count(`SELECT count(*) FROM contacts`); n != 1 {
			t.Errorf("%d contacts have a row", n)
		}
	})
}

// Several calls and the sweep at the same time delete a group once.
func TestDeleteGroup_concurrentCalls(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := open(t, d, config.Quotas{})
		large := f.group(numbers(2_500)...)
		answers := make(chan error)
		for range 4 {
			go func() { answers <- f.DeleteGroup(t.Context(), "shop", large.ID) }()
			go func() { answers <- f.Sweep(t.Context()) }()
		}
		deleted := 0
		for range 8 {
			switch err := <-answers; {
			case err == nil:
				deleted++
			case !problem.Is(err, problem.NotFound):
				t.Error(err)
			}
		}
		if deleted != 5 {
			t.Errorf("%d calls succeeded, want one deletion and four sweeps", deleted)
		}
		if err := f.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
		if rows := fmt.Sprint(f.count(`SELECT count(*) FROM contacts`), f.count(`SELECT count(*) FROM contact_groups`)); rows != "0 0" {
			t.Errorf("contacts and groups left: %s", rows)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }
