package config

import (
	"fmt"
	"strings"

	"github.com/makola/makola/internal/money"
)

// ProviderLimit is the smallest and the largest amount in pesewas that a provider accepts for an operation on a
// channel. "*" matches every operation or channel.
type ProviderLimit struct {
	Provider, Operation, Channel string
	Min, Max                     money.Pesewas
}

// UnmarshalText parses the result of String.
func (l *ProviderLimit) UnmarshalText(text []byte) error {
	parts := strings.Split(strings.TrimSpace(string(text)), ":")
	bad := fmt.Errorf("%q is not PROVIDER:OPERATION:CHANNEL:MIN-MAX, such as paystack:disburse_wallet:MTN:1.00-5000.00", text)
	if len(parts) != 4 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return bad
	}
	least, most, ok := strings.Cut(parts[3], "-")
	lo, errMin := money.Parse(least)
	hi, errMax := money.Parse(most)
	if !ok || errMin != nil || errMax != nil || lo < 0 || hi <= 0 || hi < lo {
		return bad
	}
	*l = ProviderLimit{parts[0], parts[1], parts[2], lo, hi}
	return nil
}

// String returns the limit in the form of the setting.
func (l ProviderLimit) String() string {
	return l.Provider + ":" + l.Operation + ":" + l.Channel + ":" + l.Min.String() + "-" + l.Max.String()
}
