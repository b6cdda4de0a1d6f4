package contacts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/problem"
	"github.com/makola/makola/internal/tenant"
	"github.com/makola/makola/internal/usertext"
)

// DefaultIcon is the icon of a group for which none was given.
const DefaultIcon = "group_icon_1"

const (
	maxGroupName = 100 // characters; a longer name is cut
	maxIcon      = 60
)

// Group is a list of contacts.
type Group struct {
	Tenant    string
	ID        string
	Name      string
	Icon      string
	Contacts  int64
	CreatedAt time.Time
}

const countGroups = `SELECT count(*) FROM contact_groups WHERE tenant = $1 AND deleted_at = 0`

const insertGroup = `INSERT INTO contact_groups (tenant, id, name, icon, contacts, created_at) VALUES ($1, $2, $3, $4, 0, $5)`

// AddGroup makes an empty group. replayed means that the caller's Idempotency-Key made it before.
func (s *Store) AddGroup(ctx context.Context, caller idempotency.Caller, name, icon string) (made Group, replayed bool, err error) {
	g := Group{Tenant: caller.Tenant, ID: uuid.Must(uuid.NewV7()).String(), Name: usertext.Cut(name, maxGroupName), Icon: usertext.Cut(icon, maxIcon), CreatedAt: s.clock.Now()}
	if g.Icon == "" {
		g.Icon = DefaultIcon
	}
	if err := checkGroupName(g.Name); err != nil {
		return Group{}, false, err
	}
	quotas, err := s.quotasOf(ctx, caller.Tenant)
	if err != nil {
		return Group{}, false, err
	}
	full := problem.Field("name", fmt.Sprintf("cannot be given: an account may have at most %d contact groups", quotas.Groups))
	return idempotency.Once(db.Bulk(ctx, caller.Tenant), s.answers, caller, func(tx *db.Tx) (Group, error) {
		if err := tenant.Room(tx, countGroups, g.Tenant, 1, quotas.Groups, full); err != nil {
			return Group{}, err
		}
		_, err := tx.Exec(insertGroup, g.Tenant, g.ID, g.Name, g.Icon, g.CreatedAt)
		return g, err
	})
}

// CreateGroup makes an empty group in tx, where the caller also writes the audit entry. An operator uses it to
// move a customer's group here, with the id (a UUID) that the customer's programs use. An existing id is a
// Duplicate.
func (s *Store) CreateGroup(tx *db.Tx, tenant, id, name string) (Group, error) {
	given, err := uuid.Parse(id)
	if err != nil {
		return Group{}, problem.Field("id", "must be a UUID")
	}
	g := Group{Tenant: tenant, ID: given.String(), Name: usertext.Cut(name, maxGroupName), Icon: DefaultIcon, CreatedAt: s.clock.Now()}
	if err := checkGroupName(g.Name); err != nil {
		return Group{}, err
	}
	if _, err := s.tenants.Locked(tx, tenant); err != nil {
		return Group{}, err
	}
	if _, err = tx.Exec(insertGroup, g.Tenant, g.ID, g.Name, g.Icon, g.CreatedAt); errors.Is(err, db.ErrUnique) {
		return Group{}, problem.New(problem.Duplicate, "group_exists", "There is a group with this id")
	}
	return g, err
}

func checkGroupName(name string) error {
	if name == "" || !usertext.Storable(name) {
		return problem.Field("name", "must have at least one character, and no control characters")
	}
	return nil
}

const groupColumns = `tenant, id, name, icon, contacts, created_at`

func (g *Group) scan(r *db.Row) error {
	return r.Scan(&g.Tenant, &g.ID, &g.Name, &g.Icon, &g.Contacts, &g.CreatedAt)
}

const listGroups = `SELECT ` + groupColumns + ` FROM contact_groups WHERE tenant = $1 AND deleted_at = 0 ORDER BY created_at DESC, id DESC LIMIT 10000`

// Groups gives the tenant's groups, newest first.
func (s *Store) Groups(ctx context.Context, tenant string) ([]Group, error) {
	return db.ReadAll(db.Bulk(ctx, tenant), s.db, listGroups, []any{tenant}, (*Group).scan)
}

const selectGroup = `SELECT ` + groupColumns + ` FROM contact_groups WHERE id = $1 AND deleted_at = 0`

// lockGroup reads a group of the tenant and locks it until the end of tx.
func lockGroup(tx *db.Tx, tenant, id string) (Group, error) {
	return ownGroup(tx, selectGroup+tx.ForUpdate(), tenant, id)
}

// ownGroup reads a group of the tenant with one of the two queries. A group of another tenant is Forbidden, an unknown one
// NotFound.
func ownGroup(tx *db.Tx, sql, tenant, id string) (Group, error) {
	var g Group
	if err := tx.Query(sql, []any{id}, g.scan); err != nil {
		return Group{}, err
	}
	if g.ID == "" {
		return Group{}, problem.New(problem.NotFound, "group_not_found", "Contact group not found")
	}
	if g.Tenant != tenant {
		return Group{}, problem.New(problem.Forbidden, "group_not_owned", "You do not own this contact group")
	}
	return g, nil
}

const updateGroup = `UPDATE contact_groups SET name = $3, icon = $4 WHERE tenant = $1 AND id = $2`

// UpdateGroup renames a group; an empty icon leaves it as it is.
func (s *Store) UpdateGroup(ctx context.Context, tenant, id, name, icon string) (Group, error) {
	name = usertext.Cut(name, maxGroupName)
	if err := checkGroupName(name); err != nil {
		return Group{}, err
	}
	var g Group
	err := s.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		var err error
		if g, err = lockGroup(tx, tenant, id); err != nil {
			return err
		}
		g.Name = name
		if icon != "" {
			g.Icon = usertext.Cut(icon, maxIcon)
		}
		tx.Defer(updateGroup, 1, tenant, id, g.Name, g.Icon)
		return nil
	})
	return g, err
}
