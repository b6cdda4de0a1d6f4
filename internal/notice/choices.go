package notice

import (
	"time"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/roles"
)

// dailyAt is the hour of the daily message in Accra's time, which is UTC.
const dailyAt = 7

const selectChoices = `SELECT topic, choice FROM notice_choices WHERE person = $1`

// chosen reads a person's choices.
func chosen(tx *db.Tx, person string) (map[Topic]Choice, error) {
	all := map[Topic]Choice{}
	err := tx.Query(selectChoices, []any{person}, func(r *db.Row) error {
		var t Topic
		var c Choice
		err := r.Scan(&t, &c)
		all[t] = c
		return err
	})
	return all, err
}

// inForce returns when a person with a role is notified of a topic.
func inForce(t Topic, r roles.Role, chosen map[Topic]Choice) Choice {
	c, made := chosen[t]
	if !made {
		c = defaultOf(t, r)
	}
	if c == Never && r == roles.Owner && t.Kept() { // the choice was made before the person became an owner
		c = AtOnce
	}
	return c
}

// due returns the time at which a fact is to be sent.
func (c Choice) due(now time.Time) time.Time {
	if c != Daily {
		return now
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), dailyAt, 0, 0, 0, time.UTC)
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}
