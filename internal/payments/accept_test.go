package payments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/test/clocktest"
	"github.com/makola/makola/internal/test/dbtest"
)

// draft returns a prepared payout of one cedi, as accept receives it.
func (n *node) draft(t *testing.T, who tenant.Tenant, reference string, amount money.Pesewas) *request {
	t.Helper()
	pay := newPayment(idempotency.Caller{Tenant: who.ID}, who, book.KindPayout)
	pay.Channel, pay.Account, pay.Reference, pay.Amount, pay.Charges = "MTN", "233241234567", reference, amount, 10
	a := &request{Acceptance: book.Acceptance{Payment: pay}}
	if err := n.prepare(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return a
}

// A batch with many combinations of requests returns for each request its own result.
func TestAccept_requestsOfOneBatch(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		rich, poor := h.tenant, n.newTenant(5*money.Cedi)
		if _, err := n.accept(t.Context(), n.draft(t, rich, "taken-before-1", money.Cedi)); err != nil {
			t.Fatal(err)
		}
		type want struct {
			kind problem.Kind // empty: accepted
			data string       // reference of the payment in Data
		}
		type request struct {
			who       tenant.Tenant
			reference string
			amount    money.Pesewas
			want      want
		}
		requests := []request{
			{rich, "batch-00000001", money.Cedi, want{}},
			{rich, "batch-00000001", 2 * money.Cedi, want{problem.Duplicate, "batch-00000001"}},
			{rich, "taken-before-1", money.Cedi, want{problem.Duplicate, "taken-before-1"}},
			{poor, "batch-00000001", money.Cedi, want{}}, // the same reference of another tenant is independent
			{poor, "batch-00000002", 4 * money.Cedi, want{problem.InsufficientFunds, ""}},
			{poor, "batch-00000002", 3 * money.Cedi, want{}}, // the refusal left no row and took no money
			{poor, "batch-00000003", money.Cedi, want{problem.InsufficientFunds, ""}},
			{rich, "batch-00000004", funds, want{problem.InsufficientFunds, ""}},
			{rich, "batch-00000005", money.Cedi, want{}},
		}
		var ops []*book.Op
		for _, r := range requests {
			ops = append(ops, &book.Op{Accept: &n.draft(t, r.who, r.reference, r.amount).Acceptance})
		}
		verdicts, err := n.book.Commit(t.Context(), 0, ops)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range requests {
			v := verdicts[i]
			if r.want.kind == "" {
				if v.Err != nil {
					t.Errorf("request %d: %v", i, v.Err)
				}
				continue
			}
			e := wantKind(t, v.Err, r.want.kind)
			if old, ok := e.Data.(book.Payment); r.want.data != "" && (!ok || old.Reference != r.want.data || old.Tenant != r.who.ID) {
				t.Errorf("request %d: the refusal shows %+v", i, e.Data)
			}
		}
		seqs := []int64{verdicts[0].Value.Payment.Seq, verdicts[8].Value.Payment.Seq}
		if seqs[0] != 2 || seqs[1] != 3 {
			t.Errorf("the places in the list are %v, want 2 and 3", seqs)
		}
		if got, want := n.balance(), funds-3*(money.Cedi+10); got != want {
			t.Errorf("the rich tenant has %s, want %s", got, want)
		}
		n.pass(time.Second)
		n.books()
	})
}

func TestIdempotencyKey_replaysSameRequest(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		c := idempotency.Caller{Tenant: h.tenant.ID, IdempotencyKey: "key-of-a-collection", BodyHash: "hash"}
		r := h.collect()
		first, replayed, err := n.Collect(t.Context(), c, r)
		if err != nil || replayed {
			t.Fatalf("replayed %v, %v", replayed, err)
		}
		again, replayed, err := n.Collect(t.Context(), c, r)
		if err != nil || !replayed || again.ID != first.ID {
			t.Errorf("the same request again: %s, replayed %v, %v; want %s", again.ID, replayed, err, first.ID)
		}
		other := c
		other.BodyHash = "another"
		_, _, err = n.Collect(t.Context(), other, h.collect())
		wantKind(t, err, problem.Invalid)
		_, _, err = n.Payout(t.Context(), c, h.payout())
		wantKind(t, err, problem.Invalid)
		mate := n.newTenant(funds)
		_, replayed, err = n.Collect(t.Context(), idempotency.Caller{Tenant: mate.ID, IdempotencyKey: c.IdempotencyKey, BodyHash: "hash"}, h.collect())
		if err != nil || replayed {
			t.Errorf("another tenant's key: replayed %v, %v", replayed, err)
		}

		// A repeated payout that the provider refused is refused again.
		h.first.script(always(rejected), always(notFound))
		c.IdempotencyKey = "key-of-a-payout"
		p := h.payout()
		_, _, err = n.Payout(t.Context(), c, p)
		wantKind(t, err, problem.Refused)
		_, replayed, err = n.Payout(t.Context(), c, p)
		if wantKind(t, err, problem.Refused); !replayed {
			t.Error("the refusal was not marked as replayed")
		}
		if posts, _ := h.first.counts(); posts != 3 { // two collections and one payout
			t.Errorf("%d POSTs, want 3", posts)
		}

		// While the first request waits for its provider, there is no answer yet for a repeated one.
		entered, leave := make(chan struct{}), make(chan struct{})
		h.first.script(func(int, string) provider.Outcome {
			close(entered)
			<-leave
			return pending
		}, always(pending))
		c.IdempotencyKey = "key-of-a-slow-payout"
		p = h.payout()
		answer := make(chan error, 1)
		go func() {
			_, _, err := n.Payout(t.Context(), c, p)
			answer <- err
		}()
		<-entered
		_, _, err = n.Payout(t.Context(), c, p)
		wantKind(t, err, problem.InProgress)
		close(leave)
		if err := <-answer; err != nil {
			t.Error(err)
		}
		if _, replayed, err = n.Payout(t.Context(), c, p); err != nil || !replayed {
			t.Errorf("after the answer: replayed %v, %v", replayed, err)
		}

		// After a day the key may be used for another request. The reference may not.
		h.first.script(always(pending), always(success))
		n.pass(24 * time.Hour)
		_, _, err = n.Payout(t.Context(), c, p)
		wantKind(t, err, problem.Duplicate)
		fresh, replayed, err := n.Payout(t.Context(), c, h.payout())
		if err != nil || replayed || fresh.ID == first.ID {
			t.Errorf("the key after a day: replayed %v, %v", replayed, err)
		}
		n.pass(time.Minute)
		n.books()
	})
}

// A repeated payout is answered although payouts are stopped. Nothing is sent again.
func TestReplay_payoutsStopped(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		c, r := h.caller(), h.payout()
		c.IdempotencyKey, c.BodyHash = "key-of-a-payout", "hash"
		pay, _, err := n.Payout(t.Context(), c, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			yes := true
			_, _, err := n.tenants.Set(tx, h.tenant.ID, tenant.Change{PayoutsStopped: &yes})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		again, replayed, err := n.Payout(t.Context(), c, r)
		if err != nil || !replayed || again.ID != pay.ID {
			t.Errorf("replayed %v: %s, %v", replayed, again.ID, err)
		}
		r.Reference, c.IdempotencyKey = h.reference(), "another-key"
		_, _, err = n.Payout(t.Context(), c, r)
		wantKind(t, err, problem.Forbidden)
		_, _, err = n.Payout(t.Context(), h.caller(), h.payout())
		wantKind(t, err, problem.Forbidden)
		n.sound()
	})
}

// A request that is refused before acceptance may use the same reference again.
func TestAccept_refusalLeavesNoRow(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		change := func(c tenant.Change) {
			t.Helper()
			if err := d.Write(t.Context(), func(tx *db.Tx) error {
				_, _, err := n.tenants.Set(tx, h.tenant.ID, c)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		yes, no := true, false
		p, c := h.payout(), h.collect()
		payout := func(r Payout) error { _, _, err := n.Payout(t.Context(), h.caller(), r); return err }
		collect := func(r Collect) error { _, _, err := n.Collect(t.Context(), h.caller(), r); return err }

		change(tenant.Change{Blocked: &yes})
		wantKind(t, payout(p), problem.Forbidden)
		wantKind(t, collect(c), problem.Forbidden)
		change(tenant.Change{Blocked: &no, PayoutsStopped: &yes, CollectionsEnabled: &no})
		wantKind(t, payout(p), problem.Forbidden)
		wantKind(t, collect(c), problem.Forbidden)
		change(tenant.Change{PayoutsStopped: &no, CollectionsEnabled: &yes})

		bad := p
		bad.Amount, bad.Reference, bad.Network, bad.MSISDN, bad.CallbackURL, bad.AccountType = 49, "short", "GLO", "0241234567", "http://example.com/x", "savings"
		e := wantKind(t, payout(bad), problem.Invalid)
		if got := fmt.Sprint(e.FieldNames()); got != "[account_number amount callback_url carriermomo_account_type channel client_reference]" {
			t.Errorf("bad fields: %s", got)
		}
		bad = p
		bad.Amount = tenant.DefaultWalletLimit + 1
		wantKind(t, payout(bad), problem.Invalid)
		badly := c
		badly.Amount = MaxCollection + 1
		wantKind(t, collect(badly), problem.Invalid)
		badly.Amount = MinCollection - 1
		wantKind(t, collect(badly), problem.Invalid)

		for _, name := range []string{"mtn", "hubtel"} {
			n.pauseRail(name)
		}
		wantKind(t, payout(p), problem.Unavailable)
		if n.balance() != funds || n.jobsLeft() != 0 {
			t.Error("a refusal left something behind")
		}
		n.books()
	})
}

// There are ten times as many callers as connections. Together they request twice the wallet's balance. Exactly the
// covered payouts are sent.
func TestAccept_moreCallersThanConnections(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), always(success))
		const callers = 80
		r := h.payout()
		r.Amount, r.CallbackURL = 24*money.Cedi, "" // 24.24 each: 41 fit into 1,000.00
		var mu sync.Mutex
		accepted, short := 0, 0
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() {
				r := r
				r.Reference = fmt.Sprintf("caller-%06d", i/2*2+i%2)
				_, _, err := n.Payout(t.Context(), h.caller(), r)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					accepted++
				case problem.Is(err, problem.InsufficientFunds):
					short++
				default:
					t.Error(err)
				}
			})
		}
		group.Wait()
		if accepted != 41 || short != callers-41 {
			t.Errorf("%d accepted and %d refused, want 41 and %d", accepted, short, callers-41)
		}
		n.pass(time.Second)
		if got := n.balance(); got != funds-41*2424 {
			t.Errorf("the wallet has %s", got)
		}
		n.books()
	})
}

// The same requests arrive at two nodes at once. For each reference one node pays.
func TestAccept_sameReferenceOnTwoNodes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a, b := h.node("a"), h.node("b")
		const references = 20
		var mu sync.Mutex
		accepted := map[string]int{}
		var group sync.WaitGroup
		for i := range references {
			for _, n := range []*node{a, b} {
				group.Go(func() {
					r := Payout{Amount: money.Cedi, Reference: fmt.Sprintf("both-nodes-%04d", i), MSISDN: "233241234567", Network: "MTN"}
					_, _, err := n.Payout(t.Context(), h.caller(), r)
					if err != nil && !problem.Is(err, problem.Duplicate) {
						t.Error(err)
					}
					if err == nil {
						mu.Lock()
						accepted[r.Reference]++
						mu.Unlock()
					}
				})
			}
		}
		group.Wait()
		for reference, n := range accepted {
			if n != 1 {
				t.Errorf("%s was accepted %d times", reference, n)
			}
		}
		if len(accepted) != references {
			t.Errorf("%d references were accepted, want %d", len(accepted), references)
		}
		if posts, _ := h.first.counts(); posts != references {
			t.Errorf("%d POSTs, want %d", posts, references)
		}
		if got := a.balance(); got != funds-references*(money.Cedi+10) {
			t.Errorf("the wallet has %s", got)
		}
		a.books()
	})
}

// Under another secret the ProviderReference differs. The second row is still refused, because its Reference exists.
func TestAccept_referenceUnderOtherSecret(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		r := h.payout()
		first, _, err := n.Payout(t.Context(), h.caller(), r)
		if err != nil {
			t.Fatal(err)
		}
		n.references = newReferences([]byte("another secret of this installation"))
		_, _, err = n.Payout(t.Context(), h.caller(), r)
		e := wantKind(t, err, problem.Duplicate)
		if old, ok := e.Data.(book.Payment); !ok || old.ID != first.ID {
			t.Errorf("the refusal shows %+v", e.Data)
		}
		if posts, _ := h.first.counts(); posts != 1 {
			t.Errorf("%d POSTs, want 1", posts)
		}
		n.books()
	})
}

// If a client disconnects during the provider's call, the payout continues.
func TestPayout_clientDisconnects(t *testing.T) {
	for name, gives := range map[string]func(r *Payout) (ctx context.Context, up func()){
		"gives the request up": func(*Payout) (context.Context, func()) { return context.WithCancel(t.Context()) },
		"hangs up": func(r *Payout) (context.Context, func()) {
			gone := make(chan struct{})
			r.Gone = gone
			return t.Context(), func() { close(gone) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d)
				n := h.node("a")
				entered, leave := make(chan struct{}), make(chan struct{})
				var cut error
				h.first.script(nil, always(notFound))
				n.fixture.first.slow = func(ctx context.Context) provider.Outcome {
					close(entered)
					<-leave
					cut = ctx.Err()
					return rejected
				}
				r := h.payout()
				ctx, up := gives(&r)
				answer := make(chan error, 1)
				go func() {
					_, _, err := n.Payout(ctx, h.caller(), r)
					answer <- err
				}()
				<-entered
				up()
				// The provider may be called before the abandoned request has read the result of its batch.
				if err := <-answer; err != nil && (r.Gone != nil || !errors.Is(err, db.ErrAmbiguous)) {
					t.Errorf("the client that went was answered %v", err)
				}
				close(leave)
				n.quiet()
				if cut != nil {
					t.Errorf("the provider's call was cut short: %v", cut)
				}
				rows, err := n.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout, Reference: r.Reference})
				if err != nil || len(rows.Rows) != 1 {
					t.Fatalf("%d rows, %v", len(rows.Rows), err)
				}
				if got := rows.Rows[0]; got.Status != book.StatusFailed || got.Refused {
					t.Errorf("the payout is %s, refused %v; want failed, and nobody was there to be refused", got.Status, got.Refused)
				}
				if told := h.hooks.of(r.Reference); len(told) != 1 || told[0] != "failed" {
					t.Errorf("the customer was told %v", told)
				}
				n.books()
			})
		})
	}
}

// After 8 s the payout is answered as accepted, and a later refusal is sent by webhook.
func TestPayout_answeredWithin8s(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		n := h.node("a")
		entered, leave := make(chan struct{}), make(chan struct{})
		h.first.script(nil, always(notFound))
		h.first.slow = func(context.Context) provider.Outcome {
			close(entered)
			<-leave
			return rejected
		}
		r, who := h.payout(), h.caller()
		who.IdempotencyKey, who.BodyHash = "key-of-a-slow-payout", "hash"
		type answer struct {
			pay book.Payment
			err error
		}
		got := make(chan answer, 1)
		go func() {
			pay, _, err := n.Payout(t.Context(), who, r)
			got <- answer{pay, err}
		}()
		<-entered
		for waiting := true; waiting; { // the request may not have set its timer yet
			n.clock.Advance(answerTime)
			select {
			case a := <-got:
				if a.err != nil || a.pay.Status != book.StatusPending {
					t.Errorf("the answer is %s, %v", a.pay.Status, a.err)
				}
				waiting = false
			case <-time.After(time.Millisecond):
			}
		}
		// A repeated request gets the same answer while the provider's call continues.
		if pay, replayed, err := n.Payout(t.Context(), who, r); err != nil || !replayed || pay.Status != book.StatusPending {
			t.Errorf("the answer again is %s, replayed %v, %v", pay.Status, replayed, err)
		}
		close(leave)
		n.quiet()
		if told := h.hooks.of(r.Reference); len(told) != 1 || told[0] != "failed" {
			t.Errorf("the customer was told %v", told)
		}
		if n.balance() != funds {
			t.Errorf("the wallet has %s", n.balance())
		}
		n.books()
	})
}

// A provider whose status interface does not answer still receives submissions.
func TestSubmissions_silentStatusInterface(t *testing.T) {
	const open = sendsPerRail + 16 // more than the capacity of one line
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		asked, answers := make(chan struct{}, open), make(chan struct{})
		h.first.script(always(pending), func(int, string) provider.Outcome {
			asked <- struct{}{}
			<-answers
			return success
		})
		n := h.node("a")
		t.Cleanup(func() { close(answers) })
		pay := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			r := h.payout()
			r.Amount = MinPayout
			_, _, err := n.Payout(ctx, h.caller(), r)
			return err
		}
		for range open {
			if err := pay(); err != nil {
				t.Fatal(err)
			}
		}
		h.clock.Advance(queryPauses[0] + time.Second)
		for range queriesPerRail {
			<-asked
		}
		sent, _ := h.first.counts()
		if err := pay(); err != nil {
			t.Fatal(err)
		}
		if now, _ := h.first.counts(); now != sent+1 {
			t.Errorf("a payout was answered without having been sent: %d POSTs after %d", now, sent)
		}
	})
}

// The commits of a payout are acceptance, settlement and delivery.
func TestPayout_threeCommits(t *testing.T) {
	dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
		h := newFixture(t, d)
		n := h.node("a")
		h.first.script(always(pending), always(success))
		var mu sync.Mutex
		commits := 0
		// The first payout also creates lasting rows, such as its list.
		for i := range 2 {
			f.Decide(func(b db.Boundary) db.Fault {
				mu.Lock()
				defer mu.Unlock()
				if b == db.BoundaryCommit {
					commits++
				}
				return db.FaultNone
			})
			commits = 0
			r := h.payout()
			if _, _, err := n.Payout(t.Context(), h.caller(), r); err != nil {
				t.Fatal(err)
			}
			n.pass(time.Second)
			f.Decide(nil)
			if told := h.hooks.of(r.Reference); len(told) != 1 {
				t.Fatalf("payout %d: the customer was told %v", i, told)
			}
			if commits > 3 {
				t.Errorf("payout %d took %d commits, want at most 3", i, commits)
			}
		}
	})
}

// The provider refuses while the database is down. A request answered as accepted gets the refusal by webhook; a
// request answered with the refusal gets no webhook.
func TestRefusal_databaseDown(t *testing.T) {
	for _, away := range []time.Duration{3 * time.Second, time.Minute} {
		t.Run("for "+away.String(), func(t *testing.T) {
			dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
				h := newFixture(t, d)
				n := h.node("a")
				n.quiet() // it has made its one search for jobs of other nodes
				back := n.clock.Now().Add(away)
				h.first.script(func(int, string) provider.Outcome {
					f.Decide(func(db.Boundary) db.Fault {
						if n.clock.Now().Before(back) {
							return db.FaultBefore
						}
						return db.FaultNone
					})
					return rejected
				}, always(notFound))
				r := h.payout()
				answer := make(chan error, 1)
				go func() {
					_, _, err := n.Payout(t.Context(), h.caller(), r)
					answer <- err
				}()
				var err error
				clocktest.Await(t, "the answer", func() bool {
					select {
					case err = <-answer:
						return true
					default:
						n.clock.Advance(100 * time.Millisecond)
						return false
					}
				})
				n.pass(2 * away)
				rows, read := n.History(t.Context(), h.tenant.ID, book.Filter{Kind: book.KindPayout, Reference: r.Reference})
				if read != nil || len(rows.Rows) != 1 || rows.Rows[0].Status != book.StatusFailed {
					t.Fatalf("%+v, %v", rows, read)
				}
				refused, told := rows.Rows[0].Refused, h.hooks.of(r.Reference)
				switch {
				case err == nil && !refused && slices.Equal(told, []string{"failed"}):
				case problem.Is(err, problem.Refused) && refused && len(told) == 0:
				case problem.Is(err, problem.Unavailable): // the error tells the client to query the payment
				default:
					t.Errorf("answered %v, refused %v, told %v", err, refused, told)
				}
				n.books()
			})
		})
	}
}

// The connection breaks at every boundary of a payout, once with each fault. Every answer is true, and no money moves
// twice.
func TestPayout_lostConnections(t *testing.T) {
	lives := []struct {
		name string
		post func(int, string) provider.Outcome
		ask  func(int, string) provider.Outcome
		want book.Status
	}{
		{"paid", always(pending), always(success), book.StatusSuccess},
		{"refused", always(rejected), always(notFound), book.StatusFailed},
		{"turned away once", sequence(barred, pending), always(success), book.StatusSuccess},
	}
	for _, life := range lives {
		for _, network := range []string{"MTN", "TELECEL"} {
			t.Run(life.name+" "+network, func(t *testing.T) {
				dbtest.EachFaulty(t, func(t *testing.T, d *db.DB, f *db.Faults) {
					h := newFixture(t, d)
					n := h.node("a")
					rail := h.first
					if network != "MTN" {
						rail = h.second
					}
					for _, boundary := range []db.Boundary{db.BoundaryExchange, db.BoundaryCommit} {
						for _, fault := range []db.Fault{db.FaultBefore, db.FaultAfter, db.FaultConflict} {
							for nth := 1; nth <= 4; nth++ {
								rail.script(life.post, life.ask)
								r := h.payout()
								if network != "MTN" {
									r.Network, r.MSISDN = "TELECEL", "233201234567"
								}
								breakAt(f, boundary, nth, fault)
								pay, _, err := n.Payout(t.Context(), h.caller(), r)
								f.Decide(nil)
								if errors.Is(err, db.ErrUnavailable) {
									continue // the answer said that nothing happened; books checks that
								}
								told := 1
								if problem.Is(err, problem.Refused) {
									told = 0 // the answer reported it
									pay = problem.From(err).Data.(book.Payment)
								} else if err != nil {
									t.Fatalf("%v %v at %d: %v", boundary, fault, nth, err)
								}
								n.pass(20 * time.Second)
								if got := n.must(book.KindPayout, pay.ID); got.Status != life.want {
									t.Errorf("%v %v at %d: %s, want %s", boundary, fault, nth, got.Status, life.want)
								}
								if is := h.hooks.of(r.Reference); len(is) != told {
									t.Errorf("%v %v at %d: the customer was told %v", boundary, fault, nth, is)
								}
							}
						}
					}
					n.books()
					if left := n.jobsLeft(); left != 0 {
						t.Errorf("%d jobs are left", left)
					}
				})
			})
		}
	}
}

// breakAt breaks the connection the nth time from now that it passes a boundary.
func breakAt(f *db.Faults, at db.Boundary, nth int, fault db.Fault) {
	passed := 0
	f.Decide(func(b db.Boundary) db.Fault {
		if b == at {
			if passed++; passed == nth {
				return fault
			}
		}
		return db.FaultNone
	})
}
