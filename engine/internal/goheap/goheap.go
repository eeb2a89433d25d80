package goheap

import (
	"os"
	"runtime/debug"
	"sync"

	"github.com/tributary-io/tributary/engine/internal/glibc"
)

// percent is how far the heap may grow over what is live where there is a limit: the limit says when to collect then, as in a JVM. With Go's own
// 100 the collector would run at twice what is live, however far below the limit that is.
const percent = 400

// process adds up what the instances of this process leave to the Go runtime.
var process limits

type limits struct {
	mu         sync.Mutex
	instances  int
	total      int64
	before     int64 // the limit that was there without them
	percentage int   // and the percentage; 0: it is left alone
}

// begin notes what there is without instances. mu must be held.
func (l *limits) begin() {
	glibc.OneArena()
	l.before, l.percentage = debug.SetMemoryLimit(-1), 0
	if os.Getenv("GOGC") != "" {
		return
	}
	if before := debug.SetGCPercent(percent); before == 100 {
		l.percentage = before
	} else {
		debug.SetGCPercent(before)
	}
}

// limit sets the runtime's limit. mu must be held.
func (l *limits) limit(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// Share is an instance's part of the runtime's limit. The zero Share has none. It is used by one goroutine at a time.
type Share struct{ bytes int64 }

// Bytes is how large the share is.
func (s *Share) Bytes() int64 { return s.bytes }

// Claim makes the share so large; the first share of a process sets the percentage, too. GOMEMLIMIT and GOGC go before both, and so does a percentage
// that the program has set.
func (s *Share) Claim(bytes int64) {
	l := &process
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.bytes == 0 {
		if l.instances++; l.instances == 1 {
			l.begin()
		}
	}
	l.total += bytes - s.bytes
	s.bytes = bytes
	l.limit(min(l.total, l.before))
}

// Release gives the share up; the last one leaves the runtime as it was.
func (s *Share) Release() {
	l := &process
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.bytes == 0 {
		return
	}
	l.total -= s.bytes
	s.bytes = 0
	if l.instances--; l.instances > 0 {
		l.limit(min(l.total, l.before))
		return
	}
	l.limit(l.before)
	if l.percentage != 0 {
		debug.SetGCPercent(l.percentage)
	}
}
