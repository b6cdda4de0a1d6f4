package messaging

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/idempotency"
	"github.com/makola/makola/internal/label"
	"github.com/makola/makola/internal/problem"
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

// AddGroup makes an empty group; replayed says that the caller's Idempotency-Key made it before.
func (m *Messaging) AddGroup(ctx context.Context, caller idempotency.Caller, name, icon string) (made Group, replayed bool, err error) {
	g := Group{Tenant: caller.Tenant, ID: uuid.Must(uuid.NewV7()).String(), Name: label.Cut(name, maxGroupName), Icon: label.Cut(icon, maxIcon), CreatedAt: m.clock.Now()}
	if g.Icon == "" {
		g.Icon = DefaultIcon
	}
	if err := checkGroupName(g.Name); err != nil {
		return Group{}, false, err
	}
	quotas, err := m.quotasOf(ctx, caller.Tenant)
	if err != nil {
		return Group{}, false, err
	}
	return idempotency.Once(db.Bulk(ctx, caller.Tenant), m.answers, caller, func(tx *db.Tx) (Group, error) {
		if err := roomForGroup(tx, g.Tenant, quotas.Groups); err != nil {
			return Group{}, err
		}
		_, err := tx.Exec(insertGroup, g.Tenant, g.ID, g.Name, g.Icon, g.CreatedAt)
		return g, err
	})
}

// CreateGroup makes an empty group in tx, where the caller also writes the audit entry: an operator brings a customer's
// over, with the id (a UUID) that the customer's programs have in their configuration.
func (m *Messaging) CreateGroup(tx *db.Tx, tenant, id, name string) (Group, error) {
	given, err := uuid.Parse(id)
	if err != nil {
		return Group{}, problem.Field("id", "must be a UUID")
	}
	g := Group{Tenant: tenant, ID: given.String(), Name: label.Cut(name, maxGroupName), Icon: DefaultIcon, CreatedAt: m.clock.Now()}
	if err := checkGroupName(g.Name); err != nil {
		return Group{}, err
	}
	if _, err := m.tenants.Locked(tx, tenant); err != nil {
		return Group{}, err
	}
	taken := false
	if err := tx.Query(selectGroup, []any{g.ID}, func(*db.Row) error { taken = true; return nil }); err != nil {
		return Group{}, err
	}
	if !taken {
		_, err = tx.Exec(insertGroup, g.Tenant, g.ID, g.Name, g.Icon, g.CreatedAt)
	}
	if taken || errors.Is(err, db.ErrUnique) {
		return Group{}, problem.New(problem.Duplicate, "group_exists", "There is a group with this id")
	}
	return g, err
}

func checkGroupName(name string) error {
	if name == "" || !label.Storable(name) {
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
func (m *Messaging) Groups(ctx context.Context, tenant string) ([]Group, error) {
	var all []Group
	err := m.db.Read(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		all = nil
		return tx.Query(listGroups, []any{tenant}, func(r *db.Row) error {
			var g Group
			if err := g.scan(r); err != nil {
				return err
			}
			all = append(all, g)
			return nil
		})
	})
	return all, err
}

const selectGroup = `SELECT ` + groupColumns + ` FROM contact_groups WHERE id = $1 AND deleted_at = 0`

// lockGroup reads a group of the tenant and keeps it as it is until the end of tx.
func lockGroup(tx *db.Tx, tenant, id string) (Group, error) {
	return ownGroup(tx, selectGroup+tx.ForUpdate(), tenant, id)
}

// ownGroup reads a group. One of somebody else is Forbidden, an unknown one NotFound.
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
func (m *Messaging) UpdateGroup(ctx context.Context, tenant, id, name, icon string) (Group, error) {
	name = label.Cut(name, maxGroupName)
	if err := checkGroupName(name); err != nil {
		return Group{}, err
	}
	var g Group
	err := m.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		var err error
		if g, err = lockGroup(tx, tenant, id); err != nil {
			return err
		}
		g.Name = name
		if icon != "" {
			g.Icon = label.Cut(icon, maxIcon)
		}
		tx.Defer(updateGroup, 1, tenant, id, g.Name, g.Icon)
		return nil
	})
	return g, err
}

const (
	markDeleted   = `UPDATE contact_groups SET deleted_at = $3 WHERE tenant = $1 AND id = $2`
	deletedGroups = `SELECT tenant, id FROM contact_groups WHERE deleted_at <> 0 ORDER BY deleted_at LIMIT $1`
	// A range of the key is the same plan whatever the statistics say of the table.
	deleteContacts = `DELETE FROM contacts WHERE tenant = $1 AND group_id = $2
		AND id <= (SELECT max(first.id) FROM (SELECT id FROM contacts WHERE tenant = $1 AND group_id = $2 ORDER BY id LIMIT $3) AS first)`
	deleteEmptied = `DELETE FROM contact_groups WHERE tenant = $1 AND id = $2 AND deleted_at <> 0 AND contacts = 0`
)

// DeleteGroup removes a group with its contacts. A campaign that was accepted before has its own list of recipients and
// goes on. The group is gone with the first transaction; the contacts follow in sets, and the sweep removes those that
// this call does not come to.
func (m *Messaging) DeleteGroup(ctx context.Context, tenant, id string) error {
	err := m.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) error {
		if _, err := lockGroup(tx, tenant, id); err != nil {
			return err
		}
		tx.Defer(markDeleted, 1, tenant, id, m.clock.Now())
		return nil
	})
	if err == nil {
		_ = m.emptyGroup(ctx, tenant, id) // the sweep goes on, and says what stops it
	}
	return err
}

// emptyGroup removes the contacts of a deleted group in transactions of contactsAtOnce rows, and its row with the last.
// Two callers at once do the work once.
func (m *Messaging) emptyGroup(ctx context.Context, tenant, id string) error {
	for removed := int64(contactsAtOnce); removed == contactsAtOnce; {
		if err := m.db.Write(db.Bulk(ctx, tenant), func(tx *db.Tx) (err error) {
			if removed, err = tx.Exec(deleteContacts, tenant, id, contactsAtOnce); err != nil {
				return err
			}
			if removed > 0 {
				tx.Defer(growGroup, 1, tenant, id, -removed)
			}
			tx.Defer(deleteEmptied, -1, tenant, id)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

const (
	// groupsSweepEvery is the pause between two looks for deleted groups whose contacts are still there.
	groupsSweepEvery = 10 * time.Minute
	groupsAtOnce     = 100 // groups a look
)

// sweepGroups removes what the calls that deleted groups did not come to.
func (m *Messaging) sweepGroups(ctx context.Context) error {
	type group struct{ tenant, id string }
	var deleted []group
	if err := m.db.Read(db.Bulk(ctx, ""), func(tx *db.Tx) error {
		deleted = nil
		return tx.Query(deletedGroups, []any{groupsAtOnce}, func(r *db.Row) error {
			var g group
			err := r.Scan(&g.tenant, &g.id)
			deleted = append(deleted, g)
			return err
		})
	}); err != nil {
		return err
	}
	for _, g := range deleted {
		if err := m.emptyGroup(ctx, g.tenant, g.id); err != nil {
			return err
		}
	}
	return nil
}
