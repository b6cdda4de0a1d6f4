package hubtel

import (
	"net/http"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/sim"
)

// service is one of the commission services.
type service struct {
	kind       sim.Kind
	network    msisdn.Network
	commission int64 // basis points of the sale
	packages   []dataPackage
}

// dataPackage is an entry in the response to a service's query. The format of Value differs by network.
type dataPackage struct {
	display, value string
	price          money.Pesewas
}

var services = map[string]service{
	"fdd76c884e614b1c8f669a3207b09a98": {kind: sim.TopUp, network: msisdn.MTN, commission: 550},
	"f4be83ad74c742e185224fdae1304800": {kind: sim.TopUp, network: msisdn.Telecel, commission: 700},
	"dae2142eb5a14c298eace60240c09e4b": {kind: sim.TopUp, network: msisdn.AirtelTigo, commission: 700},
	"b230733cd56b4a0fad820e39f66bc27c": {kind: sim.Bundle, network: msisdn.MTN, commission: 550, packages: []dataPackage{
		{"22.94MB", "data_bundle_1", 50}, {"45.87MB", "data_bundle_2", 100}, {"137.60MB", "data_bundle_3", 300},
		{"460.11MB, 5am to 8am", "data_bundle_4", 200}, {"401.63MB", "data_bundle_5", 1000}, {"1.19GB", "flexi_data_bundle", 2000},
		{"6.53GB", "data_bundle_6", 10000},
	}},
	"fa27127ba039455da04a2ac8a1613e00": {kind: sim.Bundle, network: msisdn.Telecel, commission: 700, packages: []dataPackage{
		{"25 MB", "25 MB", 50}, {"50 MB", "50 MB", 100}, {"200 MB", "200 MB", 300}, {"1.37GB", "1.37GB", 1000}, {"4.6GB", "4.6GB", 2000},
	}},
	"06abd92da459428496967612463575ca": {kind: sim.Bundle, network: msisdn.AirtelTigo, commission: 700, packages: []dataPackage{
		{"20MB", "DATA1", 50}, {"200MB", "DATA2", 200}, {"1GB", "DATA10", 1000}, {"5GB", "DATA50", 5000},
	}},
	broadband: {kind: sim.Bundle, network: msisdn.MTN, commission: 300, packages: []dataPackage{
		{"65GB, 30 days", "broadband_65", 15000}, {"200GB, 30 days", "broadband_200", 29500},
	}},
}

// packagesFor returns the packages that are offered to a number. Each number lacks one of the packages. changed
// raises the prices and drops the first package.
func (v service) packagesFor(m msisdn.MSISDN, changed bool) []dataPackage {
	h := 0
	for _, d := range m {
		h = h*31 + int(d)
	}
	list := make([]dataPackage, 0, len(v.packages))
	for i, p := range v.packages {
		// The last package is offered to everybody, so that no list is empty.
		if i == h%len(v.packages) && i < len(v.packages)-1 {
			continue
		}
		list = append(list, p)
	}
	if !changed {
		return list
	}
	list = list[1:]
	for i := range list {
		list[i].price += 50
	}
	return list
}

type row struct {
	Display string
	Value   string
	Amount  any
}

// offers handles the query of a data service.
func (h *hubtel) offers(c *call) {
	v := services[c.Request.PathValue("service")]
	to, err := msisdn.Parse(c.Request.URL.Query().Get("destination"))
	if v.kind != sim.Bundle || err != nil {
		c.invalid("destination")
		return
	}
	rows := []row{}
	for _, p := range v.packagesFor(to, c.Hit.Has(sim.OffersChange)) {
		rows = append(rows, row{p.display, p.value, cedis(p.price)})
	}
	c.Answer(http.StatusOK, "application/json", sim.Encode(labelled{answer{"success", "0000", rows}, "Data bundles"}))
}

type labelled struct {
	answer
	Label string
}

// simName returns the holder of a number.
func (h *hubtel) simName(c *call) {
	to, err := msisdn.Parse(c.Request.URL.Query().Get("destination"))
	given, family, known := sim.Name(to.International())
	if err != nil || !known {
		c.Answer(http.StatusOK, "application/json", sim.Encode(labelled{answer{"No record found", "2001", nil}, ""}))
		return
	}
	rows := []row{{"name", given + " " + family, 0}}
	c.Answer(http.StatusOK, "application/json", sim.Encode(labelled{answer{"Customer Details", "0000", rows}, "Customer Details"}))
}

// sell handles a top-up or the purchase of a package. Value and amount must be those of a current package. Airtime
// and data are refused for a number of another network. The prefix decides the network, because no simulated number
// has moved to another network.
func (h *hubtel) sell(c *call) {
	v, known := services[c.Request.PathValue("service")]
	b, amount, ok := c.body()
	if !ok {
		return
	}
	to, err := msisdn.Parse(b.Destination)
	if !known || err != nil {
		c.invalid("Destination")
		return
	}
	if v.kind == sim.Bundle && !v.sells(to, b.Extradata.Bundle, amount) {
		c.reject(http.StatusOK, "2001", "Invalid bundle: the amount and bundle are not among those offered", nil)
		return
	}
	o := sim.Order{
		Provider: Name, Kind: v.kind, Reference: b.ClientReference, Amount: amount, Party: to.International(),
		CallbackURL: b.CallbackURL, Commission: money.Percent(amount, v.commission), Wire: b.Extradata.Bundle,
	}
	if likely, ok := to.LikelyNetwork(); ok && likely != v.network {
		o.Fixed = &sim.Plan{Delay: sim.SettleSoon, Then: sim.Failed, Reason: sim.NotRegistered}
	}
	if e, ok := h.place(c, o); ok {
		c.accepted(e)
	}
}

func (v service) sells(to msisdn.MSISDN, value string, amount money.Pesewas) bool {
	for _, p := range v.packagesFor(to, false) {
		if p.value == value && p.price == amount {
			return true
		}
	}
	return false
}

// walletName returns the holder of a wallet.
func (h *hubtel) walletName(c *call) {
	q := c.Request.URL.Query()
	m, err := msisdn.Parse(q.Get("customerMsisdn"))
	if _, known := channels[q.Get("channel")]; err != nil || !known {
		c.Write(http.StatusBadRequest, "application/json", sim.Encode(smallAnswer{"Validation errors", "4000", nil}))
		return
	}
	given, family, known := sim.Name(m.International())
	if !known {
		c.Answer(http.StatusNotFound, "application/json", sim.Encode(smallAnswer{"MTN Exception. Account holder with FRI Not Found", "3000", nil}))
		return
	}
	data := map[string]any{"isRegistered": true, "name": given + " " + family, "status": "active", "profile": "Subscriber"}
	c.Answer(http.StatusOK, "application/json", sim.Encode(smallAnswer{"Success", "0000", data}))
}

// bankName returns the holder of a bank account.
func (h *hubtel) bankName(c *call) {
	number := c.Request.PathValue("number")
	given, family, known := sim.Name(number)
	if !known || !banks[c.Request.PathValue("bank")] || !accountFits(number) {
		c.Answer(http.StatusBadRequest, "application/json", sim.Encode(smallAnswer{"We're sorry, we could not verify this account. Do you want to save anyway?", "2001", nil}))
		return
	}
	c.Answer(http.StatusOK, "application/json", sim.Encode(smallAnswer{"Success", "0000", map[string]any{"name": given + " " + family}}))
}
