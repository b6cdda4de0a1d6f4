package sim

import (
	"net/http"

	"github.com/makola/makola/internal/money"
	"github.com/makola/makola/internal/msisdn"
)

// The ids of the services: those of Hubtel's public documents, and one of our
// own for broadband, which has none there.
const (
	hubtelSIMName   = "3e0841e70afc42fb97d13d19abd36384"
	hubtelBroadband = "51a0b70adba4d00000000000000000a1"
)

// hubtelService is one of the commission services.
type hubtelService struct {
	kind       Kind
	network    msisdn.Network
	commission int64 // basis points of what is sold
	packages   []hubtelPackage
}

// hubtelPackage is a row of a service's query. Value is in each network's own
// manner.
type hubtelPackage struct {
	display, value string
	price          money.Pesewas
}

var hubtelServices = map[string]hubtelService{
	"fdd76c884e614b1c8f669a3207b09a98": {kind: TopUp, network: msisdn.MTN, commission: 550},
	"f4be83ad74c742e185224fdae1304800": {kind: TopUp, network: msisdn.Telecel, commission: 700},
	"dae2142eb5a14c298eace60240c09e4b": {kind: TopUp, network: msisdn.AirtelTigo, commission: 700},
	"b230733cd56b4a0fad820e39f66bc27c": {kind: Bundle, network: msisdn.MTN, commission: 550, packages: []hubtelPackage{
		{"22.94MB", "data_bundle_1", 50}, {"45.87MB", "data_bundle_2", 100}, {"137.60MB", "data_bundle_3", 300},
		{"460.11MB, 5am to 8am", "data_bundle_4", 200}, {"401.63MB", "data_bundle_5", 1000}, {"1.19GB", "flexi_data_bundle", 2000},
		{"6.53GB", "data_bundle_6", 10000},
	}},
	"fa27127ba039455da04a2ac8a1613e00": {kind: Bundle, network: msisdn.Telecel, commission: 700, packages: []hubtelPackage{
		{"25 MB", "25 MB", 50}, {"50 MB", "50 MB", 100}, {"200 MB", "200 MB", 300}, {"1.37GB", "1.37GB", 1000}, {"4.6GB", "4.6GB", 2000},
	}},
	"06abd92da459428496967612463575ca": {kind: Bundle, network: msisdn.AirtelTigo, commission: 700, packages: []hubtelPackage{
		{"20MB", "DATA1", 50}, {"200MB", "DATA2", 200}, {"1GB", "DATA10", 1000}, {"5GB", "DATA50", 5000},
	}},
	hubtelBroadband: {kind: Bundle, network: msisdn.MTN, commission: 300, packages: []hubtelPackage{
		{"65GB, 30 days", "broadband_65", 15000}, {"200GB, 30 days", "broadband_200", 29500},
	}},
}

// packagesFor gives what a number is offered: each number misses one of the
// rows, and changed makes the rest dearer and drops the first.
func (v hubtelService) packagesFor(m msisdn.MSISDN, changed bool) []hubtelPackage {
	h := 0
	for _, d := range m {
		h = h*31 + int(d)
	}
	list := make([]hubtelPackage, 0, len(v.packages))
	for i, p := range v.packages {
		// The last is offered to everybody, so that no list is empty.
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

type hubtelRow struct {
	Display string
	Value   string
	Amount  any
}

// offers answers the query of a data service.
func (h *hubtel) offers(c *call) {
	v := hubtelServices[c.r.PathValue("service")]
	to, err := msisdn.Parse(c.r.URL.Query().Get("destination"))
	if v.kind != Bundle || err != nil {
		c.hubtelInvalid("destination")
		return
	}
	rows := []hubtelRow{}
	for _, p := range v.packagesFor(to, c.hit.has(OffersChange)) {
		rows = append(rows, hubtelRow{p.display, p.value, cedis(p.price)})
	}
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelLabelled{hubtelAnswer{"success", "0000", rows}, "Data bundles"}))
}

type hubtelLabelled struct {
	hubtelAnswer
	Label string
}

// simName tells the holder of a number.
func (h *hubtel) simName(c *call) {
	to, err := msisdn.Parse(c.r.URL.Query().Get("destination"))
	given, family, known := Name(to.International())
	if err != nil || !known {
		c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelLabelled{hubtelAnswer{"No record found", "2001", nil}, ""}))
		return
	}
	rows := []hubtelRow{{"name", given + " " + family, 0}}
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelLabelled{hubtelAnswer{"Customer Details", "0000", rows}, "Customer Details"}))
}

// sell answers a top-up or the purchase of a package, whose value and amount
// must be a row of the query as it stands. Airtime and data do not reach a
// number of another network: by its range here, as nothing is ported.
func (h *hubtel) sell(c *call) {
	v, known := hubtelServices[c.r.PathValue("service")]
	b, amount, ok := c.hubtelBody()
	if !ok {
		return
	}
	to, err := msisdn.Parse(b.Destination)
	if !known || err != nil {
		c.hubtelInvalid("Destination")
		return
	}
	if v.kind == Bundle && !v.sells(to, b.Extradata.Bundle, amount) {
		c.hubtelSays(http.StatusOK, "2001", "Invalid bundle: the amount and bundle are not among those offered", nil)
		return
	}
	o := Order{
		Provider: Hubtel, Kind: v.kind, Reference: b.ClientReference, Amount: amount, Party: to.International(),
		CallbackURL: b.CallbackURL, Commission: money.Percent(amount, v.commission), Wire: b.Extradata.Bundle,
	}
	if likely, ok := to.LikelyNetwork(); ok && likely != v.network {
		o.fixed = &Plan{Delay: settleSoon, Then: Failed, Reason: NotRegistered}
	}
	if e, ok := h.place(c, o); ok {
		c.accepted(e)
	}
}

func (v hubtelService) sells(to msisdn.MSISDN, value string, amount money.Pesewas) bool {
	for _, p := range v.packagesFor(to, false) {
		if p.value == value && p.price == amount {
			return true
		}
	}
	return false
}

// walletName tells whose wallet a number is.
func (h *hubtel) walletName(c *call) {
	q := c.r.URL.Query()
	m, err := msisdn.Parse(q.Get("customerMsisdn"))
	if _, known := hubtelChannels[q.Get("channel")]; err != nil || !known {
		c.write(http.StatusBadRequest, "application/json", hubtelJSON(hubtelSmallAnswer{"Validation errors", "4000", nil}))
		return
	}
	given, family, known := Name(m.International())
	if !known {
		c.answer(http.StatusNotFound, "application/json", hubtelJSON(hubtelSmallAnswer{"MTN Exception. Account holder with FRI Not Found", "3000", nil}))
		return
	}
	data := map[string]any{"isRegistered": true, "name": given + " " + family, "status": "active", "profile": "Subscriber"}
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelSmallAnswer{"Success", "0000", data}))
}

// bankName tells whose bank account a number is.
func (h *hubtel) bankName(c *call) {
	number := c.r.PathValue("number")
	given, family, known := Name(number)
	if !known || !hubtelBanks[c.r.PathValue("bank")] || !hubtelAccount(number) {
		c.answer(http.StatusBadRequest, "application/json", hubtelJSON(hubtelSmallAnswer{"We're sorry, we could not verify this account. Do you want to save anyway?", "2001", nil}))
		return
	}
	c.answer(http.StatusOK, "application/json", hubtelJSON(hubtelSmallAnswer{"Success", "0000", map[string]any{"name": given + " " + family}}))
}
