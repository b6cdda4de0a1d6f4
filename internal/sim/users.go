package sim

import (
	"errors"
	"strings"
)

// maxUsers bounds the users of a book.
const maxUsers = 10_000

var errTooManyUsers = errors.New("the simulator's book has no room for another API user")

// user gives an API user; the case of its id does not matter.
func (b *book) user(id string) (User, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u, known := b.users[strings.ToLower(id)]
	return u, known
}

// addUser enters an API user, durably; made is false where there is one already.
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

// setKey gives an API user a key, durably.
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

// keepUserLocked writes a user while b is locked.
func (b *book) keepUserLocked(u User) *group {
	b.users[u.ID] = u
	return b.journal.add(record{User: &u}, false)
}
