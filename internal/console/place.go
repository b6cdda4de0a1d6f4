package console

import (
	"context"

	"github.com/makola/makola/internal/roles"
)

// Place is a site with a visitor whose pending items the navigation counts.
type Place struct {
	Ctx    context.Context
	Tenant string // empty: the installation
	Person string // the visitor's ID
	Can    func(p roles.Permission) bool
}
