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
	diskPollInterval = 2 * time.Second // how often the free space is asked for
	fullFor          = time.Minute     // how long a disk counts as full after an error of the database
)

// disk reports whether the disk has room for rows that no payment needs. On SQLite it measures the free space. On
// PostgreSQL only errors of the server reveal a full disk.
type disk struct {
	folder  string // of the SQLite file; empty: another machine's disk
	reserve uint64 // bytes that are kept for money; 0: none
	fullAt  atomic.Int64

	mu     sync.Mutex
	looked time.Time
	low    bool
}

// note records the error of a transaction if it means a full disk.
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

// newDisk watches the disk of a SQLite file. An empty path is PostgreSQL, where only errors count.
func newDisk(path string, reserve int64) *disk {
	k := &disk{reserve: uint64(max(reserve, 0))}
	if path != "" {
		k.folder = filepath.Dir(path)
	}
	return k
}

// unlimited is the space of a disk that cannot be asked.
const unlimited = math.MaxUint64

// Free returns the free bytes on the disk of a folder. known is false where the system has no such call or the folder
// does not exist.
func Free(folder string) (bytes uint64, known bool) {
	bytes = free(folder)
	return bytes, bytes != unlimited
}
