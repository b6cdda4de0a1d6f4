package smstest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/msisdn"
	"github.com/makola/makola/internal/provider"
	"github.com/makola/makola/internal/smstext"
)

// Operator is an SMS rail whose responses a test decides. It records the segments that it was offered.
type Operator struct {
	mu     sync.Mutex
	answer func(n int, s provider.Segment) provider.Outcome
	taken  map[string]int // offers by recipient, text and part
	texts  []Text
	keep   func(s provider.Segment) bool // reports whether the response waits for Let; nil: none waits
	kept   []func()
	whole  atomic.Bool
	ready  atomic.Pointer[error] // the queue reads it under its own lock, which must not wait for mu

	// Last is the number of the last accepted segment. It is for scripts.
	Last int
}

// Text is a segment that was offered.
type Text struct {
	From, To, Text string
	Part, Parts    int
	Group          uint16
	Validity       time.Duration
	Outcome        provider.Outcome
}

// NewOperator returns an operator that accepts every segment.
func NewOperator() *Operator {
	o := &Operator{taken: map[string]int{}}
	o.answer = func(int, provider.Segment) provider.Outcome { return o.Accept() }
	return o
}

// Accept returns an accepted outcome with a new id. It is for scripts, which run one at a time.
func (o *Operator) Accept() provider.Outcome {
	o.Last++
	return provider.Outcome{Class: provider.Accepted, UpstreamID: fmt.Sprintf("id-%06d", o.Last)}
}

// Script sets the function that decides the outcome of a segment. n counts the offers of the same segment from 1.
func (o *Operator) Script(answer func(n int, s provider.Segment) provider.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
}

// At calls do with the nth segment that is offered, before its response.
func (o *Operator) At(nth int, do func()) {
	n := 0
	o.Script(func(int, provider.Segment) provider.Outcome {
		if n++; n == nth {
			do()
		}
		return o.Accept()
	})
}

// SetReady sets the result of Ready.
func (o *Operator) SetReady(err error) { o.ready.Store(&err) }

// TakeWhole sets whether the operator takes whole messages, as a provider over HTTP does.
func (o *Operator) TakeWhole(whole bool) { o.whole.Store(whole) }

// Whole returns the value that TakeWhole set.
func (o *Operator) Whole(string, msisdn.MSISDN) bool { return o.whole.Load() }

// Ready returns the error that SetReady set.
func (o *Operator) Ready(msisdn.Network) error {
	if err := o.ready.Load(); err != nil {
		return *err
	}
	return nil
}

// Submit records a segment and calls done with the outcome of the script, at once or in Let.
func (o *Operator) Submit(_ context.Context, s provider.Segment, done func(provider.Outcome)) {
	if outcome, kept := o.take(s, done); !kept {
		done(outcome)
	}
}

func (o *Operator) take(s provider.Segment, done func(provider.Outcome)) (outcome provider.Outcome, kept bool) {
	o.mu.Lock()
	defer o.mu.Unlock() // also when the script panics
	key := fmt.Sprintf("%s %d %s%s", s.To, s.Part, s.Octets, s.Text)
	o.taken[key]++
	outcome = o.answer(o.taken[key], s)
	text := s.Text
	if text == "" {
		text = smstext.Decode(s.Octets, s.Encoding)
	}
	o.texts = append(o.texts, Text{s.From, string(s.To), text, s.Part, s.Parts, s.Group, s.Validity, outcome})
	if kept = o.keep != nil && o.keep(s); kept {
		o.kept = append(o.kept, func() { done(outcome) })
	}
	return outcome, kept
}

// Keeps delays the responses to some numbers until Let.
func (o *Operator) Keeps(numbers ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep = func(s provider.Segment) bool { return slices.Contains(numbers, string(s.To)) }
}

// Let gives the delayed responses.
func (o *Operator) Let() {
	o.mu.Lock()
	kept := o.kept
	o.kept, o.keep = nil, nil
	o.mu.Unlock()
	for _, answer := range kept {
		answer()
	}
}

// All returns the segments that were offered, in order.
func (o *Operator) All() []Text {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.texts)
}

// The outcomes that scripts return besides Accept.
var (
	Refused   = provider.Outcome{Class: provider.Rejected, Code: "0x0000000b"}
	Throttled = provider.Outcome{Class: provider.NotSent, Code: "0x00000058", RetryAfter: time.Second}
	Silence   = provider.Outcome{Class: provider.Unknown, Message: "no answer to the submit"}
)
