// Package approvals has the pages on which people request changes, approve them, and see the policy of how many approvers a change
// needs. They belong to both sites of the console.
//
// Files: routes.go lists the pages, form.go is a form that requests a change, requests.go shows requests and decides about them, alike.go approves like
// requests together,
// secrets.go reveals the secret result of a change, policy.go shows the policy, count.go
// counts requests for the navigation.
//
//go:generate go run github.com/a-h/templ/cmd/templ@v0.3.977 generate
package approvals

import "github.com/makola/makola/internal/changes"

// Pages has the handlers of the pages and their dependencies.
type Pages struct {
	// Changes makes and decides change requests.
	Changes *changes.Changes
}
