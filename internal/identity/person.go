package identity

import (
	"time"

	"github.com/makola/makola/internal/roles"
)

// Person is a person who can sign in.
type Person struct {
	ID         string
	Email      string
	Name       string
	CreatedAt  time.Time
	DisabledAt time.Time // zero: the person may sign in
}

// Membership is the role of a person at one tenant or at the installation.
type Membership struct {
	Tenant string // Installation, or the id of a tenant
	Role   roles.Role
}
