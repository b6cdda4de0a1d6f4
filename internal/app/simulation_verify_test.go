package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/sim"
)

// row is a payment in its table at the end.
type row struct {
	tenant, kind, id, reference, status, reason, rail, parent, child, mode, note string
	external, attemptReference, callback                                         string
	amount, charges                                                              int64
	bearer                                                                       string
	attempt, posts, unsent, paidLate                                             int64
	refused                                                                      bool
	turned                                                                       *time.Time
}

const allRows = `SELECT tenant, kind, id, reference, status, reason, rail, parent, child, mode, provider_reference, attempt_reference, callback_url,
	amount, charges, fee_bearer, attempt, posts, unsent, refused, note, turned_at,
	(SELECT count(*) FROM transfers t WHERE t.subject = payments.id AND t.leg = 'final' AND t.kind = 'collection paid_late') FROM payments ORDER BY tenant, kind, seq`

func (w *world) rows() []row {
	var all []row
	err := w.nodes[0].db.ReadWhole(context.Background(), func(tx *db.Tx) error {
		all = nil
		return tx.Query(allRows, nil, func(r *db.Row) error {
			var p row
			var turned *int64
			err := r.Scan(&p.tenant, &p.kind, &p.id, &p.reference, &p.status, &p.reason, &p.rail, &p.parent, &p.child, &p.mode, &p.external,
				&p.attemptReference, &p.callback, &p.amount, &p.charges, &p.bearer, &p.attempt, &p.posts, &p.unsent, &p.refused, &p.note, &turned, &p.paidLate)
			p.turned = moment(turned)
			if p.attemptReference == "" {
				p.attemptReference = p.external // the reference of the first attempt
			}
			all = append(all, p)
			return err
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// references returns the requests of customers by their references.
func references(rows []row) map[string]*row {
	byReference := map[string]*row{}
	for i := range rows {
		if r := &rows[i]; r.parent == "" {
			byReference[r.reference] = r
		}
	}
	return byReference
}

func moment(us *int64) *time.Time {
	if us == nil || *us == 0 {
		return nil
	}
	t := db.FromMicros(*us)
	return &t
}

// verify compares answers, rows, providers' books, wallets and webhooks with each other.
func (w *world) verify() {
	w.t.Helper()
	rows := w.rows()
	byReference := references(rows)
	w.checkAnswers(byReference)
	outcome := map[string]int{}
	for i := range rows {
		outcome[rows[i].kind+" "+rows[i].status]++
		w.checkBook(&rows[i])
	}
	w.checkWallets(rows)
	w.checkWebhooks(rows, byReference)
	w.checkHouse()
	w.checkClocks()
	w.t.Logf("%d operations in %d rounds on %v: %v; operators rearranged %v; %d steps of the clock", w.asked, w.rounds, w.engine, outcome, w.changes, w.steps)
}

// checkClocks checks that the same time passed for the providers as for the nodes. A provider whose clock does not move sends
// no callbacks, so the run would not test them.
func (w *world) checkClocks() {
	w.t.Helper()
	if ours, theirs := w.clock.Elapsed(), w.theirs.Elapsed(); ours != theirs {
		w.t.Errorf("%v passed for the nodes, %v for the providers", ours, theirs)
	}
}

// checkAnswers compares the answers to customers with the rows.
func (w *world) checkAnswers(rows map[string]*row) {
	for _, o := range w.orders {
		r := rows[o.reference]
		switch {
		case o.status == http.StatusOK && r == nil:
			w.t.Errorf("%s %s was accepted and is gone (%s)", o.kind, o.reference, o.weather)
		case o.status == http.StatusOK && (r.amount != int64(o.amount) || r.tenant != o.customer.id):
			w.t.Errorf("%s %s: %d pesewas of %s, asked for %d", o.kind, o.reference, r.amount, r.tenant, o.amount)
		case o.status == http.StatusBadRequest && r != nil && r.status != "failed" && r.turned == nil:
			w.t.Errorf("%s %s was answered with 400 %s and is %s (%s)", o.kind, o.reference, o.message, r.status, o.weather)
		case o.weather == string(refusedOpen) && r != nil && r.kind == "collection" && r.paidLate > 0:
			w.t.Errorf("%s %s was ended while its payer could still pay (%s)", o.kind, o.reference, o.weather)
		case o.status == http.StatusUnprocessableEntity && r != nil && o.weather == "fair" && !o.unclear:
			w.t.Errorf("%s %s was answered with 422 %s and has a row: %+v", o.kind, o.reference, o.message, *r)
		}
	}
}

// checkBook compares one row with the providers' book.
func (w *world) checkBook(r *row) {
	if r.status == "pending" || r.status == "waiting" {
		w.t.Errorf("%s %s (%s) is still %s at the end: %+v; book: %+v", r.kind, r.reference, r.rail, r.status, *r, w.sim.Entries(r.attemptReference))
		return
	}
	if r.rail == "" {
		return // a transfer between tenants
	}
	entries := w.sim.Entries(r.external)
	if r.attemptReference != r.external {
		entries = append(entries, w.sim.Entries(r.attemptReference)...)
	}
	done := 0
	for _, e := range entries {
		if e.Status == sim.Success && !e.Reversed {
			done++
		}
	}
	want := 0
	switch {
	case r.status == "success" && r.turned == nil, r.status == "failed" && r.turned != nil && r.kind != "collection":
		want = 1
	case r.kind == "collection" && r.status == "success" && r.turned != nil:
		// It was reversed or paid late. The ledger's transfers show which, and the floats below are compared with them.
		return
	}
	if done != want {
		w.t.Errorf("%s %s is %s (%s, turned %v), the providers did it %d times: %+v", r.kind, r.reference, r.status, r.reason, r.turned, done, entries)
	}
}

// checkWallets computes the balance of each wallet from the rows.
func (w *world) checkWallets(rows []row) {
	ctx := context.Background()
	want := map[string]int64{}
	for _, c := range w.customers {
		want[c.id] = c.given
	}
	for i := range rows {
		r := &rows[i]
		net := r.amount
		if r.bearer == "merchant" {
			net -= r.charges
		}
		switch {
		case r.rail == "":
		case r.kind == "collection" && r.status == "success":
			want[r.tenant] += net
			if r.turned != nil && w.reversed(r) {
				want[r.tenant] -= net
			}
		case r.kind != "collection" && r.status == "success":
			want[r.tenant] -= r.amount + r.charges
		}
	}
	for _, c := range w.customers {
		receivable, err := w.nodes[0].ledger.Balance(ctx, ledger.Key{Asset: ledger.TestGHS, ID: ledger.Receivable(c.id)})
		if err != nil {
			w.t.Fatal(err)
		}
		got, err := w.nodes[0].ledger.Balance(ctx, ledger.Key{Asset: ledger.TestGHS, ID: ledger.Wallet(c.id)})
		if err != nil {
			w.t.Fatal(err)
		}
		if got != want[c.id]-receivable {
			w.t.Errorf("the wallet of %s holds %d, its payments leave %d (receivable %d)", c.id, got, want[c.id]-receivable, receivable)
			for i := range rows {
				if r := &rows[i]; r.tenant == c.id && (r.turned != nil || r.rail == "") {
					w.t.Logf("%+v %v", *r, w.sim.Entries(r.attemptReference))
				}
			}
		}
	}
}

// reversed reports whether a collection was reversed.
func (w *world) reversed(r *row) bool {
	return slices.ContainsFunc(w.sim.Entries(r.attemptReference), func(e sim.Entry) bool { return e.Reversed })
}

// checkWebhooks compares the webhooks with the rows.
func (w *world) checkWebhooks(rows []row, byReference map[string]*row) {
	children := map[string]*row{}
	for i := range rows {
		children[rows[i].parent] = &rows[i]
	}
	for _, o := range w.orders {
		r := byReference[o.reference]
		if o.callback == "" || r == nil || o.status != http.StatusOK {
			continue
		}
		late := false
		if o.kind == "buy" {
			late = r.paidLate > 0 // the money arrived after the airtime had failed, which a webhook also reports
			r = children[r.id]
		}
		if r == nil {
			w.t.Errorf("%s %s has no top-up", o.kind, o.reference)
			continue
		}
		want := "failed"
		if r.status == "success" || late {
			want = "success"
		}
		told := w.inbox.of(o.callback)
		if len(told) == 0 || told[len(told)-1] != want {
			w.t.Errorf("%s %s is %s and its customer was told %v (%s)", o.kind, o.reference, r.status, told, o.weather)
		}
	}
}

// checkHouse runs the product's own checks.
func (w *world) checkHouse() {
	ctx := context.Background()
	n := w.nodes[0]
	report, err := n.ledger.Check(ctx)
	if err != nil || !report.OK() {
		w.t.Errorf("the ledger: %v %v", err, report.Problems)
	}
	check, err := n.payments.Check(ctx)
	if err != nil || !check.OK() {
		w.t.Errorf("the payments: %v %v", err, check.Problems)
	}
	served := map[string]int{}
	for _, e := range w.sim.All() {
		served[e.Provider]++
	}
	for _, name := range w.sim.Providers() {
		if served[name] == 0 && w.asked >= tableFrom {
			w.t.Errorf("nothing went to %s: %v", name, served)
		}
		gap, err := n.payments.CheckFloat(ctx, name, "test", w.sim.Float(name))
		if err != nil || gap != 0 {
			w.t.Errorf("the float at %s is off by %v pesewas (%v)", name, gap, err)
		}
		in, out := w.sim.Accounts(name)
		ours, err := n.payments.Floats(ctx, name, "test")
		if err != nil || ours[provider.AccountCollection] != in || ours[provider.AccountDisbursement]+ours[provider.AccountServices] != out || ours[""] != 0 {
			w.t.Errorf("the accounts at %s hold %v and %v, ours %v (%v)", name, in, out, ours, err)
		}
	}
	depth, err := n.jobs.Depth(ctx)
	if err != nil {
		w.t.Error(err)
	}
	for _, d := range depth {
		if d.Dead > 0 || d.Alive > 0 {
			w.t.Errorf("jobs are left: %+v", d)
		}
	}
}
