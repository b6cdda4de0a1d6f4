// Package compose has the pages of an account on which people write a campaign (/app/TENANT/messages/new), see its price and the
// texts of its recipients (/app/TENANT/campaign-drafts/ID), and send it.
//
// Files: routes.go lists the pages, new.go has the form, draft.go shows, changes and sends a draft.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package compose

import (
	"github.com/makola/makola/internal/compose"
	"github.com/makola/makola/internal/config"
	"github.com/makola/makola/internal/console"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/contacts"
	"github.com/makola/makola/internal/ledger"
	"github.com/makola/makola/internal/senderid"
)

// Pages has the handlers of the pages and their dependencies.
type Pages struct {
	Drafts    *compose.Store
	Senders   *senderid.Store
	Contacts  *contacts.Store
	Ledger    *ledger.Ledger
	Approvals *approvals.Pages
	Hours     config.Hours // of promotional texts
}

func newPath(v *console.Visit) string { return "/app/" + v.Tenant.ID + "/messages/new" }

func draftPath(v *console.Visit, id string) string {
	return "/app/" + v.Tenant.ID + "/campaign-drafts/" + id
}

func campaignPath(v *console.Visit, id string) string {
	return "/app/" + v.Tenant.ID + "/messages/" + id
}
