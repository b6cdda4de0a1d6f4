package cli

import (
	"runtime"
	"testing"
)

// The limit of the garbage collector depends on the live heap, which the runtime's metrics report.
func TestLiveMemory_reportsTheHeap(t *testing.T) {
	held := make([]byte, 64<<20)
	runtime.GC()
	with := liveMemory()
	runtime.KeepAlive(held)
	held = nil
	runtime.GC()
	if without := liveMemory(); with < 64<<20 || with-without < 32<<20 {
		t.Errorf("with 64 MB that live it is %d bytes, without them %d", with, without)
	}
}
