package route

import (
	"sync"
	"time"

	"github.com/makola/makola/internal/provider"
)

const (
	queuedExchanges = 4096 // maximum number of waiting exchanges; further ones are dropped and counted
	batchExchanges  = 256  // rows in one transaction
	gatherFor       = 250 * time.Millisecond
	writeWithin     = 10 * time.Second
)

// writer is the state of the background work.
type writer struct {
	exchanges chan provider.Exchange
	flush     chan chan struct{}
	publish   chan struct{} // capacity 1: a breaker has changed
	stop      chan struct{}
	end       sync.Once
	done      sync.WaitGroup
}

func (w *writer) init() {
	w.exchanges = make(chan provider.Exchange, queuedExchanges)
	w.flush = make(chan chan struct{})
	w.publish = make(chan struct{}, 1)
	w.stop = make(chan struct{})
}
