package route

import (
	"context"
	"slices"
	"strings"

	"github.com/makola/makola/internal/provider"
)

// CheckBanks compares each rail's own list of banks with our codes, and logs the differences. It changes no code,
// because a wrong code pays somebody else, so a person must decide. If a rail does not respond, nothing is compared.
func (t *Table) CheckBanks(ctx context.Context) error {
	for _, r := range t.rails {
		if r.BankList == nil {
			continue
		}
		c, err := t.loadCatalogue(ctx)
		if err != nil {
			return err
		}
		asking, cancel := context.WithTimeout(ctx, notKnownTime)
		list, o := r.BankList.Banks(asking)
		cancel()
		about := []any{"provider", r.Name, "mode", r.Mode}
		if o.Class != provider.Accepted {
			t.log.WarnContext(ctx, "provider did not list its banks", append(about, "code", o.Code, "error", o.Message)...)
			continue
		}
		gone, unused := compareBanks(c, r.Name, list)
		if len(gone)+len(unused) == 0 {
			t.log.InfoContext(ctx, "compared banks with provider", append(about, "banks", len(list))...)
			continue
		}
		t.log.WarnContext(ctx, "provider lists other banks than the catalogue, change it with makola catalogue bank-code",
			append(about, "not_listed", strings.Join(gone, ", "), "not_used", strings.Join(unused, ", "))...)
	}
	return ctx.Err()
}

// compareBanks returns our active banks whose code is missing from the provider's list, and the provider's banks that have none of
// our codes.
func compareBanks(c *catalogue, rail string, list []provider.PayableBank) (gone, unused []string) {
	ours := map[string]bool{}
	for _, b := range c.Banks {
		code := c.bankCodes[rail][b.ID]
		if code == "" {
			continue
		}
		ours[code] = true
		if b.Status == Active && !slices.ContainsFunc(list, func(l provider.PayableBank) bool { return l.Code == code }) {
			gone = append(gone, b.Name+" ("+code+")")
		}
	}
	for _, l := range list {
		if !ours[l.Code] {
			unused = append(unused, l.Name+" ("+l.Code+")")
		}
	}
	return gone, unused
}
