package route

import "testing"

// A read of the breakers may begin before a breaker is opened and end after a later read that has seen it. The
// earlier read then does not close the breaker again.
func TestBreaker_lateReadKeepsItOpen(t *testing.T) {
	k := breakerKey{"test", "hubtel", Collect}
	var b breakers
	b.init()
	before, after := b.reading(), b.reading()
	b.seen(after, map[breakerKey]breaker{k: {}})
	b.seen(before, map[breakerKey]breaker{})
	if _, open, _ := b.state(k, b.read); !open {
		t.Error("the breaker is closed")
	}
	b.seen(b.reading(), map[breakerKey]breaker{})
	if _, open, _ := b.state(k, b.read); open {
		t.Error("a later reading is not believed")
	}
}
