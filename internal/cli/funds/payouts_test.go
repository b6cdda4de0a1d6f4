package funds

import (
	"strings"
	"testing"
	"time"

	"github.com/makola/makola/internal/payments/book"
	"github.com/makola/makola/internal/provider"
)

func TestPayouts_whyMoneyIsHeld(t *testing.T) {
	t.Parallel()
	payout := book.Payment{Kind: book.KindPayout, Status: book.StatusPending}
	with := func(change func(*book.Payment)) book.Payment {
		p := payout
		change(&p)
		return p
	}
	for want, pay := range map[string]book.Payment{
		"":                     with(func(p *book.Payment) { p.Status = book.StatusFailed }),
		"the payer was asked":  with(func(p *book.Payment) { p.Kind = book.KindCollection }),
		"has not paid yet":     with(func(p *book.Payment) { p.Status = book.StatusWaiting }),
		"outcome is unknown":   with(func(p *book.Payment) { p.Classed, p.Class = true, provider.Unknown }),
		"has not confirmed":    with(func(p *book.Payment) { p.Refusal, p.RefusalReason = book.RefusalBare, "limit_reached" }),
		"operators were alert": with(func(p *book.Payment) { p.EscalatedAt = time.Now() }),
		"has not reported the": payout,
	} {
		if got := whyHeld(pay); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
}
