package usertext

import "testing"

func TestCut_countsCharacters(t *testing.T) {
	for _, each := range []struct {
		text string
		most int
		want string
	}{{"  Ama ", 10, "Ama"}, {"Ama", 3, "Ama"}, {"Ama Owusu", 4, "Ama"}, {"₵₵₵₵", 3, "₵₵₵"}, {"", 3, ""}, {"   ", 3, ""}} {
		if got := Cut(each.text, each.most); got != each.want {
			t.Errorf("%q cut to %d is %q, want %q", each.text, each.most, got, each.want)
		}
	}
}

func TestStorable_refusesControlAndInvalid(t *testing.T) {
	for text, want := range map[string]bool{"": true, "Ama Ɔkyerɛ ₵": true, "a\x00b": false, "a\nb": false, "a\u0085b": false, "\xff": false} {
		if got := Storable(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
