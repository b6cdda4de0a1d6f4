package route

import (
	"sync"
	"time"
)

type breakerKey struct {
	mode, provider string
	op             Operation
}

// breaker is an open one. After until it is half-open: one request at a time
// may try, and probeUntil is when the next may.
type breaker struct {
	openedAt, until, probeUntil time.Time
	hold                        time.Duration
	why                         string
}

// breakers is what this node has counted and not yet read back from the table.
type breakers struct {
	mu       sync.Mutex
	failures map[breakerKey]int
	// read is the table as last read; changed is what this node decided since
	// and has not published. nil in changed is closed.
	read    map[breakerKey]breaker
	changed map[breakerKey]*breaker
	// readings counts readings of the table that began; newest is the one that read is of.
	readings, newest uint64
}

func (b *breakers) init() {
	b.failures, b.read, b.changed = map[breakerKey]int{}, map[breakerKey]breaker{}, map[breakerKey]*breaker{}
}

// reading numbers a reading of the table that begins.
func (b *breakers) reading() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readings++
	return b.readings
}

// seen stores a reading, unless a reading that began later is stored already: this one may be from before a
// publication.
func (b *breakers) seen(reading uint64, read map[breakerKey]breaker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if reading > b.newest {
		b.newest, b.read = reading, read
	}
}

// state returns the breaker as this node knows it. ours is true if the table does not have that state yet.
func (b *breakers) state(k breakerKey, read map[breakerKey]breaker) (now breaker, open, ours bool) {
	if c, ok := b.changed[k]; ok {
		if c == nil {
			return breaker{}, false, true
		}
		return *c, true, true
	}
	now, open = read[k]
	return now, open, false
}
