// Package checkup tests the configuration of a provider: its credentials, its callbacks, its status interface, its float and the
// last payment over it. A test only queries the provider and moves no money. Its results are stored, so that pages and commands
// show the same results.
package checkup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
)

// State is the result of a check.
type State string

// The states. Only Fail means that the provider cannot be used.
const (
	OK   State = "ok"
	Warn State = "warn"
	Fail State = "fail"
)

// Result is one line of a test.
type Result struct {
	Mode, Provider string
	Subject        string // such as "credentials"
	State          State
	Fact           string
	Fix            string // empty if no action is needed
	At             time.Time
}

// Deps are the dependencies of New.
type Deps struct {
	DB     *db.DB
	Clock  *clock.Clock
	Routes *route.Table // its rails are tested, too
	Texts  []provider.TextRail
	Book   *book.Reader
	// Binds returns the connections of texts, as the node that has them reported them.
	Binds      func(context.Context) ([]messaging.Bind, error)
	TextRoutes []config.SMSRoute // of the server's settings
}

// Checkup tests providers. It is safe for concurrent use.
type Checkup struct{ Deps }

// New makes a Checkup.
func New(d Deps) *Checkup { return &Checkup{d} }

// Action is the action of a test in the audit log.
const Action = "provider.test"

// within bounds the calls to one provider.
const within = 15 * time.Second

// Names returns every provider that can be tested here.
func (c *Checkup) Names(ctx context.Context) (names []string, err error) {
	binds, err := c.Binds(ctx)
	for _, b := range binds {
		names = append(names, b.Name)
	}
	for _, r := range c.Routes.Rails() {
		names = append(names, r.Name)
	}
	for _, r := range c.Texts {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// Test tests a provider in each mode in which this process has an account with it. mode narrows the test; empty: both modes.
func (c *Checkup) Test(ctx context.Context, name, mode string) ([]Result, error) {
	names, err := c.Names(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, name) {
		var f problem.Fields
		f.Add("provider", "has no account here: must be one of "+strings.Join(names, ", "))
		return nil, f.Err()
	}
	binds, err := c.Binds(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	all := []Result{}
	for _, r := range c.Routes.Rails() {
		if r.Name == name && (mode == "" || mode == r.Mode) {
			found, err := c.rail(ctx, r)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	for _, r := range c.Texts {
		if r.Name == name && (mode == "" || mode == r.Mode) {
			found, err := c.texts(ctx, r, binds)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	for _, b := range binds {
		overHTTP := slices.ContainsFunc(c.Texts, func(r provider.TextRail) bool { return r.Name == b.Name })
		if b.Name == name && !overHTTP && (mode == "" || mode == string(b.Mode)) {
			all = append(all, c.bind(b)...)
		}
	}
	return all, c.store(ctx, name, mode, all)
}

// sheet gathers the results of one account.
type sheet struct {
	mode, provider string
	at             time.Time
	results        []Result
}

func (s *sheet) add(state State, subject, fact, fix string) {
	s.results = append(s.results, Result{Mode: s.mode, Provider: s.provider, Subject: subject, State: state, Fact: fact, Fix: fix, At: s.at})
}

// rail tests an account for payments.
func (c *Checkup) rail(ctx context.Context, r provider.Rail) ([]Result, error) {
	s := &sheet{mode: r.Mode, provider: r.Name, at: c.Clock.Now()}
	known, err := c.Routes.AskNotKnownOf(ctx, r)
	if err != nil {
		return nil, err
	}
	var held []provider.Held
	var answer provider.Outcome
	if r.Floats != nil {
		held, answer = r.Floats.Float(ctx)
	}
	s.credentials(answer, known)
	if err := c.callbacks(ctx, s, r.Callbacks != nil); err != nil {
		return nil, err
	}
	s.statuses(known)
	if err := c.floats(ctx, s, r, held, answer); err != nil {
		return nil, err
	}
	return s.results, c.lastPayment(ctx, s)
}

// refused reports whether a provider turned the account away.
func refused(o provider.Outcome) bool {
	status, _, _ := strings.Cut(o.Code, ":")
	return status == "401" || status == "403"
}

// credentials checks the response to a query that needs credentials. A rejection by the status interface counts, too, because a
// provider may have separate keys for it.
func (s *sheet) credentials(answer provider.Outcome, known []route.NotKnown) {
	const subject = "credentials"
	for _, k := range known {
		if o := (provider.Outcome{Code: k.Answer}); refused(o) && !refused(answer) {
			answer, answer.Message = o, "the status query of "+string(k.Operation)
		}
	}
	said := strings.TrimSpace("HTTP " + answer.Code + " " + answer.Message)
	switch {
	case refused(answer):
		s.add(Fail, subject, "refused: "+said, "Compare the keys of the server's settings with the provider's dashboard. Ask the provider whether this machine's address may call.")
	case answer.Class == provider.Accepted && answer.Message != "":
		s.add(OK, subject, "accepted: "+answer.Message, "")
	case answer.Class == provider.Accepted:
		s.add(OK, subject, "accepted", "")
	case answer.Code == "":
		s.add(Fail, subject, strings.TrimSpace("no response "+answer.Message), "Check the provider's URL, the firewall and the egress proxy: run makola doctor.")
	default:
		s.add(Warn, subject, "no usable response: "+said, "Test again later. Look at the provider's status page and at makola providers exchanges.")
	}
}

// callbacks reports the number of verified and refused callbacks, and the time of the last of each.
func (c *Checkup) callbacks(ctx context.Context, s *sheet, has bool) error {
	const subject = "callbacks"
	if !has {
		s.add(OK, subject, "the provider sends none", "")
		return nil
	}
	n, err := c.Routes.CallbacksOf(ctx, s.provider, s.mode)
	if err != nil {
		return err
	}
	fact := "none verified yet"
	if n.Verified > 0 {
		fact = fmt.Sprintf("%d verified, the last at %s", n.Verified, stamp(n.VerifiedAt))
	}
	if n.Refused > 0 {
		fact += fmt.Sprintf("; %d refused, the last at %s", n.Refused, stamp(n.RefusedAt))
	}
	switch {
	case n.Refused > 0 && !n.VerifiedAt.After(n.RefusedAt):
		s.add(Warn, subject, fact, "Compare the key that signs callbacks. If the key is right, the callbacks are forged: create a new address or key.")
	case n.Verified == 0:
		s.add(Warn, subject, fact, "Make a payment or send a text. If none arrives, check that the provider reaches MAKOLA_PUBLIC_URL, and the address of makola providers callback in its dashboard.")
	default:
		s.add(OK, subject, fact, "")
	}
	return nil
}

// statuses checks the responses to a status query of an unknown reference.
func (s *sheet) statuses(known []route.NotKnown) {
	for _, k := range known {
		subject := "status of " + string(k.Operation)
		switch k.State {
		case route.Understood:
			s.add(OK, subject, "an unknown reference is answered as documented", "")
		case route.NoAnswer:
			s.add(Warn, subject, strings.TrimSpace("no response "+k.Answer), "Test again later. Until the provider answers, outcomes of payments stay unknown.")
		default:
			s.add(Warn, subject, "the response to an unknown reference is not understood: "+k.Answer, "Ask the provider for the meaning of this response, and configure it as docs/providers.md describes. Until then refused payments wait for an operator.")
		}
	}
}

// floats compares the provider's balances with the ledger.
func (c *Checkup) floats(ctx context.Context, s *sheet, r provider.Rail, held []provider.Held, answer provider.Outcome) error {
	if r.Floats == nil {
		return nil
	}
	ours, err := c.Book.Floats(ctx, r.Name, r.Mode)
	if err != nil {
		return err
	}
	for _, account := range r.Accounts.Names() {
		subject, own := "float "+account, "ours is "+cedis(ours[account])
		n := slices.IndexFunc(held, func(h provider.Held) bool { return h.Account == account })
		switch {
		case answer.Class != provider.Accepted || n < 0:
			s.add(Warn, subject, "the provider reports no balance; "+own, "Test again later, or read the balance in the provider's dashboard.")
		case held[n].Amount != ours[account]:
			s.add(Warn, subject, "the provider's balance is "+cedis(held[n].Amount)+"; "+own,
				"Payments in progress can explain a difference. Otherwise book the difference with makola float add, or reconcile the provider's statement.")
		default:
			s.add(OK, subject, "both balances are "+cedis(held[n].Amount), "")
		}
	}
	return nil
}

// lastPayment reports the newest successful payment over the provider.
func (c *Checkup) lastPayment(ctx context.Context, s *sheet) error {
	const subject = "last payment"
	found, err := c.Book.Latest(ctx, book.LatestFilter{Rail: s.provider, Status: string(book.StatusSuccess), Limit: book.MaxPageSize})
	if err != nil {
		return err
	}
	n := slices.IndexFunc(found.Payments, func(p book.Payment) bool { return p.Mode == s.mode })
	if n < 0 {
		s.add(Warn, subject, "no successful payment among the newest", "Pay GHS 1.00 from the account of your own business, and compare payment, float and the provider's dashboard.")
		return nil
	}
	p := found.Payments[n]
	s.add(OK, subject, fmt.Sprintf("%s of %s succeeded, accepted at %s", p.Kind, cedis(p.Amount), stamp(p.CreatedAt)), "")
	return nil
}

func cedis(a money.Pesewas) string { return "GHS " + money.Grouped(a.String()) }

func stamp(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04") }
