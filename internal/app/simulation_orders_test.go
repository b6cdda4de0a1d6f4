package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/tenant"
)

// order is one request of a customer, with its answers and webhooks.
type order struct {
	customer  *customer
	kind      string // payout, bank, collection, topup, bundle, buy
	path      string
	body      map[string]any
	raw       string // sent instead of body
	header    []string
	reference string
	callback  string // path at the inbox; empty: no webhook was requested
	amount    money.Pesewas
	magic     string
	weather   string

	status  int
	code    string
	message string
	data    json.RawMessage
	again   bool // repeats an earlier order
	first   *order
	unclear bool // the order was repeated, and its answer may have left a row
}

// offerSeen is a package that a customer was offered.
type offerSeen struct {
	customer             *customer
	service, id, network string
	phone                string
	amount               money.Pesewas
}

// makeCustomers makes three customers: one with much money, one whose customers pay the fees, and one with little money.
func (w *world) makeCustomers() {
	n := w.nodes[0]
	for i, c := range []struct {
		name   string
		money  int64
		bearer tenant.FeeBearer
	}{{"Rich", 100_000_000, tenant.Merchant}, {"Bearer", 50_000_000, tenant.Customer}, {"Poor", 20_000, tenant.Merchant}} {
		id := uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "simulation %d", i)).String()
		key, err := n.access.Mint(access.NewKey{Tenant: id})
		if err != nil {
			w.t.Fatal(err)
		}
		err = n.db.Write(context.Background(), func(tx *db.Tx) error {
			if _, err := n.tenants.Create(tx, tenant.Tenant{ID: id, Name: c.name, Mode: tenant.Test, CollectionsEnabled: true, FeeBearer: c.bearer, Email: "accounts@example.com", Voucher: true}); err != nil {
				return err
			}
			n.access.CreateKey(tx, key)
			if _, err := n.tenants.SetFeePlan(tx, id, w.clock.Now(), tenant.DemoPlan()); err != nil {
				return err
			}
			_, err := n.access.SetPayoutIPs(tx, id, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if err := n.treasury.Fund(context.Background(), id, money.Pesewas(c.money), "simulation", "test"); err != nil {
			w.t.Fatal(err)
		}
		w.customers = append(w.customers, &customer{id: id, key: key.Text, given: c.money})
	}
}

// readCatalogue reads the ids that orders need, without faults, as a client does that stores the list.
func (w *world) readCatalogue() {
	ctx := context.Background()
	all, err := w.nodes[0].routes.Networks(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.networks = map[string]string{}
	for _, n := range all {
		w.networks[string(n.Network)] = n.ID
	}
	if w.services, err = w.nodes[0].routes.Services(ctx); err != nil || len(w.services) == 0 {
		w.t.Fatalf("no data services: %v", err)
	}
}

var (
	simNetworks = []string{"MTN", "TELECEL", "AIRTELTIGO"}
	simPrefix   = map[string]string{"MTN": "024", "TELECEL": "020", "AIRTELTIGO": "027"}
	// Magic numbers. Plain success is the most frequent.
	simMagic = []string{"000", "000", "001", "001", "001", "004", "005", "006", "007", "008", "020", "021", "022", "023", "024", "025", "026", "030", "032"}
)

// draw makes a random order.
func (w *world) draw() *order {
	if len(w.orders) > 0 && w.random.IntN(20) == 0 {
		return w.repeat()
	}
	o := &order{customer: w.customers[w.random.IntN(len(w.customers))], weather: w.weather.name()}
	o.reference = fmt.Sprintf("sim-%d-%d-%d", w.engine, w.rounds, w.random.Uint64()>>16)
	o.magic = simMagic[w.random.IntN(len(simMagic))]
	network := simNetworks[w.random.IntN(len(simNetworks))]
	phone := simPrefix[network] + "0000" + o.magic
	o.amount = money.Pesewas(50 + w.random.IntN(2000))
	if w.random.IntN(3) > 0 {
		o.callback = "/" + o.reference
	}
	switch pick := w.random.IntN(100); {
	case pick < 40:
		o.payout(network, phone)
	case pick < 48:
		o.bank(w)
	case pick < 68:
		o.collection(network, phone)
	case pick < 80:
		o.topUp(w, network, phone)
	case pick < 86:
		o.buy(w, network, phone)
	case pick < 92:
		o.bundle(w)
	default:
		o.payout(network, phone)
		o.spoil(w)
	}
	if o.callback != "" && o.body != nil {
		o.body["callback_url"] = w.inbox.server.URL + o.callback
	}
	if w.random.IntN(15) == 0 {
		o.header = []string{"Idempotency-Key", o.reference}
	}
	return o
}

func (o *order) payout(network, phone string) {
	o.kind, o.path = "payout", "/payment-api/send/mobilemoney"
	o.body = map[string]any{"amount": o.amount.String(), "channel": network, "account_number": phone, "client_reference": o.reference}
}

func (o *order) bank(w *world) {
	o.kind, o.path = "bank", "/payment-api/send/bank"
	if o.magic == "024" || o.magic == "026" {
		o.magic = "001" // the query for the name refuses it before any money moves
	}
	o.body = map[string]any{"amount": o.amount.String(), "bank_id": w.nodes[0].ready.BankID, "account_number": "104000" + "0000" + o.magic, "client_reference": o.reference}
}

func (o *order) collection(network, phone string) {
	o.kind, o.path = "collection", "/payment-api/momopay"
	o.body = map[string]any{"amount": o.amount.Float(), "network": network, "phone_number": phone, "transaction_id": o.reference, "reference": "label"}
}

func (o *order) topUp(w *world, network, phone string) {
	o.kind, o.path = "topup", "/airtime-api/sendAirtime"
	o.body = map[string]any{"amount": o.amount.Float(), "network_id": w.networks[network], "phone_number": phone, "transaction_id": o.reference}
}

func (o *order) buy(w *world, network, phone string) {
	o.kind, o.path = "buy", "/airtime-api/buy"
	o.body = map[string]any{"amount": o.amount.Float(), "network_id": w.networks[network], "network": network, "phoneNumber": phone,
		"destination": simPrefix[network] + "5551234", "type": "momo", "transaction_id": o.reference}
}

// bundle buys a package. It first requests the offers if none is known.
func (o *order) bundle(w *world) {
	offer, ok := w.offer(o.customer)
	if !ok {
		o.payout("MTN", "0240000001")
		return
	}
	o.kind, o.path, o.amount, o.callback, o.magic = "bundle", "/databundle-api-v2/buy", offer.amount, "", "000"
	o.body = map[string]any{"phone_number": offer.phone, "service_id": offer.service, "package_id": offer.id, "network": offer.network, "type": "e_wallet",
		"client_reference": o.reference}
}

// offer requests the data packages for a number. A fault may lose the answer.
func (w *world) offer(c *customer) (offerSeen, bool) {
	s := w.services[w.random.IntN(len(w.services))]
	phone := simPrefix[string(s.Network)] + "5550" + fmt.Sprintf("%03d", w.random.IntN(1000))
	answer := call(w.node(), c.key, http.MethodGet, "/databundle-api-v2/offers/"+s.ID+"/"+phone, "")
	var body struct {
		Data struct {
			Packages struct {
				Data []struct{ ID, Amount string } `json:"data"`
			} `json:"packages"`
		} `json:"data"`
	}
	if answer.Code != http.StatusOK || json.Unmarshal(answer.Body.Bytes(), &body) != nil || len(body.Data.Packages.Data) == 0 {
		return offerSeen{}, false
	}
	row := body.Data.Packages.Data[w.random.IntN(len(body.Data.Packages.Data))]
	amount, err := money.Parse(row.Amount)
	if err != nil {
		w.t.Errorf("an offer costs %q", row.Amount)
	}
	return offerSeen{customer: c, service: s.ID, id: row.ID, network: string(s.Network), phone: phone, amount: amount}, true
}

// spoil makes a request that must be refused in any case.
func (o *order) spoil(w *world) {
	o.kind, o.callback = "garbage", ""
	switch w.random.IntN(6) {
	case 0:
		o.body["amount"] = "1.234"
	case 1:
		o.body["channel"] = "NOKIA"
	case 2:
		o.body["account_number"] = "12"
	case 3:
		delete(o.body, "client_reference")
	case 4:
		o.raw = `{"amount": "1.00", "amount": "2.00", "channel": "MTN", "account_number": "0240000001", "client_reference": "` + o.reference + `"}`
	case 5:
		o.raw = `{"amount": `
	}
}

// repeat sends an earlier request again, as a client does after a lost answer.
func (w *world) repeat() *order {
	before := w.orders[w.random.IntN(len(w.orders))]
	o := *before
	o.again, o.first, o.weather = true, before, w.weather.name()
	return &o
}

// ask makes the request.
func (o *order) ask(n *App) {
	body := o.raw
	if body == "" {
		text, err := json.Marshal(o.body)
		if err != nil {
			panic(err)
		}
		body = string(text)
	}
	answer := call(n, o.customer.key, http.MethodPost, o.path, body, o.header...)
	var envelope struct {
		Message string          `json:"message"`
		Code    string          `json:"code"`
		Data    json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(answer.Body.Bytes(), &envelope)
	o.status, o.code, o.message, o.data = answer.Code, envelope.Code, envelope.Message, envelope.Data
}

// keep checks that an answer is allowed, and stores an accepted request.
func (w *world) keep(o *order) {
	ok := o.status == http.StatusOK || o.status == http.StatusBadRequest || o.status == http.StatusUnprocessableEntity ||
		o.status == http.StatusServiceUnavailable || o.status == http.StatusNotFound || o.status == http.StatusConflict || o.status == http.StatusTooManyRequests
	if o.status == http.StatusForbidden && w.takenBack && strings.Contains(o.message, "stopped") {
		ok = true // a reversal took more than the wallet had
	}
	if !ok {
		w.t.Errorf("%s %s: %d %s", o.kind, o.reference, o.status, o.message)
	}
	if o.kind == "garbage" && o.status < 400 {
		w.t.Errorf("garbage was answered with %d: %v %s", o.status, o.body, o.raw)
	}
	// After an outage, an open breaker allows one request at a time until one succeeds.
	if o.status == http.StatusServiceUnavailable && w.weather.fair() && !strings.HasSuffix(o.code, "_unavailable") {
		w.t.Errorf("%s %s: 503 %s in fair weather", o.kind, o.reference, o.message)
	}
	if o.kind == "garbage" {
		return
	}
	if o.again {
		// A refused request stored nothing, so its reference may be used again.
		if o.status == http.StatusOK {
			o.first.status, o.first.data = o.status, o.data
		}
		o.first.unclear = o.first.unclear || o.status != http.StatusUnprocessableEntity
		return
	}
	w.orders = append(w.orders, o)
}

// member reads a text member of a JSON object.
func member(body []byte, name string) string {
	var members map[string]any
	_ = json.Unmarshal(body, &members)
	text, _ := members[name].(string)
	return strings.TrimSpace(text)
}
