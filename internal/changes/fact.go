package changes

import (
	"encoding/json"
	"slices"
	"time"
)

// Fact is one thing that requester and approver should see before a change is applied. It holds no whole phone or account number:
// erasure of a number does not look for one here.
type Fact struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Warning bool   `json:"warning,omitempty"` // it asks for a second look
	// Of names the subject of the fact, for a link: account, payment or provider, a colon, and its id or name. It may be
	// empty.
	Of string `json:"of,omitempty"`
	// Personal facts have a person's name: they are for the requester and for those who may approve, and an erasure removes them.
	Personal bool `json:"personal,omitempty"`
}

// Facts are those that Check found at a time. They are informative: nothing is refused because they changed.
type Facts struct {
	At   time.Time `json:"at"`
	List []Fact    `json:"list"`
}

// The subjects of facts.
func ofAccount(id string) string    { return "account:" + id }
func ofPayment(id string) string    { return "payment:" + id }
func ofProvider(name string) string { return "provider:" + name }

// becomes makes the two facts of a value that changes.
func becomes(what, before, after string) []Fact {
	return []Fact{{Name: what + " now", Value: before}, {Name: what + " then", Value: after}}
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

// tenfold is the growth of a limit above which a warning asks for a second look.
const tenfold = 10
