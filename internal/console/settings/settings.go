// Package settings has the pages of API keys, the IP allow-list, the webhook secret, settings and people, on both sites of the
// console.
//
// Files: routes.go lists the pages, access.go shows keys and settings, account.go has the forms that change these, people.go the
// pages and forms of people.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package settings

import (
	"github.com/makola/makola/internal/access"
	"github.com/makola/makola/internal/console/approvals"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/requestlog"
	"github.com/makola/makola/internal/webhook"
)

// Pages has the handlers of the pages, and their dependencies.
type Pages struct {
	Identity  *identity.Identity
	Access    *access.Access
	Requests  *requestlog.Log
	Webhooks  *webhook.Webhooks
	Approvals *approvals.Pages
}
