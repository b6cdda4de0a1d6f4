package frame

import "github.com/makola/makola/internal/changes"

// Ask is a change that a command requests.
type Ask struct {
	E       *Env
	O       *Opened
	Changes *changes.Changes
	Output  string
	Values  changes.Values
	Reason  string
	Line    map[string]string // arguments and flags of the command line
	Request changes.Request   // the request, when it is made
}

// Accounts replaces the names of accounts by their ids.
func (q *Ask) Accounts() error {
	names := []string{changes.FieldTenant, "wallet"}
	if q.Values["to"] != "" { // otherwise from is a time or an amount
		names = append(names, "from", "to")
	}
	for _, name := range names {
		if id, given := q.Values[name]; given {
			if err := q.O.Known(q.E.Ctx, &id); err != nil {
				return err
			}
			q.Values[name] = id
		}
	}
	return nil
}
