package batch

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/dbtest"
)

// A cause that appears while a batch runs pauses the batch. After the cause has ended, the batch is resumed and pays each row once.
func TestRun_pausesForEachCause(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.stopped("a")
		served := func(providers ...string) {
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				return n.routes.SetRoute(tx, route.Route{Tenant: route.Any, Mode: "test", Operation: route.DisburseWallet, Channel: "MTN", Providers: providers, Actor: "ama"})
			}); err != nil {
				t.Fatal(err)
			}
			f.clock.Advance(2 * time.Second)
		}
		for i, each := range []struct {
			cause       payments.RowCause
			comes, goes func()
		}{
			{payments.CauseBlocked, func() { n.set(tenant.Change{Blocked: new(true)}) }, func() { n.set(tenant.Change{Blocked: new(false)}) }},
			{payments.CauseStopped, func() { n.set(tenant.Change{PayoutsStopped: new(true)}) }, func() { n.set(tenant.Change{PayoutsStopped: new(false)}) }},
			{payments.CausePaused, func() { n.pauseRail(true) }, func() { n.pauseRail(false) }},
			{payments.CauseNoRoute, func() { served() }, func() { served("mtn") }},
		} {
			b := n.requested("Salaries "+string(each.cause), fileFrom(i, 150))
			if err := n.start(b); err != nil {
				t.Fatal(err)
			}
			n.run(t.Context(), b.Tenant, b.ID)
			each.comes()
			n.run(t.Context(), b.Tenant, b.ID)
			if is := n.is(b.ID); is.Status != Paused || is.Cause != Cause(each.cause) || is.Accepted != setRows || is.Rest == 0 {
				t.Errorf("%s: %s by %q, %d accepted", each.cause, is.Status, is.Cause, is.Accepted)
			}
			each.goes()
			if err := n.Resume(t.Context(), b.Tenant, b.ID, nil); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				n.run(t.Context(), b.Tenant, b.ID)
			}
			if is := n.is(b.ID); is.Status != Finished || is.Accepted != 150 || is.Rest != 0 {
				t.Errorf("%s: %s by %q, %d accepted", each.cause, is.Status, is.Cause, is.Accepted)
			}
		}
		n.sound()
	})
}

// A bank that is switched off pauses the batch before its row, and no row is refused. After the bank is switched on, the batch is
// resumed.
func TestRun_bankSwitchedOff(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n, banks := f.nodeOfBanks("a")
		status := func(status string) {
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				return n.routes.EditBank(tx, banks[0].Code, route.Edit{Status: status})
			}); err != nil {
				t.Fatal(err)
			}
			f.clock.Advance(time.Minute)
		}
		b, err := n.upload("Suppliers", "number,bank,amount\n0241234567,MTN,30\n0011220033,"+banks[0].Name+",10\n0241234568,MTN,20\n")
		if err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		if b, err = n.Request(t.Context(), b.Tenant, b.ID, ""); err != nil {
			t.Fatal(err)
		}
		status(route.Inactive)
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if is := n.is(b.ID); is.Status != Paused || is.Cause != Cause(payments.CauseNoRoute) || is.Accepted != 1 || is.Next != 2 {
			t.Errorf("%s by %q, %d accepted, the next row is %d", is.Status, is.Cause, is.Accepted, is.Next)
		}
		status(route.Active)
		if err := n.Resume(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if is := n.is(b.ID); is.Status != Finished || is.Accepted != 3 || n.wallet() != funds-b.Total() {
			t.Errorf("%s by %q, %d accepted, the wallet has %s", is.Status, is.Cause, is.Accepted, n.wallet())
		}
		n.sound()
	})
}

// A provider that accepts no requests opens its circuit. The batch waits for a short time, and then pauses with this cause. When
// the provider works again, the batch is resumed, and each row is paid once.
func TestRun_circuitOpens(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.bank.answer = func(string, string) provider.Outcome {
			return provider.Outcome{Class: provider.NotSent, Reason: provider.ReasonUnavailable}
		}
		n := f.node("a")
		first := n.requested("Salaries", fileFrom(1, 20))
		if err := n.start(first); err != nil {
			t.Fatal(err)
		}
		n.pass(3 * time.Second)
		second := n.requested("Bonuses", fileFrom(2, 20))
		if err := n.start(second); err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Second)
		if is := n.is(second.ID); is.Status != Running || is.Accepted != 0 {
			t.Errorf("shortly after the opening: %s by %q, %d accepted", is.Status, is.Cause, is.Accepted)
		}
		if open, err := n.CircuitOpen(t.Context(), n.is(second.ID)); err != nil || !open {
			t.Errorf("shortly after the opening the page says %v, %v", open, err)
		}
		n.pass(10 * time.Minute)
		paused := n.is(second.ID)
		if paused.Status != Paused || paused.Cause != Cause(payments.CauseCircuitOpen) || paused.Accepted == 20 {
			t.Errorf("minutes after the opening: %s by %q, %d accepted", paused.Status, paused.Cause, paused.Accepted)
		}
		f.bank.mu.Lock()
		f.bank.answer = nil
		f.bank.mu.Unlock()
		n.pass(10 * time.Minute)
		if err := n.Resume(t.Context(), second.Tenant, second.ID, nil); err != nil {
			t.Fatal(err)
		}
		n.pass(10 * time.Minute)
		for _, b := range []Batch{first, second} {
			if open, err := n.CircuitOpen(t.Context(), n.is(b.ID)); err != nil || open {
				t.Errorf("%s at the end: %v, %v", b.Name, open, err)
			}
			if is := n.is(b.ID); is.Status != Finished || is.Accepted != 20 {
				t.Errorf("%s: %s by %q, %d accepted", is.Name, is.Status, is.Cause, is.Accepted)
			}
		}
		if paid, amount := f.bank.sum(); paid != 40 || amount != first.Amount+second.Amount || n.wallet() != funds-first.Total()-second.Total() {
			t.Errorf("%d rows were paid, GHS %s; the wallet has %s", paid, amount, n.wallet())
		}
		n.sound()
	})
}

// A revoked key pauses its batch, and cannot resume it. The daily limit of a key counts the whole batch when it starts.
func TestRun_keyRevokedAndLimited(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.stopped("a")
		minted, err := n.access.Mint(access.NewKey{Tenant: f.tenant.ID, Scopes: []access.Scope{access.Payout}})
		if err != nil {
			t.Fatal(err)
		}
		minted.Key.Daily = 1000 * money.Cedi
		key := minted.Key.ID
		if err := d.Write(t.Context(), func(tx *db.Tx) error { n.access.CreateKey(tx, minted); return nil }); err != nil {
			t.Fatal(err)
		}
		upload := func(name string, place, rows int) Batch {
			b, _, err := n.Make(t.Context(), Upload{Tenant: f.tenant.ID, Name: name, Requester: key, Key: key}, given(place, rows))
			if err == nil {
				b, err = n.Request(t.Context(), b.Tenant, b.ID, "")
			}
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		b, large := upload("Salaries", 1, 150), upload("Bonuses", 2, 200)
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		if err := n.start(large); !problem.Is(err, problem.Invalid) && !problem.Is(err, problem.Forbidden) {
			t.Errorf("beyond the daily limit: %v", err)
		}
		n.run(t.Context(), b.Tenant, b.ID)
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := n.access.RevokeKey(tx, f.tenant.ID, key)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		f.clock.Advance(10 * time.Second)
		n.run(t.Context(), b.Tenant, b.ID)
		if is := n.is(b.ID); is.Status != Paused || is.Cause != CauseKey || is.Accepted != setRows {
			t.Errorf("%s by %q, %d accepted", is.Status, is.Cause, is.Accepted)
		}
		wantCode(t, n.Resume(t.Context(), b.Tenant, b.ID, nil), "key_revoked")
		wantCode(t, n.start(large), "key_revoked")
		if err := n.Cancel(t.Context(), b.Tenant, b.ID, "the key was revoked", "ama", nil); err != nil {
			t.Fatal(err)
		}
		n.sound()
	})
}

// If a transfer limit is lowered after the request, rows above it are refused, and their money is returned.
func TestRun_limitLowered(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		n := f.node("a")
		b := n.requested("Salaries", file(20)) // GHS 2 to GHS 21
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.set(tenant.Change{PayoutLimitWallet: new(11 * money.Cedi)})
		n.pass(time.Minute)
		results, err := n.Results(t.Context(), b.Tenant, b.ID, 1)
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for _, r := range results {
			if r.State == RowRefused {
				refused++
			}
		}
		if is := n.is(b.ID); is.Status != Finished || refused+is.Accepted != 20 || is.Rest != 0 {
			t.Errorf("%s, %d accepted, %d refused", is.Status, is.Accepted, refused)
		}
		n.sound()
	})
}

// given returns rows of JSON.
func given(place, rows int) (list []Given) {
	for i := range rows {
		list = append(list, Given{Number: fmt.Sprintf("024%03d%04d", place, i+1), Network: "MTN", Amount: strconv.Itoa(i%7 + 1)})
	}
	return list
}
