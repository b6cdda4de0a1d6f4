package book

import (
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// NewID returns a UUIDv7 for a time of our clock. Ids sort by time to the microsecond, because the twelve bits after
// the version hold the fraction of the millisecond. An id is not a secret.
func NewID(at time.Time) string { return idOf(at, rand.Uint64()) }

// FirstID returns an id that sorts before all ids of a time and after all ids of earlier times.
func FirstID(at time.Time) string { return idOf(at, 0) }

func idOf(at time.Time, random uint64) string {
	us := uint64(max(0, at.UnixMicro()))
	ms, fraction := us/1000, us%1000*4096/1000
	var id uuid.UUID
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6] = 0x70 | byte(fraction>>8)
	id[7] = byte(fraction)
	for i := range 8 {
		id[8+i] = byte(random >> (8 * i))
	}
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
