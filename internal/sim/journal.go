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

// journal is the file of the book: lines of JSON that are appended and synced in groups. Records that are written
// during a sync share the next sync. A nil journal stores nothing.
type journal struct {
	file   *os.File
	mu     sync.Mutex
	work   *sync.Cond
	buf    []byte
	group  *group // group of the records in buf
	urgent bool   // a caller waits for buf
	err    error
	closed bool
	done   chan struct{}
}

// group is the set of records that one sync makes durable.
type group struct {
	done chan struct{}
	err  error
}

var errBookClosed = errors.New("the simulator's book is closed")

// openJournal calls each for every line of the file. each reports whether the line is a record. openJournal removes
// an incomplete last line; new records follow the last complete one.
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

// readJournal returns the number of bytes of complete records. An invalid line that complete lines follow is damage,
// for which it returns an error.
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

// add appends a record and returns its group, for which the caller may wait. A lazy record causes no sync of its own,
// so a crash may lose it.
func (j *journal) add(record any, lazily bool) *group {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(record)
	if err != nil {
		panic(err) // cannot happen: plain values only
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

// closedGroup returns the group for writers after close. Its error is errBookClosed.
func closedGroup() *group {
	g := &group{done: make(chan struct{}), err: errBookClosed}
	close(g.done)
	return g
}

// wait waits until the group is durable.
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
			if err != nil { // the file may end with a part of a line, so nothing may be appended
				err = fmt.Errorf("the book cannot be written until the simulator is restarted: %w", err)
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
