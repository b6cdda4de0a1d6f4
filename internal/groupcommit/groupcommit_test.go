package groupcommit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/makola/makola/internal/groupcommit"
	"github.com/makola/makola/internal/test/clocktest"
)

// gate is a run function that shows each batch to the test and blocks it until the test lets it continue.
type gate struct {
	batches chan []int
	open    chan struct{}
	fail    func([]int) error
}

func newGate() *gate { return &gate{batches: make(chan []int), open: make(chan struct{})} }

func (g *gate) run(_ context.Context, batch []int) ([]groupcommit.Verdict[int], error) {
	g.batches <- slices.Clone(batch)
	<-g.open
	if g.fail != nil {
		if err := g.fail(batch); err != nil {
			return nil, err
		}
	}
	return doubled(batch), nil
}

func doubled(batch []int) []groupcommit.Verdict[int] {
	verdicts := make([]groupcommit.Verdict[int], len(batch))
	for i, n := range batch {
		verdicts[i].Value = 2 * n
	}
	return verdicts
}

func until(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}

// queue starts the requests one after another and returns when all of them wait.
func queue(l *groupcommit.Committer[int, int], wg *sync.WaitGroup, check func(n, v int, err error), numbers ...int) {
	for _, n := range numbers {
		before := l.Waiting()
		wg.Go(func() {
			v, err := l.Do(context.Background(), fmt.Sprint("key", n), 1, n)
			check(n, v, err)
		})
		until(func() bool { return l.Waiting() > before })
	}
}

func TestGroup_gathersDuringABatch(t *testing.T) {
	g := newGate()
	l := groupcommit.New(groupcommit.Options{MaxRequests: 3}, g.run)
	var wg sync.WaitGroup
	check := func(n, v int, err error) {
		if err != nil || v != 2*n {
			t.Errorf("request %d: %d, %v", n, v, err)
		}
	}
	wg.Go(func() {
		v, err := l.Do(context.Background(), "a", 1, 1)
		check(1, v, err)
	})
	if got := <-g.batches; !slices.Equal(got, []int{1}) {
		t.Fatalf("the lone request went with others: %v", got)
	}
	queue(l, &wg, check, 2, 3, 4, 5)
	g.open <- struct{}{}
	if got := <-g.batches; !slices.Equal(got, []int{2, 3, 4}) {
		t.Fatalf("the second batch: %v", got)
	}
	g.open <- struct{}{}
	if got := <-g.batches; !slices.Equal(got, []int{5}) {
		t.Fatalf("the third batch: %v", got)
	}
	g.open <- struct{}{}
	wg.Wait()
	l.Close()
	if _, err := l.Do(context.Background(), "a", 1, 1); !errors.Is(err, groupcommit.ErrClosed) {
		t.Fatalf("after Close: %v", err)
	}
}

// Requests run in the order of Queue, in whatever order their results are awaited.
func TestQueue_keepsTheOrder(t *testing.T) {
	g := newGate()
	l := groupcommit.New(groupcommit.Options{MaxRequests: 3}, g.run)
	defer l.Close()
	var waits []func() (int, error)
	for n := range 7 {
		waits = append(waits, l.Queue(context.Background(), "key", 1, n))
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n, wait := range slices.Backward(waits) {
			if v, err := wait(); err != nil || v != 2*n {
				t.Errorf("request %d: %d, %v", n, v, err)
			}
		}
	}()
	var got []int
	for len(got) < len(waits) {
		got = append(got, <-g.batches...)
		g.open <- struct{}{}
	}
	<-ended
	if !slices.IsSorted(got) {
		t.Errorf("run in the order %v", got)
	}
}

func TestGroup_boundedByRows(t *testing.T) {
	g := newGate()
	l := groupcommit.New(groupcommit.Options{MaxRows: 10}, g.run)
	var wg sync.WaitGroup
	do := func(n, rows int) {
		before := l.Waiting()
		wg.Go(func() { _, _ = l.Do(context.Background(), "a", rows, n) })
		if n > 0 {
			until(func() bool { return l.Waiting() > before })
		}
	}
	do(0, 1)
	<-g.batches
	do(1, 6)
	do(2, 5)
	do(3, 100)
	for _, want := range [][]int{{1}, {2}, {3}} {
		g.open <- struct{}{}
		if got := <-g.batches; !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	g.open <- struct{}{}
	wg.Wait()
}

func TestGroup_failingRequestFailsAlone(t *testing.T) {
	poison := errors.New("poison")
	var mu sync.Mutex
	var sizes []int
	bad := 3
	first := make(chan struct{})
	started := make(chan struct{})
	l := groupcommit.New(groupcommit.Options{}, func(_ context.Context, batch []int) ([]groupcommit.Verdict[int], error) {
		if batch[0] == 0 {
			close(started)
			<-first
		}
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(batch))
		if slices.Contains(batch, bad) {
			panic(poison)
		}
		return doubled(batch), nil
	})
	var wg sync.WaitGroup
	check := func(n, v int, err error) {
		if (n == bad) != (err != nil) {
			t.Errorf("request %d: %v", n, err)
		}
	}
	wg.Go(func() { _, _ = l.Do(context.Background(), "key0", 1, 0) })
	<-started
	queue(l, &wg, check, 1, 2, 3, 4, 5, 6, 7, 8)
	close(first)
	wg.Wait()
	// The batch of 8 fails twice, then a batch of 4 fails twice. [1 2] passes, [3 4] fails twice, [3] fails twice,
	// [4] passes, [5 6 7 8] passes.
	want := []int{1, 8, 8, 4, 4, 2, 2, 2, 1, 1, 1, 4}
	if !slices.Equal(sizes, want) {
		t.Fatalf("batches %v, want %v", sizes, want)
	}
	bad = -1
	// The key of the failed request now runs alone, although others wait with it.
	first, started = make(chan struct{}), make(chan struct{})
	wg.Go(func() { _, _ = l.Do(context.Background(), "key0", 1, 0) })
	<-started
	sizes = nil
	queue(l, &wg, check, 1, 3, 2)
	close(first)
	wg.Wait()
	if want := []int{1, 2, 1}; !slices.Equal(sizes, want) {
		t.Fatalf("batches %v, want %v", sizes, want)
	}
	// After enough successes alone, the key joins the others again.
	for range 7 {
		if _, err := l.Do(context.Background(), "key3", 1, 3); err != nil {
			t.Fatal(err)
		}
	}
	first, started = make(chan struct{}), make(chan struct{})
	wg.Go(func() { _, _ = l.Do(context.Background(), "key0", 1, 0) })
	<-started
	sizes = nil
	queue(l, &wg, check, 1, 3, 2)
	close(first)
	wg.Wait()
	if want := []int{1, 3}; !slices.Equal(sizes, want) {
		t.Fatalf("batches %v, want %v", sizes, want)
	}
}

func TestGroup_systemicErrorsAreNotSplit(t *testing.T) {
	away := errors.New("away")
	calls := 0
	started, first := make(chan struct{}), make(chan struct{})
	l := groupcommit.New(groupcommit.Options{Systemic: func(err error) bool { return errors.Is(err, away) }},
		func(_ context.Context, batch []int) ([]groupcommit.Verdict[int], error) {
			if batch[0] == 0 {
				close(started)
				<-first
				return doubled(batch), nil
			}
			calls++
			return nil, away
		})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = l.Do(context.Background(), "key0", 1, 0) })
	<-started
	queue(l, &wg, func(n, _ int, err error) {
		if !errors.Is(err, away) {
			t.Errorf("request %d: %v", n, err)
		}
	}, 1, 2, 3, 4)
	close(first)
	wg.Wait()
	if calls != 1 {
		t.Fatalf("ran %d times", calls)
	}
}

func TestGroup_withdrawnDoesNotRun(t *testing.T) {
	g := newGate()
	l := groupcommit.New(groupcommit.Options{}, g.run)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = l.Do(context.Background(), "a", 1, 1) })
	<-g.batches
	ctx, cancel := context.WithCancel(context.Background())
	answered := make(chan error)
	go func() {
		_, err := l.Do(ctx, "b", 1, 2)
		answered <- err
	}()
	until(func() bool { return l.Waiting() == 1 })
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// A request whose batch runs gets its true result although its ctx has ended.
	ctx, cancel = context.WithCancel(context.Background())
	go func() {
		v, err := l.Do(ctx, "b", 1, 3)
		if v != 6 {
			err = fmt.Errorf("%d, %w", v, err)
		}
		answered <- err
	}()
	until(func() bool { return l.Waiting() == 1 })
	g.open <- struct{}{}
	if got := <-g.batches; !slices.Equal(got, []int{3}) {
		t.Fatalf("got %v", got)
	}
	cancel()
	g.open <- struct{}{}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

func TestGroup_wrongVerdictCountFailsAll(t *testing.T) {
	l := groupcommit.New(groupcommit.Options{}, func(context.Context, []int) ([]groupcommit.Verdict[int], error) { return nil, nil })
	if _, err := l.Do(context.Background(), "a", 1, 1); err == nil {
		t.Fatal("a request without a verdict succeeded")
	}
}

func BenchmarkDo(b *testing.B) {
	l := groupcommit.New(groupcommit.Options{}, func(_ context.Context, batch []int) ([]groupcommit.Verdict[int], error) { return doubled(batch), nil })
	b.SetParallelism(64)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := l.Do(context.Background(), "a", 1, 1); err != nil {
				b.Error(err)
			}
		}
	})
}

// If the time of a request ends while its batch runs, the request returns an unknown outcome. Its batch continues.
func TestGroup_expiredCallerIsUnsure(t *testing.T) {
	unsure := errors.New("unsure")
	g := newGate()
	l := groupcommit.New(groupcommit.Options{Unsure: unsure}, g.run)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := l.Do(ctx, "a", 1, 1)
		gone <- err
	}()
	<-g.batches
	waits := make(chan error)
	go func() {
		_, err := l.Do(ctx, "a", 1, 2)
		waits <- err
	}()
	until(func() bool { return l.Waiting() == 1 })
	cancel()
	if err := <-gone; !errors.Is(err, unsure) {
		t.Errorf("while its batch runs: %v", err)
	}
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("before its batch: %v", err)
	}
	g.open <- struct{}{}
	l.Close()
}

// Bulk work runs in separate small batches. Other requests come first, but one of eight batches is bulk work.
func TestDoBulk_comesAfterOthers(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	var ran [][]int
	l := groupcommit.New(groupcommit.Options{MaxRequests: 1, MaxRows: 100, MaxBulkRows: 4}, func(_ context.Context, batch []int) ([]groupcommit.Verdict[int], error) {
		if len(ran) == 0 {
			close(began)
			<-goOn
		}
		ran = append(ran, batch)
		return doubled(batch), nil
	})
	var group sync.WaitGroup
	add := func(do func(context.Context, string, int, int) (int, error), n int) {
		group.Go(func() {
			if got, err := do(t.Context(), "a", 2, n); err != nil || got != 2*n {
				t.Errorf("%d: %d, %v", n, got, err)
			}
		})
	}
	add(l.Do, 0)
	<-began
	for i := range 3 {
		add(l.DoBulk, 100+i)
		clocktest.Await(t, "the request", func() bool { return l.Waiting() == i+1 })
	}
	for i := range 10 {
		add(l.Do, 1+i)
		clocktest.Await(t, "the request", func() bool { return l.Waiting() == i+4 })
	}
	close(goOn)
	group.Wait()
	l.Close()
	want := [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {100}, {8}, {9}, {10}, {101}, {102}}
	if fmt.Sprint(ran) != fmt.Sprint(want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
}
