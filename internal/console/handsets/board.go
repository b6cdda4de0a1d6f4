package handsets

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/google/uuid"

	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/page"
	"github.com/makola/makola/internal/payments"
	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/roles"
	"github.com/makola/makola/internal/tenant"
)

// The first handsets are of numbers that ask for approval.
const firstHandsets = "0240000040,0200000040"

// Limits of the page.
const (
	mostHandsets  = 6
	shownTexts    = 8
	shownPrompts  = 3
	shownBooked   = 8
	shownHooks    = 4
	shownPayments = 4
)

// handset is a phone with its prompts and messages.
type handset struct {
	number   msisdn.MSISDN
	network  msisdn.Network
	waiting  []simPrompt
	answered []simPrompt
	inbox    []simMessage
	without  string // the page without this handset
}

// board is the content of the handsets' page.
type board struct {
	tenant   tenant.Tenant // of the visitor; zero: none
	wallet   money.Pesewas
	credits  int64
	payments []book.Payment
	handsets []handset
	booked   []simMovement
	faults   []simFault
	hooks    []hook
	hookURL  string
	numbers  string // the handsets' numbers, with commas
	now      string
}

// simPage is the whole of /sim.
func (ps *Pages) simPage(v *console.Visit) (console.Answer, error) {
	return ps.simulated(v, page.Form{})
}

// simulated makes the page, with a form that was refused.
func (ps *Pages) simulated(v *console.Visit, refused page.Form) (console.Answer, error) {
	b, err := ps.board(v)
	if err != nil {
		return console.Answer{}, err
	}
	v.Home = &url.URL{Path: "/sim", RawQuery: url.Values{"h": {b.numbers}}.Encode()}
	money, err := v.Part("money", 1, moneyOf(b))
	if err != nil {
		return console.Answer{}, err
	}
	live, err := v.Part("board", 1, handsetBoard(v, b))
	if err != nil {
		return console.Answer{}, err
	}
	return console.Answer{Title: "Test phones", Body: handsetPage(v, b, ps.collectForm(b, refused), money, live), Wrong: len(refused.Fields) > 0}, nil
}

// board reads the content of the page.
func (ps *Pages) board(v *console.Visit) (b board, err error) {
	if b.tenant, err = ps.testTenant(v); err != nil {
		return b, err
	}
	if b.tenant.ID != "" {
		if err := ps.books(v, &b); err != nil {
			return b, err
		}
	}
	if b.handsets, err = ps.handsets(v); err != nil {
		return b, err
	}
	var numbers []string
	for _, h := range b.handsets {
		numbers = append(numbers, h.number.Local())
	}
	b.numbers = strings.Join(numbers, ",")
	for i := range b.handsets {
		rest := slices.Delete(slices.Clone(numbers), i, i+1)
		b.handsets[i].without = "/sim?" + url.Values{"h": {strings.Join(rest, ",")}}.Encode()
	}
	if b.booked, err = ps.sim().statement(v.Ctx); err != nil {
		return b, err
	}
	slices.SortStableFunc(b.booked, func(x, y simMovement) int { return cmp.Compare(y.At, x.At) })
	b.booked = b.booked[:min(len(b.booked), shownBooked)]
	b.faults, err = ps.sim().faults(v.Ctx)
	b.now = page.When(v.Now())
	return b, err
}

// books reads the balances of the visitor's test account.
func (ps *Pages) books(v *console.Visit, b *board) error {
	wallet, err := ps.Ledger.Balance(v.Ctx, b.tenant.Wallet())
	if err != nil {
		return err
	}
	b.wallet = money.Pesewas(wallet)
	if b.credits, err = ps.Ledger.Balance(v.Ctx, ledger.Key(b.tenant.SMSCredits())); err != nil {
		return err
	}
	for _, kind := range []book.Kind{book.KindCollection, book.KindPayout} {
		found, err := ps.Payments.History(v.Ctx, b.tenant.ID, book.Filter{Kind: kind, Size: shownPayments})
		if err != nil {
			return err
		}
		b.payments = append(b.payments, found.Rows...)
	}
	slices.SortFunc(b.payments, func(x, y book.Payment) int { return cmp.Compare(y.ID, x.ID) })
	b.payments = b.payments[:min(len(b.payments), shownPayments)]
	hooks := ps.hooks.latest(b.tenant.ID)
	b.hooks = hooks[:min(len(hooks), shownHooks)]
	b.hookURL = v.PublicURL() + "/sim/hooks/" + b.tenant.ID
	return nil
}

// testTenant is the first tenant of the visitor that has test money.
func (ps *Pages) testTenant(v *console.Visit) (tenant.Tenant, error) {
	for _, m := range v.Who.Memberships {
		if m.Tenant == roles.Installation {
			continue
		}
		t, err := ps.Tenants.Get(v.Ctx, m.Tenant)
		if err == nil && t.Mode == tenant.Test {
			return t, nil
		}
		if err != nil && !problem.Is(err, problem.NotFound) {
			return tenant.Tenant{}, err
		}
	}
	return tenant.Tenant{}, nil
}

// handsets returns the handsets that the address names, or the first ones.
func (ps *Pages) handsets(v *console.Visit) (list []handset, err error) {
	named := v.R.FormValue("h")
	if named == "" {
		named = firstHandsets
	}
	named += "," + v.R.FormValue("add")
	for text := range strings.SplitSeq(named, ",") {
		number, err := msisdn.Parse(text)
		if err != nil || len(list) == mostHandsets || slices.ContainsFunc(list, func(h handset) bool { return h.number == number }) {
			continue
		}
		h := handset{number: number}
		h.network, _ = number.LikelyNetwork()
		if err := ps.look(v, &h); err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, nil
}

// look reads the prompts and messages of a handset.
func (ps *Pages) look(v *console.Visit, h *handset) error {
	prompts, err := ps.sim().prompts(v.Ctx, h.number.Local())
	if err != nil {
		return err
	}
	slices.Reverse(prompts)
	for _, p := range prompts {
		if p.Status == "pending" {
			h.waiting = append(h.waiting, p)
		} else if len(h.answered) < shownPrompts {
			h.answered = append(h.answered, p)
		}
	}
	h.inbox, err = ps.sim().messages(v.Ctx, h.number.Local())
	slices.Reverse(h.inbox)
	h.inbox = h.inbox[:min(len(h.inbox), shownTexts)]
	return err
}

// collectForm asks one of the handsets for money.
func (ps *Pages) collectForm(b board, refused page.Form) templ.Component {
	if b.tenant.ID == "" {
		return page.Nothing(page.Empty{Title: "No test account", Text: "You have no role at a test account that can request a payment."})
	}
	f := page.Form{ID: "collect", Action: "/sim/collect", Submit: "Request payment", Wrong: refused.Wrong}
	var numbers []page.Option
	for _, h := range b.handsets {
		numbers = append(numbers, page.Option{Value: h.number.Local(), Text: h.number.Local() + " " + string(h.network)})
	}
	f.Fields = []page.Field{
		{Name: "amount", Label: "Amount in GHS", Value: "12.50", Max: 12, Required: true},
		{Name: "phone", Label: "From", Options: numbers},
		{Name: "reference", Type: "hidden", Value: "handset-" + uuid.NewString()[:23]},
		{Name: "h", Type: "hidden", Value: b.numbers},
	}
	for _, was := range refused.Fields {
		for i := range f.Fields {
			if f.Fields[i].Name == was.Name {
				f.Fields[i].Value, f.Fields[i].Wrong = was.Value, was.Wrong
			}
		}
	}
	return page.Asking(f)
}

// collect requests money from a handset's owner on behalf of the visitor's test tenant, as the tenant's own program
// would.
func (ps *Pages) collect(v *console.Visit) (console.Answer, error) {
	t, err := ps.testTenant(v)
	if err != nil || t.ID == "" {
		return console.Answer{}, cmp.Or(err, console.ErrNoPage())
	}
	form := v.R.PostForm
	ask := payments.Collect{Reference: form.Get("reference"), Label: t.Name, CallbackURL: v.PublicURL() + "/sim/hooks/" + t.ID}
	refused := page.Form{Fields: []page.Field{{Name: "amount", Value: form.Get("amount")}, {Name: "phone", Value: form.Get("phone")}}}
	if ask.Amount, err = money.Parse(strings.TrimSpace(form.Get("amount"))); err != nil {
		refused.Fields[0].Wrong = err.Error()
		return ps.simulated(v, refused)
	}
	if ask.MSISDN, err = msisdn.Parse(form.Get("phone")); err != nil {
		refused.Fields[1].Wrong = "must be a mobile number of Ghana"
		return ps.simulated(v, refused)
	}
	ask.Network, _ = ask.MSISDN.LikelyNetwork()
	_, _, err = ps.Payments.Collect(v.Ctx, idempotency.Caller{Tenant: t.ID}, ask)
	e := problem.From(err)
	switch {
	case err == nil, e.Kind == problem.Duplicate: // the same form was sent twice
		return toSim(v), nil
	case e.Kind == problem.Invalid && len(e.Fields["amount"]) > 0:
		refused.Fields[0].Wrong = e.Fields["amount"][0]
		return ps.simulated(v, refused)
	case e.Kind == problem.Internal, e.Kind == problem.Unavailable:
		return console.Answer{}, err
	}
	refused.Wrong = e.Message
	return ps.simulated(v, refused)
}

// toSim redirects back to the same handsets.
func toSim(v *console.Visit) console.Answer {
	to := "/sim"
	if h := v.R.PostFormValue("h"); h != "" && h != firstHandsets {
		to += "?" + url.Values{"h": {h}}.Encode()
	}
	return console.Answer{To: to}
}

// answerPrompt approves, declines or mistypes the PIN of a prompt.
func (ps *Pages) answerPrompt(v *console.Visit) (console.Answer, error) {
	action := v.R.PostFormValue("action")
	err := ps.sim().answer(v.Ctx, v.R.PathValue("msisdn"), v.R.PathValue("id"), action)
	if problem.Is(err, problem.InProgress) { // the prompt was answered in another tab
		err = nil
	}
	return toSim(v), err
}

// addFault makes a simulated provider fail.
func (ps *Pages) addFault(v *console.Visit) (console.Answer, error) {
	count, err := strconv.Atoi(v.R.PostFormValue("count"))
	if err != nil || count < 1 || count > 1000 {
		return console.Answer{}, problem.Field("count", "must be between 1 and 1000")
	}
	return toSim(v), ps.sim().addFault(v.Ctx, v.R.PostFormValue("provider"), v.R.PostFormValue("fault"), count)
}

func (ps *Pages) clearFaults(v *console.Visit) (console.Answer, error) {
	return toSim(v), ps.sim().clearFaults(v.Ctx)
}

// moveClock advances the clock of this Makola and its simulator.
func (ps *Pages) moveClock(v *console.Visit) (console.Answer, error) {
	seconds, err := strconv.Atoi(v.R.PostFormValue("seconds"))
	if err != nil || seconds < 1 || seconds > 7*24*3600 {
		return console.Answer{}, problem.Field("seconds", "must be between 1 and a week")
	}
	return toSim(v), ps.sim().advance(v.Ctx, seconds)
}

// simFaults are the faults that the page offers. The simulator's interface has more.
var simFaults = []page.Option{
	{Value: "answer_lost", Text: "Request done, answer lost"},
	{Value: "outage", Text: "Outage: nothing is done"},
	{Value: "slow", Text: "Slow answers"},
	{Value: "error_after", Text: "Request done, error 500"},
	{Value: "refuse", Text: "Refusal"},
	{Value: "fail", Text: "Accepted, failed later"},
	{Value: "stuck", Text: "Pending until resolved"},
	{Value: "callback_missing", Text: "No callback"},
	{Value: "callback_duplicate", Text: "Callback sent twice"},
	{Value: "reverse", Text: "Success, reversed later"},
}

// simProviders are the simulated providers that can get a fault.
var simProviders = []page.Option{{Value: "mtn", Text: "MTN"}, {Value: "hubtel", Text: "Hubtel"}, {Value: "paystack", Text: "Paystack"}, {Value: "pawapay", Text: "pawaPay"}, {Value: "moolre", Text: "Moolre"}, {Value: "smsc", Text: "Message centre"}, {Value: "arkesel", Text: "Arkesel"}, {Value: "hubtelsms", Text: "Hubtel SMS"}}

// simSteps are the steps by which a person can advance the clock.
var simSteps = []page.Option{{Value: "60", Text: "1 minute"}, {Value: "3600", Text: "1 hour"}, {Value: "86400", Text: "1 day"}}

// promptBadges are the badges for the states of a prompt and of a payment in the simulator's books.
var promptBadges = map[string]page.Badge{
	"pending":   {Tone: page.Open, Word: "Waiting"},
	"approved":  {Tone: page.Good, Word: "Approved"},
	"success":   {Tone: page.Good, Word: "Success"},
	"declined":  {Tone: page.Declined, Word: "Declined"},
	"wrong_pin": {Tone: page.Declined, Word: "Wrong PIN"},
	"expired":   {Tone: page.Plain, Word: "Expired"},
	"failed":    {Tone: page.Bad, Word: "Failed"},
}
