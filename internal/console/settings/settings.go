// Package settings has the pages by which an account is reached and by the people who work in it, on both sites of the console: API keys,
// addresses, the secret of webhooks, settings and people.
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

// Pages has the handlers of the pages, and what they need.
type Pages struct {
	Identity  *identity.Identity
	Access    *access.Access
	Requests  *requestlog.Log
	Webhooks  *webhook.Webhooks
	Approvals *approvals.Pages
}
