package batch

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// A row to a bank account is paid by the rail that returned its registered name. If that rail cannot pay, another rail
// pays only under the same name. Any other row waits.
func TestNames_railThatPays(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := newFixture(t, d)
		f.second = newBank()
		f.second.name = func(party string) (string, provider.Outcome) {
			if strings.HasSuffix(party, "1") {
				return "registered  " + party, provider.Outcome{Class: provider.Accepted}
			}
			return "KOFI BADU", provider.Outcome{Class: provider.Accepted}
		}
		n, banks := f.nodeOfBanks("a")
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return n.routes.SetRoute(tx, route.Route{Tenant: route.Any, Mode: route.Any, Operation: route.DisburseBank, Channel: route.Any, Providers: []string{"hubtel", "paystack"}, Actor: "test"})
		}); err != nil {
			t.Fatal(err)
		}
		b, err := n.upload("Suppliers", "number,bank,amount,name\n0011220031,"+banks[0].Name+",10,Person\n0011220032,"+banks[0].Name+",20,Person\n0011220041,"+banks[0].Name+",30,Person\n")
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.Request(t.Context(), b.Tenant, b.ID, "")
		wantCode(t, err, "names_pending")
		n.pass(10 * time.Second)
		if b, err = n.Request(t.Context(), b.Tenant, b.ID, ""); err != nil {
			t.Fatal(err)
		}
		n.pauseNamed("hubtel", true)
		if err := n.start(b); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if is := n.is(b.ID); is.Status != Paused || is.Cause != Cause(payments.CausePaused) || is.Accepted != 1 || len(f.second.paid) != 1 {
			t.Fatalf("%s %s with %d accepted; the second rail paid %v", is.Status, is.Cause, is.Accepted, f.second.party)
		}
		n.pauseNamed("hubtel", false)
		if err := n.Resume(t.Context(), b.Tenant, b.ID, nil); err != nil {
			t.Fatal(err)
		}
		n.pass(time.Minute)
		if is := n.is(b.ID); is.Status != Finished || is.Accepted != 3 || len(f.bank.paid) != 2 || len(f.second.paid) != 1 {
			t.Errorf("%s with %d accepted; the rails paid %v and %v", is.Status, is.Accepted, f.bank.party, f.second.party)
		}
		n.sound()
	})
}
