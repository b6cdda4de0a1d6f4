package identity

import (
	"net/netip"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
)

// note writes an audit entry about a person's action on their own account.
func (i *Identity) note(tx *db.Tx, p Person, from netip.Addr, e audit.Entry) error {
	e.Actor, e.Person, e.Subject = p.Email, p.ID, p.ID
	if from.IsValid() {
		e.Origin = from.String()
	}
	return i.audit.WriteNoted(tx, e) // also written to acts.jsonl, because after a restore the old password or factor is valid again
}

func changesOf(what, before, after string) any {
	return map[string]any{"changes": []audit.Change{{What: what, Before: before, After: after}}}
}
