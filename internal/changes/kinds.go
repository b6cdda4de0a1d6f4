package changes

import (
	"slices"
	"strings"

	"github.com/makola/makola/internal/messaging"
	"github.com/makola/makola/internal/senderid"
)

// New makes a Changes with the kinds of this package, and with further kinds of other packages.
func New(d Deps, more ...Kind) *Changes {
	a := &Changes{Deps: d, kinds: map[string]Kind{}}
	for _, k := range append(a.own(), more...) {
		a.kinds[k.Name] = k
	}
	return a
}

// own are the kinds of this package.
func (a *Changes) own() []Kind {
	return slices.Concat([]Kind{
		a.fundKind(), a.adjustKind(), a.transferKind(), a.recoverKind(), a.floatKind(),
		a.creditsKind(KindSellCredits, "Sale of SMS credits", "Sell %s to %s for %s", 1, (*messaging.Messaging).SellCredits),
		a.creditsKind(KindRefundCredits, "Return of SMS credits", "Take %s from %s for %s", -1, (*messaging.Messaging).TakeCredits),
		a.payoutKind(), a.refundKind(), a.operatorRefundKind(), a.batchKind(), a.resolveKind(), a.contradictKind(), a.decideKind(),

		a.createTenantKind(), a.lowBalanceKind(), a.createKeyKind(), a.rotateKeyKind(), a.revokeKeyKind(), a.setKeyKind(), a.rotateSecretKind(),
		a.createSenderKind(), a.classKind(), a.reviewKind(KindApproveSender, "Approval of a sender ID", senderid.Approved), a.reviewKind(KindRejectSender, "Rejection of a sender ID", senderid.Rejected),

		a.inviteKind(), a.roleKind(), a.disableKind(), a.enableKind(), a.resetKind(), a.policyKind(),

		a.feesKind(), a.switchKind(KindPause, "Pause of a provider", false), a.switchKind(KindResume, "Resumption of a provider", true), a.routeKind(),
		a.reopenKind(), a.rerunKind(), a.stopKind(), a.textsKind(),
	}, a.exceptionKinds(), a.bankKinds(), a.transitKinds(), a.closingKinds(), a.settingsKinds(), a.catalogueKinds(), a.incomingKinds())
}

// Forms returns the kinds of this package that makola change can request, ordered by name.
func Forms() (list []Form) {
	for _, k := range new(Changes).own() {
		if k.Instead == "" {
			list = append(list, Form{Kind: k.Name, Title: k.Title, Request: k.Rule.Make, Fields: k.Fields})
		}
	}
	slices.SortFunc(list, func(a, b Form) int { return strings.Compare(a.Kind, b.Kind) })
	return list
}

// FormOf returns the form of a kind that makola change can request, and whether there is such a kind.
func FormOf(kind string) (Form, bool) {
	list := Forms()
	at := slices.IndexFunc(list, func(f Form) bool { return f.Kind == kind })
	if at < 0 {
		return Form{}, false
	}
	return list[at], true
}
