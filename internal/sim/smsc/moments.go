package smsc

import (
	"sync"
	"time"

	"github.com/makola/makola/internal/sim"
)

// moments combines all events of one time in one entry of the simulator's schedule, for any number of messages.
type moments struct {
	s     *sim.Sim
	mu    sync.Mutex
	slots map[int64][]func() // by microsecond
}

// later runs do after d has passed.
func (m *moments) later(d time.Duration, do func()) {
	step := time.Millisecond
	if d > 10*sim.Grid {
		step = sim.Grid
	}
	due := m.s.Clock().Now().Add(d).Truncate(step)
	moment := due.UnixMicro()
	m.mu.Lock()
	list, known := m.slots[moment]
	m.slots[moment] = append(list, do)
	m.mu.Unlock()
	if known {
		return
	}
	m.s.At(due, func() {
		m.mu.Lock()
		list := m.slots[moment]
		delete(m.slots, moment)
		m.mu.Unlock()
		for _, do := range list {
			do()
		}
	})
}
