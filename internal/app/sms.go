package app

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/inbox"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/provider/smpp"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/tenant"
)

// bindWithin is how long a start waits for a connection to its own simulator.
const bindWithin = 2 * time.Second

// buildMessaging makes the SMS rails and the parts that send through them.
func (a *App) buildMessaging() error {
	binds, err := liveBinds(a.cfg.SMPP)
	if err != nil {
		return err
	}
	if a.cfg.SendsTexts() {
		a.sms = append(a.sms, &smsRail{mode: tenant.Live, binds: len(binds) > 0, find: func(context.Context) ([]smpp.Bind, error) { return append([]smpp.Bind{}, binds...), nil }})
	}
	if a.sim != nil {
		a.sms = append(a.sms, &smsRail{mode: tenant.Test, binds: true, find: a.sim.binds})
	}
	a.routeTexts()
	senders := map[tenant.Mode]provider.SMSSender{}
	for _, r := range a.sms {
		senders[r.mode] = r
	}
	answers := idempotency.NewAnswers(a.db, a.clock)
	a.jobs.Periodic("idempotency-sweep", idempotency.SweepEvery, answers.Sweep)
	a.senders = senderid.New(a.db, a.tenants, answers, a.clock, a.cfg.Quotas)
	a.contacts = contacts.New(a.db, a.tenants, answers, a.clock, a.cfg.Quotas)
	a.jobs.Periodic("contacts-sweep", contacts.SweepEvery, a.contacts.Sweep)
	a.messaging = messaging.New(messaging.Deps{DB: a.db, Ledger: a.ledger, Tenants: a.tenants, Jobs: a.jobs, Answers: answers, Senders: a.senders, Contacts: a.contacts, Recovery: a.recovery, Watch: a.watch, Clock: a.clock, Log: a.log,
		Secret: a.cfg.Secret, SMS: senders, Hours: a.cfg.SMSHours, Resend: a.cfg.SMPP.Resend, Validity: a.cfg.SMPP.Validity, Quotas: a.cfg.Quotas, OTPTap: a.cfg.OTPTap, KeepOTPs: a.cfg.Keep.OTPs, KeepTexts: a.cfg.Keep.Texts})
	a.later(func(context.Context) error { a.messaging.Close(); return nil })
	a.compose = compose.New(a.db, a.clock, a.tenants, a.contacts, a.messaging)
	a.jobs.Periodic("compose-sweep", pruneEvery, a.compose.Sweep)
	a.inbox = inbox.New(inbox.Deps{DB: a.db, Tenants: a.tenants, Contacts: a.contacts, Webhooks: a.webhooks, Messaging: a.messaging, Jobs: a.jobs, Clock: a.clock, Log: a.log,
		Words: a.cfg.OptOut, Keep: a.cfg.Keep.Incoming})
	a.later(func(context.Context) error { a.inbox.Close(); return nil })
	a.jobs.Periodic("sms-states", pollTextsEvery, a.pollTexts)
	log := fewLines(a.log) // a message centre may send unreadable data without end
	for _, r := range a.sms {
		// A connection uses the machine's clock, whatever time the simulator has. A receipt has the time of its
		// message.
		r.options = smpp.Options{Clock: clock.Real(), Log: log, Receipt: func(ctx context.Context, receipt provider.Receipt) func() error {
			receipt.At = a.clock.Now()
			return a.messaging.Receive(ctx, receipt)
		}, Incoming: func(ctx context.Context, m provider.Incoming) func() error {
			m.At = a.clock.Now()
			return a.inbox.Receive(ctx, r.mode, m)
		}}
	}
	return nil
}

// startMessaging requests the leases for the connections of each mode, until the queue stops.
func (a *App) startMessaging(ctx context.Context) {
	for _, r := range a.sms {
		go func() {
			err := a.jobs.Hold(context.WithoutCancel(ctx), "smpp/"+string(r.mode), func(held context.Context) { a.keepConnected(held, r) })
			select {
			case <-a.draining:
			default:
				a.log.ErrorContext(ctx, "SMS sending stopped on this node", "mode", r.mode, "error", err)
			}
		}()
	}
	if a.sim == nil || a.sim.local == nil {
		return
	}
	// A person's first message should not have to wait until the next attempt to connect.
	bound, cancel := context.WithTimeout(ctx, bindWithin)
	defer cancel()
	_ = a.connected(bound) // the start continues without a connection
}

// connected waits until this node is connected to the message centre for test money.
func (a *App) connected(ctx context.Context) error {
	rail := smsBinds{a.sms[len(a.sms)-1]} // providers over HTTP are ready at once
	if rail.Ready("") == nil {
		return nil
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for rail.Ready("") != nil {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// keepConnected runs the client of a mode while this node holds the mode's lease. The address of a message centre in
// another process may be found late, and changes when that process restarts.
func (a *App) keepConnected(held context.Context, r *smsRail) {
	r.holds.Store(true)
	defer r.holds.Store(false)
	for binds := a.otherBinds(held, r, nil); binds != nil; {
		options := r.options
		options.Binds = binds
		client := smpp.New(options)
		r.client.Store(client)
		running, stop := context.WithCancel(held)
		var stopped sync.WaitGroup
		stopped.Go(func() { client.Run(running) })
		stopped.Go(func() { a.noteBinds(running, r, client) })
		binds = a.otherBinds(held, r, binds)
		stop()
		stopped.Wait()
	}
}

// A node with connections compares their state every lookAtBinds. It stores the state at each change, and at least
// every noteEvery.
const (
	lookAtBinds = time.Second
	noteEvery   = time.Minute
)

// noteBinds stores the state of the binds where commands can read it, until ctx ends.
func (a *App) noteBinds(ctx context.Context, r *smsRail, client *smpp.Client) {
	look := time.NewTicker(lookAtBinds)
	defer look.Stop()
	var noted []messaging.Bind
	var at time.Time
	same := func(x, y messaging.Bind) bool { return x.Name == y.Name && x.Bound == y.Bound && x.Why == y.Why }
	for {
		now := a.clock.Now()
		binds := a.bindsOf(r, client, now)
		if !slices.EqualFunc(binds, noted, same) || now.Sub(at).Abs() >= noteEvery {
			if err := a.messaging.NoteBinds(ctx, r.mode, binds); err == nil {
				noted, at = binds, now
			} else if ctx.Err() == nil {
				a.log.DebugContext(ctx, "failed to store SMPP bind status", "error", err)
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// otherBinds waits until the message centre is known and has changed. It returns nil when the lease has ended. A
// connected node does not query the message centre's account.
func (a *App) otherBinds(held context.Context, r *smsRail, before []smpp.Bind) []smpp.Bind {
	look := time.NewTicker(lookForSMSC)
	defer look.Stop()
	told := ""
	for {
		if before == nil || (smsBinds{r}).Ready("") != nil {
			binds, err := r.find(held)
			if err == nil && !reflect.DeepEqual(binds, before) {
				return binds
			}
			if err != nil && held.Err() == nil && err.Error() != told {
				a.log.WarnContext(held, "message centre not configured", "mode", r.mode, "error", err)
				told = err.Error()
			}
		}
		select {
		case <-held.Done():
			return nil
		case <-look.C:
		}
	}
}

// liveBinds converts the operator's binds for the client.
func liveBinds(c config.SMPP) ([]smpp.Bind, error) {
	listed, err := c.Binds()
	if err != nil {
		return nil, err
	}
	var binds []smpp.Bind
	for _, b := range listed {
		bind := smpp.Bind{Name: b.Name, Address: b.Address, SystemID: b.SystemID, Password: b.Password.Reveal(), SystemType: b.SystemType,
			Mode: smpp.BindMode(b.Mode), Connections: b.Connections, Window: b.Window, Rate: b.Rate, ServiceType: b.ServiceType,
			SubmitIDs: smpp.IDForm(b.SubmitIDs), ReceiptIDs: smpp.IDForm(b.ReceiptIDs), Concatenation: smpp.Concatenation(b.Concatenation)}
		if bind.TLS, err = b.TLSConfig(); err != nil {
			return nil, fmt.Errorf("the SMPP bind %q %w", b.Name, err)
		}
		for _, name := range b.Networks {
			network, _ := msisdn.ParseNetwork(name) // Binds knows it
			bind.Networks = append(bind.Networks, network)
		}
		binds = append(binds, bind)
	}
	return binds, nil
}
