package notice

import (
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/test/dbtest"
	"github.com/makola/makola/internal/test/mailtest"
)

// visitor returns a person as pages know them.
func visitor(id string, r roles.Role) identity.Visitor {
	return identity.Visitor{Person: identity.Person{ID: id}, Memberships: []identity.Membership{{Tenant: roles.Installation, Role: r}}}
}

// An owner cannot turn off notices about money and security. Other people can, and then also get no waiting notices.
func TestChoose_ownersKeepMoney(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := node(t, d, mailtest.Start(t, nil), clock.Real())
		owner, other := f.person("ama@pay.example", roles.Owner), f.person("kofi@pay.example", roles.Operations)
		for _, topic := range []Topic{Money, Security} {
			if err := f.Choose(t.Context(), visitor(owner, roles.Owner), map[Topic]Choice{topic: Never}); !problem.Is(err, problem.Invalid) {
				t.Errorf("%s: %v", topic, err)
			}
		}
		if err := f.Choose(t.Context(), visitor(owner, roles.Owner), map[Topic]Choice{Money: "sometimes"}); !problem.Is(err, problem.Invalid) {
			t.Errorf("an unknown choice: %v", err)
		}
		if err := f.Choose(t.Context(), visitor(other, roles.Operations), map[Topic]Choice{Money: Never}); err != nil {
			t.Fatal(err)
		}
		f.report(1)
		if n := f.states()[Pending]; n != 1 {
			t.Errorf("%d messages", n)
		}
		list, err := f.Choices(t.Context(), visitor(owner, roles.Owner))
		if err != nil || len(list) != len(Topics()) {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, c := range list {
			if c.Kept != (c.Topic == Money || c.Topic == Security) || c.Title == "" || c.Means == "" {
				t.Errorf("%+v", c)
			}
		}
	})
}

// A person who chose a daily message gets one at seven with all facts of the day.
func TestChoose_dailyIsOneMessage(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		hand := clock.NewManual(time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC))
		f := node(t, d, mailtest.Start(t, nil), hand)
		id := f.person("ama@pay.example", roles.Owner)
		if err := f.Choose(t.Context(), visitor(id, roles.Owner), map[Topic]Choice{Money: Daily}); err != nil {
			t.Fatal(err)
		}
		for hour := range 21 {
			f.report(hour + 1)
			hand.Advance(time.Hour)
		}
		if n := f.states()[Pending]; n != 0 {
			t.Errorf("%d messages before the hour", n)
		}
		hand.Advance(time.Hour)
		f.work()
		f.work()
		if n := f.states()[Pending]; n != 1 {
			t.Errorf("%d messages, not 1", n)
		}
	})
}

// The test message goes to the person's own address at once, at most ten times an hour.
func TestSendTest_isLimited(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := node(t, d, mailtest.Start(t, nil), clock.Real())
		p := identity.Person{ID: f.person("ama@pay.example", roles.Owner), Email: "ama@pay.example"}
		for range 10 {
			if err := f.SendTest(t.Context(), p, Email); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.SendTest(t.Context(), p, Email); !problem.Is(err, problem.RateLimited) {
			t.Error(err)
		}
		list, err := f.Messages(t.Context(), "", 5)
		if err != nil || len(list) != 5 || list[0].Address != p.Email || list[0].State != Pending {
			t.Fatalf("%+v, %v", list, err)
		}
		more, err := f.Messages(t.Context(), list[4].ID, 50)
		if err != nil || len(more) != 5 {
			t.Errorf("%+v, %v", more, err)
		}
	})
}
