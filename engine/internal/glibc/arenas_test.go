package glibc

import (
	"runtime"
	"sync"
	"testing"
)

// Threads that take memory at the same time share the arenas that were there before.
func TestThreadsShareTheArenas(t *testing.T) {
	t.Setenv("MALLOC_ARENA_MAX", "")
	OneArena()
	before := arenas()
	if before < 0 {
		t.Skip("SKIPPED: there is no glibc")
	}
	const threads = 16
	var ready, done sync.WaitGroup
	ready.Add(threads)
	for range threads {
		done.Go(func() {
			runtime.LockOSThread()
			give := take(1 << 16)
			ready.Done()
			ready.Wait() // all threads have memory at a time
			give()
		})
	}
	done.Wait()
	const underWay = 2 // threads of the runtime may have been about to make one, when it was forbidden
	if after := arenas(); after > before+underWay {
		t.Errorf("%d arenas, it were %d before the threads", after, before)
	}
}
