package scheduler

// fifo is a queue in a slice.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(item T) {
	if f.head > 32 && f.head*2 > len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, item)
}

func (f *fifo[T]) pop() (item T, ok bool) {
	if f.len() == 0 {
		return item, false
	}
	var none T
	item, f.items[f.head] = f.items[f.head], none
	f.head++
	return item, true
}

// fifoKept is the maximum capacity of an empty queue's slice that is used again.
const fifoKept = 64

// emptied returns an empty queue that uses the same slice, unless the slice is too large.
func (f *fifo[T]) emptied() fifo[T] {
	if cap(f.items) > fifoKept {
		return fifo[T]{}
	}
	clear(f.items)
	return fifo[T]{items: f.items[:0]}
}
