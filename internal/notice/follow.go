package notice

import (
	"encoding/json"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
)

// Follow stores the facts of an audit entry of which people are notified. It runs in the transaction that writes the entry.
func Follow(tx *db.Tx, e audit.Entry) {
	raw, _ := e.Details.(json.RawMessage)
	var d struct {
		Request        string `json:"act"`
		Kind, Sentence string
	}
	if json.Unmarshal(raw, &d) != nil {
		return
	}
	if e.BrokeGlass() {
		Write(tx, e.At, Fact{Event: BreakGlass, Subject: e.ID, Lines: []string{e.Action + " by " + e.Actor + ": " + e.Reason}})
	}
	if event, is := ownEvents[e.Action]; is {
		Write(tx, e.At, Fact{Event: event, Person: e.Person, Subject: e.ID, Lines: []string{"At " + e.At.UTC().Format("2 Jan 2006, 15:04") + " UTC from " + orUnknown(e.Origin)}})
	}
	if d.Request == "" {
		return
	}
	if event, is := requestEvents[e.Action]; is {
		Write(tx, e.At, Fact{Event: event, Subject: d.Request})
	}
	if e.Action != d.Kind { // otherwise the request was applied
		return
	}
	Write(tx, e.At, Fact{Event: RequestApproved, Subject: d.Request})
	switch event := appliedEvents[d.Kind]; event {
	case "":
	case RoleChanged:
		Write(tx, e.At, Fact{Event: event, Subject: d.Request})
	default:
		Write(tx, e.At, Fact{Event: event, Place: e.Tenant, Actor: e.Person, Subject: d.Request, Lines: []string{d.Sentence}})
	}
}

func orUnknown(origin string) string {
	if origin == "" {
		return "an unknown address"
	}
	return origin
}

// requestEvents maps the actions of audit entries to events of change requests. If the action of an entry is the
// kind of a request, the request was applied.
var requestEvents = map[string]Event{
	"act.make":     RequestWaits,
	"act.rejected": RequestRejected,
	"act.expired":  RequestExpired,
	"act.failed":   RequestFailed,
}

// ownEvents are the events of a person's own account, by the action of the audit entry.
var ownEvents = map[string]Event{
	"person.network":        NewNetwork,
	"person.factor":         FactorChanged,
	"person.recovery_codes": FactorChanged,
	"person.recovery_code":  FactorChanged,
	"person.password":       PasswordChanged,
	"person.phone":          PhoneChanged,
}

// appliedEvents are the events of requests that were applied, by the kind of the request.
var appliedEvents = map[string]Event{
	"key.create": KeyChanged, "key.rotate": KeyChanged, "key.revoke": KeyChanged, "key.set": KeyChanged, "webhook.rotate": KeyChanged,
	"people.invite": RoleChanged, "people.role": RoleChanged, "people.reset": RoleChanged, "people.disable": RoleChanged, "people.enable": RoleChanged,
	"sender.approve": SenderDecided, "sender.reject": SenderDecided,
}
