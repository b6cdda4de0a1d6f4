package batch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// Size of a hunt: people at each of two nodes, acts of each of them, and files of so many rows.
const (
	huntPeople = 3
	huntActs   = 60
	huntFiles  = 3
	huntRows   = 30
)

// People upload, request, approve, withdraw, pause, resume and cancel the same batches on two nodes, while both nodes
// accept rows and recoveries begin. Each row is paid once or not at all. Reserve, wallet, float, the provider's book
// and the results agree, and every act ends or is refused with a cause.
func TestHunt_everyActAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.bank.answer = func(_, party string) provider.Outcome {
			if party[len(party)-1] == '7' { // some rows are refused by the provider, and their money comes back
				return provider.Outcome{Class: provider.Rejected, Clear: true, Reason: provider.ReasonPayeeNotFound}
			}
			return provider.Outcome{Class: provider.Accepted}
		}
		nodes := []*node{f.stopped("a"), f.stopped("b")}
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		var all sync.WaitGroup
		for i := range 2 * huntPeople {
			h := &hunter{node: nodes[i%2], random: rand.New(rand.NewPCG(seed, uint64(i)))}
			h.pace.most = 7
			all.Go(func() {
				for range huntActs {
					if err := h.act(); err != nil && !slices.Contains(huntRefusals, problem.From(err).Kind) {
						t.Errorf("%v", err)
					}
					f.clock.Advance(time.Millisecond)
				}
			})
		}
		all.Wait()
		nodes[0].sound()
		nodes[0].settled(t, f)
	})
}

// huntRefusals are the kinds of refusals of acts that meet others.
var huntRefusals = []problem.Kind{problem.Invalid, problem.NotFound, problem.Duplicate, problem.InProgress}

// hunter is a person who acts at random.
type hunter struct {
	*node
	random *rand.Rand
}

// act does one thing to a random batch.
func (h *hunter) act() error {
	ctx := h.f.t.Context()
	list, err := h.List(ctx, h.f.tenant.ID, "", 50)
	if err != nil {
		return err
	}
	what := h.random.IntN(20)
	if len(list) == 0 || what < 3 {
		place := h.random.IntN(huntFiles)
		_, err := h.upload(fmt.Sprint("File ", place), fileFrom(place, huntRows))
		return err
	}
	b := list[h.random.IntN(min(len(list), 4))]
	switch what {
	case 3, 4, 5:
		_, err = h.Request(ctx, b.Tenant, b.ID, "")
	case 6, 7, 8:
		err = h.Start(ctx, Order{Tenant: b.Tenant, ID: b.ID, Digest: b.Digest, Reason: "salaries", Actor: "kofi"}, nil)
	case 9:
		err = h.Pause(ctx, b.Tenant, b.ID, nil)
	case 10, 11:
		err = h.Resume(ctx, b.Tenant, b.ID, nil)
	case 12:
		err = h.Cancel(ctx, b.Tenant, b.ID, "a mistake", "kofi", nil)
	case 13:
		err = h.db.Write(ctx, func(tx *db.Tx) error { return h.Withdraw(tx, b.Tenant, b.ID) })
	case 14:
		err = h.Discard(ctx, b.Tenant, b.ID)
	case 15:
		if h.random.IntN(8) == 0 {
			err = h.db.Write(ctx, func(tx *db.Tx) error { RecoveryBegan(tx, h.f.clock); return nil })
		}
	default:
		h.run(ctx, b.Tenant, b.ID)
	}
	return err
}

// settled ends every batch, and compares the results with the provider's book and the wallet.
func (n *node) settled(t *testing.T, f *fixture) {
	t.Helper()
	heir := f.node("heir")
	list, err := heir.List(t.Context(), f.tenant.ID, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range list {
		switch {
		case b.Status == Paused && i%2 == 0:
			err = heir.Resume(t.Context(), b.Tenant, b.ID, nil)
		case b.Status == Paused:
			err = heir.Cancel(t.Context(), b.Tenant, b.ID, "a mistake", "kofi", nil)
		}
		if err != nil {
			t.Errorf("%s: %v", b.Status, err)
		}
	}
	heir.pass(10 * time.Minute)
	if list, err = heir.List(t.Context(), f.tenant.ID, "", 1000); err != nil {
		t.Fatal(err)
	}
	paid := map[string]int{} // by account
	for _, party := range f.bank.party {
		paid[party]++
	}
	var spent money.Pesewas
	said := map[string]int{}
	statuses := map[Status]int{}
	for _, b := range list {
		statuses[b.Status]++
		if b.Status == Running || b.Status == Paused || b.Rest != 0 {
			t.Errorf("%s is %s by %q with the rest %s", b.Name, b.Status, b.Cause, b.Rest)
		}
		results, err := heir.Results(t.Context(), b.Tenant, b.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		accepted := 0
		for _, r := range results {
			if r.State == RowAccepted {
				accepted++
			}
			if r.Status == "success" {
				said[r.Account]++
			}
		}
		if accepted != b.Accepted {
			t.Errorf("%s has %d accepted rows, its row says %d", b.Name, accepted, b.Accepted)
		}
		spent += heir.spent(b)
	}
	for account, times := range paid {
		if times != 1 || said[account] != 1 {
			t.Errorf("%s was paid %d times, the results say %d", account, times, said[account])
		}
	}
	_, amount := f.bank.sum()
	if len(said) != len(paid) || spent != amount+money.Pesewas(len(paid))*10 || heir.wallet() != funds-spent {
		t.Errorf("%d rows were paid, the results say %d; %s were spent, the provider has %s, the wallet %s", len(paid), len(said), spent, amount, heir.wallet())
	}
	t.Logf("%d rows were paid; batches %v", len(paid), statuses)
	f.bank.wantOnePost(t)
	heir.sound()
}
