package accounts

import (
	"cmp"

	"github.com/makola/makola/internal/changes"
	"github.com/makola/makola/internal/cli/frame"
	"github.com/makola/makola/internal/tenant"
)

// ofKey names the field with the id of a key.
var ofKey = map[string]string{"id": "key"}

// ofSender names the field with the id of a sender ID.
var ofSender = map[string]string{"id": "sender"}

// Aliases has the commands that request a change of one kind, by command name.
var Aliases = map[string]frame.Alias{
	"account create": {Kind: changes.KindCreateTenant, Fields: map[string]string{"payout-ip": changes.PayoutIPs}, Prepare: prepareAccount, Show: showAccount},
	"account set": {Kind: changes.KindTenant, Fields: map[string]string{"id": changes.FieldTenant, "payout-ip": changes.PayoutIPs, "no-payout-ip": changes.PayoutIPs + "="},
		Prepare: prepareSettings, Same: "nothing_changed", Show: showAccount},

	"key create": {Kind: changes.KindCreateKey, Fields: map[string]string{"scope": "scopes", "expires-in": "expiry"}, Show: showNewKey},
	"key set":    {Kind: changes.KindSetKey, Fields: ofKey, Show: showKey},
	"key rotate": {Kind: changes.KindRotateKey, Fields: ofKey, Show: showNewKey},
	"key revoke": {Kind: changes.KindRevokeKey, Fields: ofKey, Show: showKey},

	"people create":  {Kind: changes.KindInvite, Prepare: prepareNewPerson, Show: showPerson},
	"people invite":  {Kind: changes.KindInvite, Prepare: prepareInvitation, Show: showPerson},
	"people role":    {Kind: changes.KindRole, Prepare: prepareRole, Show: showPerson},
	"people disable": {Kind: changes.KindDisable, Show: showPerson},
	"people enable":  {Kind: changes.KindEnable, Show: showPerson},
	"people reset":   {Kind: changes.KindReset, Show: showPerson},

	"senders create":  {Kind: changes.KindCreateSender, Fields: map[string]string{"desc": "description"}, Prepare: prepareSender, Show: showSender},
	"senders approve": {Kind: changes.KindApproveSender, Fields: ofSender, Show: showSender},
	"senders reject":  {Kind: changes.KindRejectSender, Fields: ofSender, Show: showSender},
	"campaigns stop":  {Kind: changes.KindStopCampaign, Show: showCampaign},
}

// prepareAccount generates an id for an account without one.
func prepareAccount(q *frame.Ask) error {
	q.Values["id"] = cmp.Or(q.Values["id"], tenant.IDOf(frame.NewID()))
	return nil
}

func showAccount(q *frame.Ask) error {
	return printTenant(q.E.Ctx, q.O, q.E, q.Output, cmp.Or(q.Values[changes.FieldTenant], q.Values["id"]))
}
