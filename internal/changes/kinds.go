package changes

import (
	"maps"
	"slices"

	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/senderid"
	"github.com/makola/makola/internal/treasury"
)

// New makes a Changes with every kind that there is.
func New(d Deps) *Changes { return &Changes{d, kinds()} }

// kinds are those that there are, by the names under which they are stored.
func kinds() map[string]kind {
	return map[string]kind{
		KindFund:     walletKind("Putting money into a wallet", (*treasury.Treasury).Fund).by("Deposit to a wallet", byAmount((*Changes).FundUnder), tenantField, amountField, referenceField),
		KindAdjust:   walletKind("Correcting a wallet", (*treasury.Treasury).Adjust).by("Correction of a wallet", byAmount((*Changes).AdjustUnder), tenantField, wayField, amountField, referenceField),
		KindAddFloat: floatKind(),
		KindPolicy:   policyKind(),

		KindSellCredits:   creditsKind("Giving SMS credits to an account", 1, (*messaging.Messaging).SellCredits),
		KindRefundCredits: creditsKind("Taking SMS credits back", -1, (*messaging.Messaging).TakeCredits),
		KindFees:          feesKind(),
		KindPause:         switchKind("Pausing a provider", false), KindResume: switchKind("Letting a paused provider go on", true),
		KindCreateSender: createSenderKind(), KindReopen: reopenKind(),
		KindRoute: routeKind(), KindRerun: rerunKind(),
		KindCatalogue: catalogueKind("Changing the catalogue", false), KindBankCode: catalogueKind("Changing a provider's code of a bank", false), KindPrefix: catalogueKind("Changing whose numbers a range is", true),
		KindTransfer: transferKind(), KindRecover: recoverKind(), KindLowBalance: lowBalanceKind(),
		KindStopCampaign: stopKind(),
		KindSendPayout:   payoutKind(),
		KindResolve:      resolveKind(), KindContradict: contradictKind(), KindDecide: decideKind(),

		KindCreateTenant: createTenantKind(), KindTenant: settingsKind("Changing an account", identity.MakeTenants),
		KindBlock:     settingsKind("Blocking an account or letting it go on", identity.BlockTenants),
		KindSettings:  settingsKind("Changing the account's own settings", identity.MakeSettings),
		KindAddresses: settingsKind("Changing the addresses of payouts", identity.MakeAddresses),
		KindCreateKey: createKeyKind(), KindRotateKey: rotateKeyKind(), KindRevokeKey: revokeKeyKind(), KindSetKey: setKeyKind(),
		KindRotateSecret:  rotateSecretKind(),
		KindApproveSender: reviewKind("Approving a sender ID", senderid.Approved), KindRejectSender: reviewKind("Rejecting a sender ID", senderid.Rejected),
		KindInvite: inviteKind(), KindRole: roleKind(), KindDisable: disableKind(), KindEnable: enableKind(), KindReset: resetKind(),
	}
}

// Forms are the kinds that are requested by their fields, in the order of their names.
func Forms() (list []Form) {
	all := kinds()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if k := all[name]; k.ask != nil {
			list = append(list, Form{Kind: name, Title: k.title, Request: k.rule.Make, Fields: k.fields})
		}
	}
	return list
}
