package route_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/makola/makola/internal/clock"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/route"
	"github.com/makola/makola/internal/test/dbtest"
)

// lister is a provider that returns a list of banks.
type lister struct {
	banks   []provider.PayableBank
	outcome provider.Outcome
}

func (l *lister) Banks(context.Context) ([]provider.PayableBank, provider.Outcome) {
	return l.banks, l.outcome
}

// A provider's list of banks is compared with our codes. Differences are logged, and no code is changed.
func TestBanks_comparedWithProvider(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		var log bytes.Buffer
		l := &lister{outcome: provider.Outcome{Class: provider.Accepted}}
		table := route.New(d, clock.NewManual(start), slog.New(slog.NewTextHandler(&log, nil)), []string{"hubtel", "paystack"}, []provider.Rail{{Name: "paystack", Mode: "test", BankList: l}})
		if err := table.Seed(t.Context()); err != nil {
			t.Fatal(err)
		}
		compare := func(want ...string) {
			t.Helper()
			log.Reset()
			if err := table.CheckBanks(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, text := range want {
				if !strings.Contains(log.String(), text) {
					t.Errorf("the log lacks %q: %s", text, log.String())
				}
			}
		}
		c, err := table.Catalogue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range c.Banks {
			switch b.Code {
			case "070100":
				l.banks = append(l.banks, provider.PayableBank{Code: "070101", Name: b.Name})
			case "390100": // Paystack has no code for this bank
			default:
				l.banks = append(l.banks, provider.PayableBank{Code: b.Code, Name: b.Name})
			}
		}
		compare("level=INFO", "banks=25")
		l.banks[0], l.banks = provider.PayableBank{Code: "999999", Name: "New Bank"}, l.banks[:len(l.banks):len(l.banks)]
		compare("level=WARN", "New Bank (999999)", "not_listed=")
		l.outcome = provider.Outcome{Code: "503"}
		compare("did not list", "code=503")
		after, err := table.Catalogue(t.Context())
		if err != nil || len(after.Banks) != len(c.Banks) {
			t.Errorf("%d banks, were %d, %v", len(after.Banks), len(c.Banks), err)
		}
	})
}
