package changes

import (
	"encoding/json"
	"slices"
	"time"
)

// Fact is information that requester and approver should see before a change is applied. It never contains a
// whole phone or account number, because the erasure of a number does not search facts.
type Fact struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Warning bool   `json:"warning,omitempty"` // the fact is a warning
	// Of names the subject of the fact for a link. It is "account", "payment" or "provider", a colon, and the id or
	// name. It may be empty.
	Of string `json:"of,omitempty"`
	// Personal marks a fact with a person's name. Only the requester and possible approvers see it, and an erasure
	// removes it.
	Personal bool `json:"personal,omitempty"`
	// Unstored marks a fact that people see while the request waits, and that is never stored with it: the text of a
	// message, which must not stay longer than the message.
	Unstored bool `json:"-"`
}

// Facts are the results of Check at a time. They inform people. No change is refused because its facts changed.
type Facts struct {
	At   time.Time `json:"at"`
	List []Fact    `json:"list"`
}

// The subjects of facts.
func ofAccount(id string) string    { return "account:" + id }
func ofPayment(id string) string    { return "payment:" + id }
func ofProvider(name string) string { return "provider:" + name }

// becomes returns two facts about a changing value: before and after.
func becomes(what, before, after string) []Fact {
	return []Fact{{Name: what + " now", Value: before}, {Name: what + " then", Value: after}}
}

// warning returns a fact that is a warning.
func warning(text string) Fact { return Fact{Name: "Warning", Value: text, Warning: true} }

// text formats facts for storage and for the digest. It is empty if there are none.
func (f Facts) text() string {
	f.List = slices.DeleteFunc(slices.Clone(f.List), func(one Fact) bool { return one.Unstored })
	if len(f.List) == 0 {
		return ""
	}
	text, _ := json.Marshal(f) // texts, flags and a time can always be marshalled
	return string(text)
}

// factsOf parses stored facts. It returns none if the text has another form.
func factsOf(text string) (f Facts) {
	if text != "" {
		_ = json.Unmarshal([]byte(text), &f)
	}
	return f
}

// Warnings returns the facts that are warnings.
func (f Facts) Warnings() (list []Fact) {
	for _, one := range f.List {
		if one.Warning {
			list = append(list, one)
		}
	}
	return list
}

// has reports whether the list contains the same fact.
func (f Facts) has(one Fact) bool { return slices.Contains(f.List, one) }

// tenfold is the factor of a limit's growth above which there is a warning.
const tenfold = 10
