package page

import (
	"testing"

	"github.com/makola/makola/internal/money"
)

func TestAmount_inWords(t *testing.T) {
	for amount, want := range map[money.Pesewas]string{
		0: "zero cedis", 100: "one cedi", 101: "one cedi, one pesewa", 50: "zero cedis, fifty pesewas", 1_950: "nineteen cedis, fifty pesewas",
		500_000: "five thousand cedis", 500_100: "five thousand and one cedis", 12_345_678: "one hundred and twenty-three thousand four hundred and fifty-six cedis, seventy-eight pesewas",
		50_000_000: "five hundred thousand cedis", 100_000_000: "one million cedis", 100_010_000: "one million one hundred cedis", 9_000_000: "ninety thousand cedis",
	} {
		if got := Words(amount); got != want {
			t.Errorf("%d: %q, want %q", amount, got, want)
		}
	}
}
