package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkScheduler measures the cost of the queue between two calls of Later by a polling job, without a database.
func BenchmarkScheduler(b *testing.B) {
	for _, held := range []int{100, 100_000} {
		b.Run(fmt.Sprint(held, " held"), func(b *testing.B) {
			s := New[int]()
			k := s.Kind(Rules{})
			now := time.Duration(0)
			for i := range held {
				id := fmt.Sprint(i)
				s.Put(k, &Entry[int]{ID: id, Subject: id, Due: now + time.Duration(i)*time.Millisecond}, now)
			}
			for b.Loop() {
				now += time.Millisecond
				s.Advance(now)
				for e := s.Take(k); e != nil; e = s.Take(k) {
					s.Ended(e, now)
					s.Again(e, now+time.Duration(held)*time.Millisecond, now)
				}
			}
		})
	}
}
