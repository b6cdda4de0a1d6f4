package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/api"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
)

// The demo tenant of a development server.
const (
	demoName  = "Adom Stores"
	demoMoney = 5_000 * money.Cedi
	demoActor = "makola serve"
	demoBank  = "040100" // GCB, by sort code

	demoCredits = 1_000
	demoSender  = "AdomStores"
	demoGroup   = "Customers"
)

// demoContacts are the members of the demo's group. They are test numbers that receive a text at once.
var demoContacts = []contacts.NewContact{
	{Phone: "0240000001", FirstName: "Ama", LastName: "Owusu"},
	{Phone: "0200000001", FirstName: "Kwame", LastName: "Mensah"},
	{Phone: "0270000001", FirstName: "Esi", LastName: "Boateng"},
}

// demoTenant is the id of the demo tenant. It is the same everywhere, so two nodes that start at once create one
// tenant.
var demoTenant = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/makola/makola/demo")).String()

// loadDemo creates the demo tenant at the first start of a development server. Everything happens in one transaction,
// so an interrupted start leaves nothing behind.
func (a *App) loadDemo(ctx context.Context) error {
	if a.production || a.sim == nil {
		return nil
	}
	a.ready.TenantID = demoTenant
	if err := a.demoBankID(ctx); err != nil {
		return err
	}
	// The key is derived from the development key, so every start can show it and none has to store it.
	key, err := a.access.Mint(access.NewKey{Tenant: demoTenant, Secret: a.cfg.Secret.Derive("app/demo-key")})
	if err != nil {
		return err
	}
	floats, err := a.openingFloats(ctx)
	if err != nil {
		return err
	}
	err = a.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := a.tenants.Create(tx, tenant.Tenant{ID: demoTenant, Name: demoName, Mode: tenant.Test, CollectionsEnabled: true}); err != nil {
			return err
		}
		a.access.CreateKey(tx, key)
		loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
		if _, err := a.access.SetPayoutIPs(tx, demoTenant, loopback); err != nil {
			return err
		}
		if _, err := a.tenants.SetFeePlan(tx, demoTenant, a.clock.Now(), tenant.DemoPlan()); err != nil {
			return err
		}
		if _, err := a.webhooks.EnsureSecret(tx, demoTenant); err != nil {
			return err
		}
		return a.endow(tx, floats)
	})
	if err != nil && !errors.Is(err, db.ErrUnique) { // the tenant exists already
		return err
	}
	a.demoMade = err == nil
	if err := a.demoSecrets(ctx, key.Text); err != nil {
		return err
	}
	return a.demoMessages(ctx)
}

// demoSecrets adds the demo tenant's key and webhook secret to the ready file. It omits a key that was revoked, or
// that an earlier version of the program made.
func (a *App) demoSecrets(ctx context.Context, key string) error {
	caller, err := a.access.Authenticate(ctx, key)
	if err == nil && caller.Tenant == demoTenant {
		a.ready.APIKey = key
	} else if err != nil && !problem.Is(err, problem.Unauthenticated) {
		return err
	}
	secret, err := a.webhooks.Secret(ctx, demoTenant)
	a.ready.WebhookSecret = secret.Current
	return err
}

// demoMessages finds the sender ID and the contacts of the demo tenant. It creates them if the tenant has never
// requested a sender ID. It continues where an earlier start was interrupted, because the approval comes last.
func (a *App) demoMessages(ctx context.Context) error {
	senders, err := a.senders.List(ctx, demoTenant)
	if err == nil && len(senders) == 0 {
		senders = make([]senderid.Sender, 1)
		senders[0], _, err = a.senders.Request(ctx, idempotency.Caller{Tenant: demoTenant}, demoSender, "Offers and receipts of a demo shop")
	}
	if err == nil && senders[0].Status == senderid.Pending && senders[0].Name == demoSender {
		senders[0], err = a.makeDemoMessages(ctx, senders[0])
	}
	if err != nil && !problem.Is(err, problem.Duplicate) { // another node requested it first
		return err
	}
	if senders[0].Status == senderid.Approved {
		a.ready.SenderID = senders[0].ID
	}
	group, err := a.findDemoGroup(ctx)
	a.ready.GroupID = group.ID
	a.api.Exemplify(api.Examples{
		Key: a.ready.APIKey, SenderID: a.ready.SenderID, GroupID: a.ready.GroupID, BankID: a.ready.BankID, SimURL: a.ready.SimURL, MTNURL: a.sim.mtnURL(),
	})
	return err
}

// findDemoGroup finds the group of the demo tenant's contacts.
func (a *App) findDemoGroup(ctx context.Context) (contacts.Group, error) {
	groups, err := a.contacts.Groups(ctx, demoTenant)
	for _, g := range groups {
		if g.Name == demoGroup {
			return g, err
		}
	}
	return contacts.Group{}, err
}

func (a *App) makeDemoMessages(ctx context.Context, sender senderid.Sender) (senderid.Sender, error) {
	group, err := a.findDemoGroup(ctx)
	if err == nil && group.ID == "" {
		group, _, err = a.contacts.AddGroup(ctx, idempotency.Caller{Tenant: demoTenant}, demoGroup, "")
	}
	if err == nil {
		_, _, err = a.contacts.AddContacts(ctx, idempotency.Caller{Tenant: demoTenant}, group.ID, demoContacts) // existing contacts are left unchanged
	}
	if err != nil {
		return sender, err
	}
	approved := sender
	err = a.db.Write(ctx, func(tx *db.Tx) (err error) {
		approved, err = a.senders.Review(tx, demoTenant, sender.ID, senderid.Approved, "", demoActor)
		return err
	})
	return approved, err
}

// endow gives the demo tenant its money in the transaction that created its wallet. It books the balances at the
// simulator's providers as added float, so that the ledger agrees with their books from the first payment on.
func (a *App) endow(tx *db.Tx, floats []ledger.Transfer) error {
	if err := tx.Flush(); err != nil { // the page below reads the wallet
		return err
	}
	wallet := tenant.Tenant{ID: demoTenant, Mode: tenant.Test}.Wallet()
	page, err := a.ledger.Open(tx, wallet)
	if err != nil {
		return err
	}
	err = page.Add(append(floats, ledger.Transfer{Asset: wallet.Asset, From: ledger.Funding, To: wallet.ID,
		Amount: int64(demoMoney), Subject: "demo", Leg: "fund", Kind: "fund", At: a.clock.Now()})...)
	page.Post()
	if err == nil {
		_, err = a.messaging.SellCredits(tx, demoTenant, "demo", demoCredits)
	}
	return err
}

// openingFloats reads the opening balances at the simulator's providers. It is not needed once the demo tenant
// exists.
func (a *App) openingFloats(ctx context.Context) (list []ledger.Transfer, err error) {
	if _, err := a.tenants.Get(ctx, demoTenant); !problem.Is(err, problem.NotFound) {
		return nil, err
	}
	for _, rail := range a.rails {
		if rail.Mode != string(tenant.Test) || rail.Floats == nil {
			continue
		}
		accounts, outcome := rail.Floats.Float(ctx)
		if outcome.Class != provider.Accepted {
			return nil, fmt.Errorf("the simulator does not report the balance of %s: %s %s", rail.Name, outcome.Class, outcome.Message)
		}
		for _, held := range accounts {
			if at := (treasury.Float{Provider: rail.Name, Account: held.Account, Mode: tenant.Test}); held.Amount != 0 {
				list = append(list, treasury.AddedFloat(at, held.Amount, "demo", string(at.Key().ID), a.clock.Now()))
			}
		}
	}
	return list, nil
}

// demoBankID finds the bank that is named in the demo's ready file.
func (a *App) demoBankID(ctx context.Context) error {
	banks, err := a.routes.Banks(ctx, demoTenant, string(tenant.Test))
	for _, b := range banks {
		if b.Code == demoBank {
			a.ready.BankID = b.ID
		}
	}
	return err
}
