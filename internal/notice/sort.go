package notice

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/makola/makola/internal/db"
	"github.com/makola/makola/internal/identity"
	"github.com/makola/makola/internal/roles"
)

// reader is a person who is to be notified of a fact.
type reader struct {
	notice, person string
	role           roles.Role
	topic          Topic
	due            time.Time
}

var readerColumns = []db.Column[reader]{
	{Name: "notice", Text: func(r reader) string { return r.notice }},
	{Name: "person", Text: func(r reader) string { return r.person }},
	{Name: "role", Text: func(r reader) string { return string(r.role) }},
	{Name: "topic", Text: func(r reader) string { return string(r.topic) }},
	{Name: "due_at", Time: func(r reader) time.Time { return r.due }},
}

const (
	selectUnsorted = `SELECT ` + noticeColumns + ` FROM notices n WHERE n.sorted_at = 0 AND n.id > $1 ORDER BY n.id LIMIT $2`
	markSorted     = `UPDATE notices SET sorted_at = $2 WHERE sorted_at = 0 AND id IN (SELECT value FROM texts($1))`
)

const (
	// stale is the age from which facts cause no notice, such as facts from before the mail server was set
	// up.
	stale     = 24 * time.Hour
	sortBatch = 200
)

// audience remembers, for one round, who has a role at a place and what each chose.
type audience struct {
	holders map[string][]identity.Holder
	choices map[string]map[Topic]Choice
}

// sort finds the readers of the facts that are new.
func (n *Notices) sort(ctx context.Context) error {
	seen := &audience{map[string][]identity.Holder{}, map[string]map[Topic]Choice{}}
	var failed error
	for last := ""; ; {
		list, err := db.ReadAll(ctx, n.DB, selectUnsorted, []any{last, sortBatch}, (*stored).scan)
		if err != nil || len(list) == 0 {
			return errors.Join(failed, err)
		}
		last = list[len(list)-1].id
		var sorted []string
		var readers []reader
		for _, f := range list {
			found, err := n.readers(ctx, f, seen)
			if err != nil { // it is sorted in the next round, and the others are sorted now
				failed = errors.Join(failed, err)
				continue
			}
			sorted, readers = append(sorted, f.id), append(readers, found...)
		}
		if err := n.storeReaders(ctx, sorted, readers); err != nil {
			return errors.Join(failed, err)
		}
	}
}

// storeReaders stores the readers of facts. If another node has sorted one of the facts, it fails and changes
// nothing.
func (n *Notices) storeReaders(ctx context.Context, sorted []string, readers []reader) error {
	if len(sorted) == 0 {
		return nil
	}
	return n.DB.Write(ctx, func(tx *db.Tx) error {
		tx.Defer(markSorted, int64(len(sorted)), sorted, n.Clock.Now())
		db.Insert(tx, "notice_readers", readerColumns, readers)
		return nil
	})
}

// readers returns the people who get a notice of a fact.
func (n *Notices) readers(ctx context.Context, f stored, seen *audience) ([]reader, error) {
	rule, known := eventRules[f.event]
	if !known || n.Clock.Now().Sub(f.madeAt) > stale { // only a node of the newer release can sort its events
		return nil, nil
	}
	s, err := n.stands(ctx, f)
	if err != nil || s.over {
		return nil, err
	}
	if rule.own {
		return n.owner(ctx, f, rule.topic)
	}
	holders, err := n.holders(ctx, s.place, seen)
	if err != nil {
		return nil, err
	}
	var list []reader
	for _, h := range holders {
		if !s.reads(h.ID) || !roles.Can(roles.SiteOf(s.place), h.Role, s.needs) && h.Email != s.about {
			continue
		}
		if c := inForce(rule.topic, h.Role, seen.choices[h.ID]); c != Never {
			list = append(list, reader{f.id, h.ID, h.Role, rule.topic, c.due(n.Clock.Now())})
		}
	}
	if n.has(Hook) && s.place == roles.Installation && s.person == "" {
		list = append(list, reader{f.id, hookReader, hookReader, rule.topic, n.Clock.Now()})
	}
	return list, nil
}

// owner returns the person whose own account a fact is about.
func (n *Notices) owner(ctx context.Context, f stored, t Topic) ([]reader, error) {
	people, err := n.People.Members(ctx, "", f.person, 1)
	if err != nil || len(people) == 0 || len(people[0].Memberships) == 0 {
		return nil, err
	}
	var choices map[Topic]Choice
	err = n.DB.Read(ctx, func(tx *db.Tx) (err error) {
		choices, err = chosen(tx, f.person)
		return err
	})
	role := people[0].Memberships[0].Role
	c := inForce(t, role, choices)
	if err != nil || c == Never {
		return nil, err
	}
	return []reader{{f.id, f.person, role, t, c.due(n.Clock.Now())}}, nil
}

// reads reports whether a person's role and choices allow a notice.
func (s standing) reads(person string) bool {
	if s.person != "" {
		return person == s.person
	}
	return !slices.Contains(s.barred, person)
}

// holders returns the people with a role at a place, and reads their choices.
func (n *Notices) holders(ctx context.Context, place string, seen *audience) ([]identity.Holder, error) {
	if list, known := seen.holders[place]; known {
		return list, nil
	}
	var list []identity.Holder
	err := n.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if list, err = n.People.Holders(tx, place); err != nil {
			return err
		}
		for _, h := range list {
			if seen.choices[h.ID], err = chosen(tx, h.ID); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		seen.holders[place] = list
	}
	return list, err
}

// firstID returns an id that sorts before every id of a time or later.
func firstID(at time.Time) string {
	var id uuid.UUID
	ms := uint64(max(at.UnixMilli(), 0))
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return id.String()
}
