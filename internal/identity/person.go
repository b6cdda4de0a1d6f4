package identity

import (
	"time"

	"github.com/makola/makola/internal/roles"
)

// Person is a human being who can sign in.
type Person struct {
	ID         string
	Email      string
	Name       string
	CreatedAt  time.Time
	DisabledAt time.Time // zero: may sign in
}

// Membership is the role of a person at one tenant or at the installation.
type Membership struct {
	Tenant string // Installation, or an id
	Role   roles.Role
}
