package hubtel

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/sim"
)

// hubtel is the simulated Hubtel. Its seven hosts are the first elements of paths. It has one Basic credential and a
// list of addresses that may call.
type hubtel struct {
	s       *sim.Sim
	mux     *http.ServeMux
	allowed []netip.Prefix // empty: all

	mu   sync.Mutex
	used map[string]bool // references that were refused at once, and are used up nevertheless
}

// call is one request.
type call struct{ *sim.Call }

// reject answers a request with a refusal. Nothing is entered or moved.
func (c *call) reject(status int, code, message string, data any) {
	c.Write(status, "application/json", sim.Encode(answer{message, code, data}))
}

// request has all members that a request may have. Like Hubtel, encoding/json accepts the names in any case.
type request struct {
	CustomerMsisdn     string
	RecipientMsisdn    string
	RecipientName      string
	BankAccountNumber  string
	Destination        string
	Channel            string
	Amount             json.Number
	PrimaryCallbackURL string
	CallbackURL        string
	Description        string
	ClientReference    string
	Extradata          struct{ Bundle string }
}

// body reads a request that moves money and makes the checks that all such requests need. ok is false if the request
// was answered.
func (c *call) body() (b request, amount money.Pesewas, ok bool) {
	raw, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(raw, &b)
	}
	if b.CallbackURL == "" {
		b.CallbackURL = b.PrimaryCallbackURL
	}
	wrong := ""
	if err != nil {
		wrong = "the body is no JSON"
	}
	if amount, err = parseAmount(b.Amount); wrong == "" && (err != nil || amount <= 0) {
		wrong = "Amount must be positive with two decimals"
	}
	if wrong == "" && b.CallbackURL == "" {
		wrong = "a callback URL is required"
	}
	if wrong == "" && (b.ClientReference == "" || len(b.ClientReference) > 36 || !alphanumeric(b.ClientReference)) {
		wrong = "ClientReference must be alphanumeric with at most 36 characters"
	}
	if wrong == "" && strings.ContainsAny(b.Description, "&%^") {
		wrong = "Description has invalid characters"
	}
	if wrong != "" {
		c.invalid(wrong)
		return b, 0, false
	}
	return b, amount, true
}

func (c *call) invalid(what string) {
	c.reject(http.StatusBadRequest, "4000", "Validation errors. Something is not quite right with this request: "+what, nil)
}

// parseAmount parses a JSON number with at most two decimals. Further decimals must be zero.
func parseAmount(n json.Number) (money.Pesewas, error) {
	s := string(n)
	if whole, rest, dotted := strings.Cut(s, "."); dotted && len(rest) > 2 && strings.Trim(rest[2:], "0") == "" {
		s = whole + "." + rest[:2]
	}
	return money.Parse(s)
}

func alphanumeric(s string) bool {
	for _, r := range s {
		if !(r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return false
		}
	}
	return true
}

// place enters an order. If the order cannot be entered, it answers the request. The first request uses up a
// reference, whatever its outcome. A second request is refused like any other invalid one, because Hubtel has no code
// for it.
func (h *hubtel) place(c *call, o sim.Order) (sim.Entry, bool) {
	h.mu.Lock()
	used := h.used[sim.Plain(o.Reference)]
	h.mu.Unlock()
	if used {
		c.invalid("ClientReference")
		return sim.Entry{}, false
	}
	p, ok := c.Order(o)
	switch {
	case !ok:
		return sim.Entry{}, false
	case p.Existed:
		c.invalid("ClientReference")
	case p.Refused != "":
		h.mu.Lock()
		h.used[sim.Plain(o.Reference)] = true
		h.mu.Unlock()
		if f := c.Hit.Of(sim.RefuseOutright); f.Answer != "" {
			c.Refusal(f.Answer, o)
			break
		}
		code, message := codeOf(p.Refused, o.Kind)
		c.Write(http.StatusOK, "application/json", sim.Encode(envelope(c.Op, message, code, orderData(sim.Entry{Order: o, Status: sim.Failed, Reason: p.Refused}))))
	default:
		return p.Entry, true
	}
	return sim.Entry{}, false
}

// accepted answers 0001, whatever has happened to the entry since.
func (c *call) accepted(e sim.Entry) {
	e.Status = sim.Pending
	code, message := outcome(e)
	c.Answer(http.StatusOK, "application/json", sim.Encode(envelope(c.Op, message, code, orderData(e))))
}

// notKnown answers a query about a reference that Hubtel does not have.
func (h *hubtel) notKnown(c *call) {
	reply := notKnownReplies[0]
	c.Answer(reply.Status, "application/json", sim.Encode(envelope(c.Op, "Not found", reply.Code, nil)))
}

// asked returns the entry of a status query.
func (h *hubtel) asked(c *call, kinds ...sim.Kind) (sim.Entry, bool) {
	e, ok := h.s.Status(Name, c.Request.URL.Query().Get("clientReference"))
	if !ok || c.Hides(e) || !slices.Contains(kinds, e.Kind) {
		return sim.Entry{}, false
	}
	c.Bends(&e)
	return e, true
}

// accountFits reports whether a text may be the number of a bank account.
func accountFits(s string) bool { return len(s) >= 7 && len(s) <= 16 && alphanumeric(s) }
