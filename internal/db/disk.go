package db

import (
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/makola/makola/internal/db/postgres"
	"github.com/makola/makola/internal/db/sqlite"
)

const (
	diskPollInterval = 2 * time.Second // interval at which the free space is read
	fullFor          = time.Minute     // time for which a disk counts as full after an error of the database
)

// disk reports whether the disk has room for rows that no payment needs. On SQLite it measures the free space. On
// PostgreSQL it relies on errors of the server.
type disk struct {
	folder  string // folder of the SQLite file; empty for PostgreSQL, whose disk is on another machine
	reserve uint64 // bytes that are reserved for payments; 0: none
	fullAt  atomic.Int64

	mu     sync.Mutex
	looked time.Time
	low    bool
}

// note stores the time of a transaction's error if the error means that the disk is full.
func (k *disk) note(err error) {
	if postgres.Full(err) || sqlite.Full(err) {
		k.fullAt.Store(time.Now().UnixNano())
	}
}

// full reports whether the database found its disk full within the last minute.
func (k *disk) full() bool {
	at := k.fullAt.Load()
	return at != 0 && time.Since(time.Unix(0, at)).Abs() < fullFor
}

func (k *disk) short() bool {
	if k.full() {
		return true
	}
	now := time.Now()
	if k.folder == "" || k.reserve == 0 {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.looked) >= diskPollInterval {
		k.looked, k.low = now, free(k.folder) < k.reserve
	}
	return k.low
}

// newDisk returns the disk of a SQLite file. An empty path means PostgreSQL, where only errors count.
func newDisk(path string, reserve int64) *disk {
	k := &disk{reserve: uint64(max(reserve, 0))}
	if path != "" {
		k.folder = filepath.Dir(path)
	}
	return k
}

// unlimited is the free space of a disk that cannot be measured.
const unlimited = math.MaxUint64

// Free returns the free bytes on the disk of a folder. known is false if the system has no such call or the folder
// does not exist.
func Free(folder string) (bytes uint64, known bool) {
	bytes = free(folder)
	return bytes, bytes != unlimited
}
