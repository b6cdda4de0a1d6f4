package changes

import (
	"fmt"

	"github.com/makola/makola/internal/audit"
	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/problem"
)

// The limits of one person's waiting requests. They keep a person from hiding the requests of others among thousands.
const mostOpen = 50

var requests = identity.Limit{What: "act.make", Most: 30, Of: "requests that wait for approval"}

const (
	countOpen = `SELECT count(*) FROM acts WHERE maker = $1 AND state = 'waiting' AND access_key = ''`
	findTwin  = `SELECT id FROM acts WHERE maker = $1 AND state = 'waiting' AND access_key = '' AND kind = $2 AND tenant = $3 AND place = $4 AND payload = $5 AND reason = $6 AND needs = $7 AND expires_at > $8
		ORDER BY id LIMIT 1`
)

// limit refuses, in tx, a further request of a person with too many waiting requests. key names the request.
func (s *Store) limit(tx *db.Tx, a Request, key string) error {
	if _, err := s.people.Take(tx, requests, a.Requester, key, audit.Entry{}); err != nil { // locks the person, so that concurrent requests are counted one by one
		return err
	}
	open := 0
	_, err := tx.One(countOpen, []any{a.Requester}, &open)
	if err == nil && open >= mostOpen {
		err = problem.New(problem.RateLimited, "too_many_open", fmt.Sprintf("%d of your requests wait for approval. Wait until some are approved, or withdraw some.", mostOpen))
	}
	return err
}

// twin finds a waiting request of the same person for the same change, with the same reason and the same number of
// required approvals.
func (s *Store) twin(tx *db.Tx, a Request) (twin Request, found bool, err error) {
	id := ""
	if found, err = tx.One(findTwin, []any{a.Requester, a.Kind, a.Tenant, a.Place, string(a.Payload), a.Reason, a.Needs, s.clock.Now()}, &id); err != nil || !found {
		return Request{}, false, err
	}
	twin, err = s.read(tx, selectRequest, id)
	return twin, true, err
}
