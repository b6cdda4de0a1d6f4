package page

import (
	"strings"

	"github.com/makola/makola/internal/money"
)

var (
	small = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens  = strings.Fields("- - twenty thirty forty fifty sixty seventy eighty ninety")
	great = []struct {
		size int64
		word string
	}{{1_000_000_000_000, "trillion"}, {1_000_000_000, "billion"}, {1_000_000, "million"}, {1_000, "thousand"}, {100, "hundred"}}
)

// Words writes an amount in words, so that a wrong zero is noticed: five thousand cedis, 50 pesewas. The amount is
// not negative.
func Words(amount money.Pesewas) string {
	cedis, pesewas := int64(amount)/100, int64(amount)%100
	text := count(cedis) + " cedis"
	if cedis == 1 {
		text = "one cedi"
	}
	switch pesewas {
	case 0:
		return text
	case 1:
		return text + ", one pesewa"
	}
	return text + ", " + count(pesewas) + " pesewas"
}

func count(n int64) string {
	for _, g := range great {
		if n >= g.size {
			text := count(n/g.size) + " " + g.word
			rest := n % g.size
			switch {
			case rest == 0:
				return text
			case rest < 100:
				return text + " and " + count(rest)
			}
			return text + " " + count(rest)
		}
	}
	if n < 20 {
		return small[n]
	}
	if n%10 == 0 {
		return tens[n/10]
	}
	return tens[n/10] + "-" + small[n%10]
}
