package sim

import (
	"errors"
	"strings"
)

// maxUsers is the maximum number of users in a book.
const maxUsers = 10_000

var errTooManyUsers = errors.New("the simulator's book has no room for another API user")

// user returns an API user. It ignores the case of the id.
func (b *book) user(id string) (User, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u, known := b.users[strings.ToLower(id)]
	return u, known
}

// addUser stores an API user durably. made is false if the user exists.
func (b *book) addUser(u User) (made bool, err error) {
	u.ID = strings.ToLower(u.ID)
	b.mu.Lock()
	if _, known := b.users[u.ID]; known {
		b.mu.Unlock()
		return false, nil
	}
	if len(b.users) >= maxUsers {
		b.mu.Unlock()
		return false, errTooManyUsers
	}
	g := b.keepUserLocked(u)
	b.mu.Unlock()
	return true, g.wait()
}

// setKey stores the key of an API user durably.
func (b *book) setKey(id, key string) (known bool, err error) {
	b.mu.Lock()
	u, known := b.users[strings.ToLower(id)]
	if !known {
		b.mu.Unlock()
		return false, nil
	}
	u.Key = key
	g := b.keepUserLocked(u)
	b.mu.Unlock()
	return true, g.wait()
}

// keepUserLocked stores a user.
func (b *book) keepUserLocked(u User) *group {
	b.users[u.ID] = u
	return b.journal.add(record{User: &u}, false)
}
