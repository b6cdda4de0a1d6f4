package contacts

import (
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/problem"
)

// OwnGroups reads groups of the tenant, each once. Groups of other tenants and unknown groups are both Forbidden, so
// that a send cannot reveal which groups exist.
func OwnGroups(tx *db.Tx, tenant string, ids []string) ([]Group, error) {
	var groups []Group
	read := map[string]bool{}
	for _, id := range ids {
		if read[id] {
			continue
		}
		read[id] = true
		g, err := ownGroup(tx, selectGroup, tenant, id)
		if problem.Is(err, problem.NotFound) || problem.Is(err, problem.Forbidden) {
			err = problem.New(problem.Forbidden, "group_not_owned", "You do not own one or more of the contact groups")
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, g)
	}
	return groups, nil
}

const numbersPage = `SELECT id, msisdn FROM contacts WHERE tenant = $1 AND group_id = $2 AND id > $3 ORDER BY id LIMIT $4`

// Numbers calls each with the number of every contact of a group, page by page. In a snapshot the group is complete,
// or absent if it was deleted before.
func Numbers(tx *db.Tx, g Group, each func(msisdn.MSISDN)) error {
	for after, more := "", true; more; {
		more = false
		if err := tx.Query(numbersPage, []any{g.Tenant, g.ID, after, atOnce}, func(r *db.Row) error {
			var number string
			if err := r.Scan(&after, &number); err != nil {
				return err
			}
			more = true
			each(msisdn.MSISDN(number))
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

const groupAfter = `SELECT ` + contactFields + ` FROM contacts WHERE tenant = $1 AND group_id = $2 AND id > $3 ORDER BY id LIMIT $4`

// Each calls each with every contact of a group, as Numbers does, until it returns an error.
func Each(tx *db.Tx, g Group, each func(Contact) error) error {
	for after, more := "", true; more; {
		more = false
		if err := tx.Query(groupAfter, []any{g.Tenant, g.ID, after, atOnce}, func(r *db.Row) error {
			var c Contact
			if err := c.scan(r); err != nil {
				return err
			}
			after, more = c.ID, true
			return each(c)
		}); err != nil {
			return err
		}
	}
	return nil
}
