package route

import (
	"sync"
	"time"
)

type breakerKey struct {
	mode, provider string
	op             Operation
}

// breaker is an open breaker. At the time until it becomes half-open: one request at a time may try the provider. At the time
// probeUntil the next request may try.
type breaker struct {
	openedAt, until, probeUntil time.Time
	hold                        time.Duration
	why                         string
}

// breakers has this node's counts of failures and its own decisions about breakers.
type breakers struct {
	mu       sync.Mutex
	failures map[breakerKey]int
	// read has the breakers as last read from the table. changed has this node's decisions that are not published
	// yet. A nil value in changed means that the breaker is closed.
	read    map[breakerKey]breaker
	changed map[breakerKey]*breaker
	// readings is the number of readings of the table that have begun. newest is the number of the reading that read
	// comes from.
	readings, newest uint64
}

func (b *breakers) init() {
	b.failures, b.read, b.changed = map[breakerKey]int{}, map[breakerKey]breaker{}, map[breakerKey]*breaker{}
}

// reading returns the number of a reading of the table that begins now.
func (b *breakers) reading() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readings++
	return b.readings
}

// seen stores a reading, unless a later one is stored already. An earlier reading may date from before a publication.
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
