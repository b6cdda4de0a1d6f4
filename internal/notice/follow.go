package notice

import (
	"encoding/json"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
)

// Follow stores the fact of an entry of the audit log, where people are notified of it, in the transaction that writes the entry.
func Follow(tx *db.Tx, e audit.Entry) {
	raw, _ := e.Details.(json.RawMessage)
	var d struct{ Act, Kind string }
	if json.Unmarshal(raw, &d) == nil && d.Act != "" {
		if event, is := requestEvents[e.Action]; is {
			Write(tx, e.At, Fact{Event: event, Subject: d.Act})
		} else if e.Action == d.Kind {
			Write(tx, e.At, Fact{Event: RequestApproved, Subject: d.Act})
		}
	}
}

// requestEvents are the events of change requests, by the action of their entries. An entry whose action is the kind of the request
// stands for one that was applied.
var requestEvents = map[string]Event{
	"act.make":     RequestWaits,
	"act.rejected": RequestRejected,
	"act.expired":  RequestExpired,
	"act.failed":   RequestFailed,
}
