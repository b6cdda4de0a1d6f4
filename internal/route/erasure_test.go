package route_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/test/dbtest"
)

// Exchanges of earlier versions are in a table of their own. They are read, erased and pruned like the others.
func TestExchanges_ofEarlierVersions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table := node(t, d, clock.NewManual(start))
		const payment, number, instead = "019a0000-0000-7000-8000-000000000001", "233240000001", "[erased]"
		url := "https://provider/msisdn/" + number + "/active"
		about := func(i int) provider.Exchange {
			return provider.Exchange{At: start.Add(time.Duration(i) * time.Minute), Took: time.Millisecond, Provider: "mtn", Mode: "live", Operation: "wallet_name",
				Method: "GET", URL: url, Status: 200, Request: "of " + number, Answer: fmt.Sprintf("answer %d", i), Written: true}
		}
		for i := range 4 {
			e := about(i)
			if i%2 == 1 {
				e.Payment = payment
			}
			if i < 2 {
				table.Record(e)
				continue
			}
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := tx.Exec(`INSERT INTO provider_exchanges (id, payment, reference, at, took, provider, mode, operation, method, url, status, request, answer, written, error)
					VALUES ($1, $2, '', $3, 1000, 'mtn', 'live', 'wallet_name', 'GET', $4, 200, $5, $6, 1, '')`, fmt.Sprint(i), e.Payment, e.At, e.URL, e.Request, e.Answer)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := table.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		latest := func(n int) []provider.Exchange {
			list, err := table.LatestExchanges(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		if list := latest(3); len(list) != 3 || list[0].Answer != "answer 3" || list[2].Answer != "answer 1" {
			t.Errorf("the latest three are %+v", list)
		}
		list, err := table.Exchanges(t.Context(), payment)
		if err != nil || len(list) != 2 || list[0].Answer != "answer 1" || list[1].Answer != "answer 3" {
			t.Errorf("of the payment there are %+v: %v", list, err)
		}

		if err := d.Write(t.Context(), func(tx *db.Tx) error { return table.EraseExchanges(tx, payment) }); err != nil {
			t.Fatal(err)
		}
		for _, e := range latest(4) {
			if whole := e.Payment == ""; (e.Answer != "") != whole || (e.Request != "") != whole || e.URL != url {
				t.Errorf("after the payment was erased there is %+v", e)
			}
		}
		if n, err := table.EraseWords(t.Context(), instead, number); err != nil || n != 4 {
			t.Errorf("%d exchanges named the number: %v", n, err)
		}
		for _, e := range latest(4) {
			if e.Answer+e.Request != "" || !strings.Contains(e.URL, instead) || strings.Contains(e.URL, number) || e.Status != 200 || e.Took != time.Millisecond {
				t.Errorf("after the number was erased there is %+v", e)
			}
		}
		if n, err := table.EraseWords(t.Context(), instead, number); err != nil || n != 0 {
			t.Errorf("%d exchanges still name the number: %v", n, err)
		}
		if n, err := table.Prune(t.Context(), start.Add(3*time.Minute)); err != nil || n != 3 {
			t.Errorf("pruned %d, %v", n, err)
		}
		if list := latest(4); len(list) != 1 || !list[0].At.Equal(start.Add(3*time.Minute)) {
			t.Errorf("left is %+v", list)
		}
	})
}

// If a payment was queried for long, all its exchanges are erased, even more than a list shows.
func TestErase_allExchangesOfAPayment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		table := node(t, d, clock.NewManual(start))
		const payment, shown = "019a0000-0000-7000-8000-000000000001", 1000
		for i := range shown + 1 {
			table.Record(provider.Exchange{At: start.Add(time.Duration(i) * time.Second), Payment: payment, Answer: "said"})
		}
		if err := table.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.Write(t.Context(), func(tx *db.Tx) error { return table.EraseExchanges(tx, payment) }); err != nil {
			t.Fatal(err)
		}
		list, err := table.LatestExchanges(t.Context(), 1)
		if err != nil || len(list) != 1 || list[0].Answer != "" || !list[0].At.Equal(start.Add(shown*time.Second)) {
			t.Errorf("the last one is %+v: %v", list, err)
		}
	})
}
