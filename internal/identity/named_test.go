package identity

import "testing"

// A free text may name a person in any spelling. In doubt, the person counts as named.
func TestNamed_otherSpellings(t *testing.T) {
	ama := Person{Email: "ama.owusu@adom.example", Name: "Ama Owusu"}
	for text, want := range map[string]bool{
		"ama.owusu@adom.example":             true,
		"Admin <AMA.OWUSU@adom.example>":     true,
		"ama.owusu\u200b@adom.example":       true, // zero-width space
		"am\u0430.owusu@adom.example":        true, // Cyrillic a
		"\u0410ma":                           true, // Cyrillic capital A
		"\uff41\uff4d\uff41 owusu":           true, // full width
		"a\u0301ma owusu":                    true, // accent
		"Owusu's till":                       true,
		"OWUSU, AMA":                         true,
		"ama-owusu":                          true,
		"\u202eama.owusu@adom.example\u202c": true, // direction marks
		"":                                   false,
		"\u200b":                             false,
		"kofi@adom.example":                  false,
		"Accounts server":                    false,
		"adom":                               false, // the domain belongs to many people
		"nightly batch 2":                    false,
	} {
		if got := Named(text, ama); got != want {
			t.Errorf("Named(%+q) = %t", text, got)
		}
	}
}
