package smsc

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"unique"
)

// SegmentCount is the number of times that one segment was accepted. A segment is identified by its sender, its
// recipient, its place in the message and its text. Two messages with the same text to one recipient are counted
// together.
type SegmentCount struct {
	From, To    string
	Part, Parts int
	Text        string
	Accepted    int
}

// maxCounted is the maximum number of different segments that are counted.
const maxCounted = 4_000_000

// segmentBook counts accepted segments.
type segmentBook struct {
	mu     sync.Mutex
	counts map[segmentKey]int32
	lost   int // acceptances that were not counted because the book was full
}

type segmentKey struct {
	from, text  unique.Handle[string]
	to          string
	part, parts byte
}

func newSegmentBook() *segmentBook { return &segmentBook{counts: map[segmentKey]int32{}} }

// list returns the segments for which want returns true, ordered by recipient, sender, text and part.
func (b *segmentBook) list(want func(segmentKey, int32) bool) []SegmentCount {
	list := []SegmentCount{}
	if b == nil {
		return list
	}
	b.mu.Lock()
	for k, n := range b.counts {
		if want(k, n) {
			list = append(list, SegmentCount{k.from.Value(), k.to, int(k.part), int(k.parts), k.text.Value(), int(n)})
		}
	}
	b.mu.Unlock()
	slices.SortFunc(list, func(a, b SegmentCount) int {
		return cmp.Or(strings.Compare(a.To, b.To), strings.Compare(a.From, b.From), cmp.Compare(a.Parts, b.Parts),
			cmp.Compare(a.Part, b.Part), strings.Compare(a.Text, b.Text))
	})
	return list
}

// add counts an accepted segment.
func (b *segmentBook) add(from, to string, j joint, text string) {
	if b == nil {
		return
	}
	k := segmentKey{from: unique.Make(from), text: unique.Make(text), to: to, part: j.part, parts: j.parts}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.counts[k]; !known && len(b.counts) >= maxCounted {
		b.lost++
		return
	}
	b.counts[k]++
}

// totals returns the number of different accepted segments, of repeated acceptances, and of acceptances that were not
// counted.
func (b *segmentBook) totals() (segments, again, lost int) {
	if b == nil {
		return 0, 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.counts {
		again += int(n) - 1
	}
	return len(b.counts), again, b.lost
}
