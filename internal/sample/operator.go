package sample

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/app"
	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/jobs"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/reconcile"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/treasury"
	"github.com/makola/makola/internal/webhook"
)

// operatorName is the operator's name in the audit log.
const operatorName = "makola sample"

// operator does the work of operators, on a connection of its own, like a command.
type operator struct {
	db        *db.DB
	clock     *clock.Clock
	access    *access.Access
	log       *audit.Log
	tenants   *tenant.Store
	senders   *senderid.Store
	ledger    *ledger.Ledger
	payments  *payments.Payments
	treasury  *treasury.Treasury
	messaging *messaging.Messaging
	reconcile *reconcile.Reconcile
}

func openOperator(ctx context.Context, storage config.Storage, secret config.Secret, c *clock.Clock) (*operator, error) {
	if secret.Empty() {
		var err error
		if secret, err = app.DevelopmentSecret(storage, false); err != nil {
			return nil, err
		}
	}
	d, err := db.Open(ctx, db.Options{Path: storage.SQLite(), MaxConns: 2})
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	books := ledger.New(d, c, "operator")
	o := &operator{db: d, clock: c, ledger: books, access: access.New(d, c), log: audit.New(d, c), tenants: tenant.New(d, books, c)}
	queue := jobs.New(d, c, quiet, jobs.Options{Node: "operator"}) // this queue runs no jobs
	o.senders = senderid.New(d, o.tenants, idempotency.NewAnswers(d, c), c, config.Quotas{})
	o.treasury = treasury.New(d, books, o.tenants, c, quiet, nil) // this store adds no float
	o.payments = payments.New(payments.Deps{DB: d, Ledger: books, Tenants: o.tenants, Jobs: queue, Clock: c, Log: quiet, Secret: secret,
		Webhooks: webhook.New(d, queue, c, quiet, webhook.Options{Secret: secret}), Routes: route.New(d, c, quiet, app.Providers(), nil)})
	o.reconcile = reconcile.New(reconcile.Deps{DB: d, Clock: c, Log: quiet, Ledger: books}) // only imports; the server matches the lines
	o.messaging = messaging.New(messaging.Deps{DB: d, Ledger: books, Tenants: o.tenants, Jobs: queue, Senders: o.senders, Clock: c, Log: quiet, Secret: secret})
	return o, nil
}

func (o *operator) close() error {
	o.messaging.Close()
	o.payments.Close()
	return o.db.Close()
}

// entry is one change for the audit log.
func (o *operator) entry(action, tenantID, subject, reason string, changed ...audit.Change) func(*db.Tx) error {
	e := audit.Entry{ID: uuid.Must(uuid.NewV7()).String(), Actor: operatorName, Action: action, Tenant: tenantID, Subject: subject, Reason: reason,
		Details: map[string]any{"changes": changed}}
	return func(tx *db.Tx) error { return o.log.Write(tx, e) }
}

// createTenant makes an account for test money, and its key.
func (o *operator) createTenant(ctx context.Context, name string) (id, key string, err error) {
	id = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://github.com/makola/makola/sample/"+name)).String()
	minted, err := o.access.Mint(access.NewKey{Tenant: id})
	if err != nil {
		return "", "", err
	}
	err = o.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := o.tenants.Create(tx, tenant.Tenant{ID: id, Name: name, Mode: tenant.Test, CollectionsEnabled: true}); err != nil {
			return err
		}
		o.access.CreateKey(tx, minted)
		loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
		if _, err := o.access.SetPayoutIPs(tx, id, loopback); err != nil {
			return err
		}
		if _, err := o.tenants.SetFeePlan(tx, id, o.clock.Now(), tenant.DemoPlan()); err != nil {
			return err
		}
		return errors.Join(o.entry("tenant.create", id, id, "", audit.Change{What: "name", After: name}, audit.Change{What: "mode", After: string(tenant.Test)})(tx),
			o.entry("key.create", id, minted.Key.ID, "")(tx))
	})
	return id, minted.Text, err
}

// fund puts money into a wallet.
func (o *operator) fund(ctx context.Context, s *shop, by money.Pesewas) error {
	const reason = "Bank transfer received"
	return o.treasury.Fund(ctx, s.id, by, reason, operatorName, o.entry("wallet.fund", s.id, s.id, reason, audit.Change{What: "funded", After: "GHS " + by.String()}))
}

// sell sells SMS credits.
func (o *operator) sell(ctx context.Context, s *shop, credits int64) error {
	sale := uuid.Must(uuid.NewV7()).String()
	return o.db.Write(ctx, func(tx *db.Tx) error {
		if _, err := o.messaging.SellCredits(tx, s.id, sale, credits); err != nil {
			return err
		}
		return o.entry("credits.sell", s.id, sale, "", audit.Change{What: "credits sold", After: strconv.FormatInt(credits, 10)})(tx)
	})
}

// review decides the sender ID of a shop with a name.
func (o *operator) review(ctx context.Context, s *shop, name string, to senderid.Status, reason string) error {
	all, err := o.senders.List(ctx, s.id)
	if err != nil {
		return err
	}
	for _, asked := range all {
		if asked.Name != name || asked.Status != senderid.Pending {
			continue
		}
		return o.db.Write(ctx, func(tx *db.Tx) error {
			if _, err := o.senders.Review(tx, s.id, asked.ID, to, reason, operatorName); err != nil {
				return err
			}
			return o.entry("sender."+string(to), s.id, asked.ID, reason, audit.Change{What: "sender ID " + name, Before: string(asked.Status), After: string(to)})(tx)
		})
	}
	return fmt.Errorf("%s has not asked for the sender ID %s", s.name, name)
}
