//go:build !race

package app_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"testing"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/test/clocktest"
)

// product is one kind of request that moves money, for the load of every product.
type product struct {
	name, path string
	status     string // path of its status, up to the reference
	most       int64  // maximum number of requests in a run, because some endpoints have limits
	success    int64  // pesewas that a success adds to the wallet, for products that the wallet does not pay
	body       func(reference string, n int) map[string]any
}

// products returns each product that no other test of the built program sends. The last three digits of a number select the
// simulator's behaviour. Hubtel, which does not recognise a repeated request, serves most of them.
func products(t *testing.T, server *process) []product {
	t.Helper()
	api := newClient(server.ready.APIURL, server.ready.APIKey)
	network := catalogue(t, api, "/airtime-api/networks", http.StatusCreated)
	service := catalogue(t, api, "/databundle-api-v2/services", http.StatusOK)
	var offers struct {
		Packages struct {
			Data []struct{ ID, Amount string }
		}
	}
	api.get(t, "/databundle-api-v2/offers/"+service[0]+"/0245550001", &offers)
	offer := offers.Packages.Data[0]
	var price float64
	if _, err := fmt.Sscan(offer.Amount, &price); err != nil {
		t.Fatal(err)
	}
	ends := []string{"001", "001", "000", "006", "007", "024"}
	end := func(n int) string { return ends[n%len(ends)] }
	return []product{
		{"payout to a wallet of the second rail", "/payment-api/send/mobilemoney", "/payment-api/checkstatus/", math.MaxInt64, -60, func(reference string, n int) map[string]any {
			return map[string]any{"amount": "0.50", "channel": "TELECEL", "account_number": "0200000" + end(n), "client_reference": reference}
		}},
		{"payout to a bank", "/payment-api/send/bank", "/payment-api/checkstatus/", math.MaxInt64, -60, func(reference string, n int) map[string]any {
			return map[string]any{"amount": "0.50", "bank_id": server.ready.BankID, "account_number": "1040000000" + end(n&^1), "client_reference": reference}
		}},
		{"collection", "/payment-api/momopay", "/payment-api/checkstatus/", math.MaxInt64, 90, func(reference string, n int) map[string]any {
			return map[string]any{"amount": 1, "network": "AIRTELTIGO", "phone_number": "0270000" + end(n), "transaction_id": reference}
		}},
		{"airtime", "/airtime-api/sendAirtime", "/airtime-api/checkstatus/", 30, -100, func(reference string, n int) map[string]any {
			return map[string]any{"amount": 1, "network_id": network[0], "phone_number": "0240000" + end(n), "transaction_id": reference}
		}},
		{"airtime paid by mobile money", "/airtime-api/buy", "/airtime-api/checkstatus/", 30, 0, func(reference string, _ int) map[string]any {
			return map[string]any{"amount": 1, "network_id": network[0], "network": "MTN", "phoneNumber": "0240000001", "destination": "0245551234",
				"type": "momo", "transaction_id": reference}
		}},
		{"data package", "/databundle-api-v2/buy", "/databundle-api-v2/checkstatus/", 25, -int64(math.Round(price * 100)), func(reference string, _ int) map[string]any {
			return map[string]any{"phone_number": "0245550001", "service_id": service[0], "package_id": offer.ID, "network": "MTN", "type": "e_wallet",
				"client_reference": reference}
		}},
	}
}

// catalogue reads the ids of a list.
func catalogue(t *testing.T, api *client, path string, status int) []string {
	t.Helper()
	a, err := api.call(http.MethodGet, path, nil)
	var rows []struct{ ID string }
	if err != nil || a.status != status || json.Unmarshal(a.data, &rows) != nil || len(rows) == 0 {
		t.Fatalf("GET %s: %v %+v", path, err, a)
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}

// asked is one request of the load, with the place of its money.
type asked struct {
	*product
	reference string
	n         int    // number from which its body was made
	external  string // our provider reference, which also identifies a data package
	refused   bool
}

// everything is a pool of callers that requests every product.
type everything struct {
	crowd[asked]
	products []product
	counts   map[string]int64
}

func startEverything(t *testing.T, name string, products []product, target *client) *everything {
	l := &everything{crowd: crowd[asked]{t: t}, products: products, counts: map[string]int64{}}
	l.begin(callers, target, func(caller, n int) {
		if p := &l.products[(caller+n)%len(l.products)]; l.take(p) {
			l.ask(p, fmt.Sprintf("%s-%03d-%06d", name, caller, n), caller+n/len(l.products))
		}
	})
	return l
}

// take reports whether one more of a product may be asked for.
func (l *everything) take(p *product) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[p.name]++
	return l.counts[p.name] <= p.most
}

func (l *everything) ask(p *product, reference string, n int) {
	a := l.insist(p.path, p.body(reference, n))
	one := asked{product: p, reference: reference, n: n}
	switch a.status {
	case http.StatusOK:
		if one.external = field(a.data, "ext_transaction_id"); one.external == "" {
			one.external = nested(a.data, "payment", "ext_transaction_id")
		}
	case http.StatusBadRequest:
		one.refused = true
	case http.StatusUnprocessableEntity: // an earlier try of ours was accepted: data has its payment
		one.external = field(a.data, "ext_transaction_id")
	default:
		l.t.Errorf("%s %s: %d %s", p.name, reference, a.status, a.message)
		return
	}
	l.keep(one)
}

func nested(data json.RawMessage, object, name string) string {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(data, &members)
	return field(members[object], name)
}

// killsOfEverything is the number of kills under this load, on each engine.
const killsOfEverything = 5

// Every product is sold over both rails while the server is killed repeatedly. If a provider does not refuse duplicates in
// distinct terms, an operator resolves its open payments by the simulator's book.
func TestKilled_everyProduct(t *testing.T) {
	t.Parallel()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			sim, where := startSim(t), newSite(t, engine)
			server := where.serve(t, "makola", sim)
			key := server.ready.APIKey
			where.command(t, "wallet", "fund", server.ready.TenantID, "100000.00", "--reason", "load", "--reference", "load")
			opening := balance(t, newClient(server.ready.APIURL, key))
			l := startEverything(t, "every-"+engine.String(), products(t, server), newClient(server.ready.APIURL, key))
			for n := range killsOfEverything {
				before := l.sent.Load()
				clocktest.Await(t, "the load to get answers", func() bool { return l.sent.Load() >= before+4*callers })
				server.kill()
				server = where.serve(t, fmt.Sprintf("makola %d", n+2), sim)
				l.target.Store(newClient(server.ready.APIURL, key))
			}
			all := l.end()
			decide(t, where, sim, server)
			judge(t, sim, newClient(server.ready.APIURL, key), all, opening)
			where.command(t, "ledger", "check")
		})
	}
}

// decide advances the clocks until no payment is open, and resolves unknown payments by the simulator's book. A step is longer
// than the minimum age for a manual resolution, because the commands use the machine's clock. It is shorter than the age at
// which a collection fails, because the server's clock is advanced before the simulator's.
func decide(t *testing.T, where site, sim, server *process) {
	t.Helper()
	control := newClient(server.ready.SimURL, "")
	clocktest.Await(t, "everything to be decided", func() bool {
		a, err := control.call(http.MethodPost, "/clock", map[string]any{"advance_s": 301})
		if err != nil || a.status != http.StatusOK {
			t.Fatalf("the clock: %v %+v", err, a)
		}
		var stuck []struct {
			ID        string `json:"id"`
			Reference string `json:"attempt_reference"`
		}
		if err := json.Unmarshal(where.command(t, "payouts", "stuck", "-o", "json"), &stuck); err != nil {
			t.Fatal(err)
		}
		for _, s := range stuck {
			verdict := "--unpaid"
			if inBook(t, sim, s.Reference) > 0 {
				verdict = "--paid"
			}
			// The provider may answer first.
			where.commandUnlessDone(t, "payouts", "resolve", s.ID, verdict, "--reason", "the provider's statement")
		}
		return metric(t, server, `makola_queue_depth{queue="payment"}`) == 0
	})
}

// inBook returns the number of successes in the simulator's book under a provider reference.
func inBook(t *testing.T, sim *process, reference string) int {
	t.Helper()
	var rows []struct{ Status string }
	newClient(sim.ready.SimURL, "").get(t, "/transactions?reference="+reference, &rows)
	done := 0
	for _, r := range rows {
		if r.Status == "success" {
			done++
		}
	}
	return done
}

// judge compares each request with the interface and the simulator's book, and their sum with the wallet.
func judge(t *testing.T, sim *process, api *client, all []asked, opening float64) {
	t.Helper()
	want := int64(math.Round(opening * 100))
	counts := map[string]int{}
	for _, one := range all {
		id := one.reference
		if one.path == "/databundle-api-v2/buy" {
			id = one.external
		}
		var seen struct {
			Status   string `json:"status"`
			External string `json:"ext_transaction_id"`
		}
		api.get(t, one.product.status+id, &seen)
		counts[one.name+" "+seen.Status]++
		done := 0
		switch {
		case seen.Status == "success" && !one.refused:
			done, want = 1, want+one.success
		case seen.Status != "failed" && seen.Status != "declined":
			t.Errorf("%s %s is %s at the end", one.name, one.reference, seen.Status)
		case one.path == "/airtime-api/buy":
			var paid struct {
				Status string `json:"status"`
			}
			if api.get(t, "/payment-api/checkstatus/"+id, &paid); paid.Status == "success" {
				want += 100 // it was paid and refunded
			}
		}
		if got := inBook(t, sim, seen.External); got != done {
			t.Errorf("%s %s is %s and the provider did it %d times", one.name, one.reference, seen.Status, got)
		}
	}
	t.Logf("%d requests: %v", len(all), counts)
	if got := int64(math.Round(balance(t, api) * 100)); got != want {
		t.Errorf("the wallet holds %d pesewas, what succeeded leaves %d", got, want)
	}
}
