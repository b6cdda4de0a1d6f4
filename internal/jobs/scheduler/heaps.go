package scheduler

// waitingHeap is a heap of entries by due time. It stores each entry's index in the entry.
type waitingHeap[J any] []*Entry[J]

func (h waitingHeap[J]) Len() int           { return len(h) }
func (h waitingHeap[J]) Less(i, j int) bool { return h[i].Due < h[j].Due }
func (h waitingHeap[J]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *waitingHeap[J]) Push(x any) {
	e := x.(*Entry[J])
	e.index = len(*h)
	*h = append(*h, e)
}

func (h *waitingHeap[J]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

// nearestHeap is a heap of entries by due time that leaves the indexes in the entries unchanged.
type nearestHeap[J any] []*Entry[J]

func (h nearestHeap[J]) Len() int           { return len(h) }
func (h nearestHeap[J]) Less(i, j int) bool { return h[i].Due < h[j].Due }
func (h nearestHeap[J]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nearestHeap[J]) Push(x any)        { *h = append(*h, x.(*Entry[J])) }
func (h *nearestHeap[J]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}
