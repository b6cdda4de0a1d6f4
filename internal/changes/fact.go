package changes

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Fact is one thing that requester and approver should see before a change is applied. It holds no whole phone or account number:
// erasure of a number does not look for one here.
type Fact struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Warning bool   `json:"warning,omitempty"` // it asks for a second look
	// Personal facts have a person's name: they are for the requester and for those who may approve, and an erasure removes them.
	Personal bool `json:"personal,omitempty"`
}

// Facts are those that Check found at a time. They are informative: nothing is refused because they changed.
type Facts struct {
	At   time.Time `json:"at"`
	List []Fact    `json:"list"`
}

// warning makes the fact that asks for a second look.
func warning(text string) Fact { return Fact{Name: "Warning", Value: text, Warning: true} }

// text is how facts are stored and digested; empty: none.
func (f Facts) text() string {
	if len(f.List) == 0 {
		return ""
	}
	text, _ := json.Marshal(f) // texts, flags and a time never fail
	return string(text)
}

// factsOf reads stored facts. A text of another form has none.
func factsOf(text string) (f Facts) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &f)
	}
	return f
}

// Warnings are the facts that ask for a second look.
func (f Facts) Warnings() (list []Fact) {
	for _, one := range f.List {
		if one.Warning {
			list = append(list, one)
		}
	}
	return list
}

// has reports whether the same fact is there.
func (f Facts) has(one Fact) bool { return slices.Contains(f.List, one) }

// shownOf is what an approval carries: the digest of the request, one of all facts, and one of each warning.
func shownOf(digest string, f Facts) string {
	parts := []string{digest, short(f.text())}
	for _, w := range f.Warnings() {
		parts = append(parts, short(w.Value))
	}
	return strings.Join(parts, ".")
}

func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
