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
	diskLook = 2 * time.Second // how often the free space is asked for
	fullFor  = time.Minute     // how long a disk counts as full after the database said so
)

// disk knows whether there is room for more than money. On SQLite it looks; how much room PostgreSQL has is told by its
// errors alone.
type disk struct {
	folder  string // of the SQLite file; empty: another machine's disk
	reserve uint64 // bytes that are kept for money; 0: none
	fullAt  atomic.Int64

	mu     sync.Mutex
	looked time.Time
	low    bool
}

// note hears what became of a transaction.
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
	if now.Sub(k.looked) >= diskLook {
		k.looked, k.low = now, free(k.folder) < k.reserve
	}
	return k.low
}

// newDisk watches the disk of a SQLite file, or hears of PostgreSQL's.
func newDisk(path string, reserve int64) *disk {
	k := &disk{reserve: uint64(max(reserve, 0))}
	if path != "" {
		k.folder = filepath.Dir(path)
	}
	return k
}

// unlimited is the space of a disk that cannot be asked.
const unlimited = math.MaxUint64

// Free is how many bytes the disk of a folder has left for us; known is false where the system cannot be asked, or the
// folder is not there.
func Free(folder string) (bytes uint64, known bool) {
	bytes = free(folder)
	return bytes, bytes != unlimited
}
