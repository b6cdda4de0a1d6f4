package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// journal is the file of the book: lines of JSON, appended and synced in groups. Records written during a sync share
// the next one. A nil journal keeps nothing.
type journal struct {
	file   *os.File
	mu     sync.Mutex
	work   *sync.Cond
	buf    []byte
	group  *group // the group of the records in buf
	urgent bool   // a call waits for buf
	err    error
	closed bool
	done   chan struct{}
}

// group is what one sync makes durable.
type group struct {
	done chan struct{}
	err  error
}

var errBookClosed = errors.New("the simulator's book is closed")

// openJournal passes each line of the file to each, which reports whether it is a
// record. It cuts a torn last line off and goes on behind it.
func openJournal(dir string, each func(line []byte) bool) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("simulator's book: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "simulator.book"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("simulator's book: %w", err)
	}
	good, err := readJournal(f, each)
	if err == nil {
		err = f.Truncate(good)
	}
	if err == nil {
		_, err = f.Seek(good, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("simulator's book: %w", err)
	}
	j := &journal{file: f, group: &group{done: make(chan struct{})}, done: make(chan struct{})}
	j.work = sync.NewCond(&j.mu)
	go j.run()
	return j, nil
}

// readJournal returns how many bytes of the file are whole records. A bad line
// with whole ones behind it is damage, not a torn end, and is refused.
func readJournal(f *os.File, each func(line []byte) bool) (good int64, err error) {
	r := bufio.NewReaderSize(f, 1<<20)
	for torn := false; ; {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return good, nil
		}
		if err != nil {
			return 0, err
		}
		switch whole := each(bytes.TrimSpace(line)); {
		case !whole:
			torn = true
		case torn:
			return 0, fmt.Errorf("a line before byte %d is damaged", good+int64(len(line)))
		default:
			good += int64(len(line))
		}
	}
}

// add appends a record and returns the group to wait for. A lazy record, which may be lost, waits for the next sync
// instead of causing one.
func (j *journal) add(record any, lazily bool) *group {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(record)
	if err != nil {
		panic(err) // plain values only
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return closedGroup()
	}
	j.buf = append(append(j.buf, line...), '\n')
	if !lazily || len(j.buf) > 1<<20 {
		j.urgent = true
		j.work.Signal()
	}
	return j.group
}

// closedGroup is returned to writers after close.
func closedGroup() *group {
	g := &group{done: make(chan struct{}), err: errBookClosed}
	close(g.done)
	return g
}

// wait returns once the group is durable.
func (g *group) wait() error {
	if g == nil {
		return nil
	}
	<-g.done
	return g.err
}

func (j *journal) run() {
	defer close(j.done)
	j.mu.Lock()
	defer j.mu.Unlock()
	var spare []byte
	for {
		for !j.urgent && !j.closed {
			j.work.Wait()
		}
		if len(j.buf) == 0 && j.closed {
			close(j.group.done)
			return
		}
		buf, g := j.buf, j.group
		j.buf, j.group, j.urgent = spare[:0], &group{done: make(chan struct{})}, false
		err := j.err
		j.mu.Unlock()
		if err == nil {
			if _, err = j.file.Write(buf); err == nil {
				err = j.file.Sync()
			}
			if err != nil { // a part of a line may be there, behind which nothing may be written
				err = fmt.Errorf("the book takes no more until the simulator is started again: %w", err)
			}
		}
		j.mu.Lock()
		j.err, g.err = err, err
		close(g.done)
		spare = buf
	}
}

// close writes the remaining records and closes the file.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	j.closed = true
	j.work.Signal()
	j.mu.Unlock()
	<-j.done
	return errors.Join(j.err, j.file.Close())
}
