package storetest

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// DropReply is the fault of a server that stores an object and then breaks the connection.
const DropReply = -1

// pageSize is how many objects a Fake lists at once: few, so that tests need several pages.
const pageSize = 3

// Fake is the memory of a server for tests: objects by bucket/key, and faults. It is safe for concurrent use.
type Fake struct {
	// Fault is asked before each object is stored, under a lock: 0 for none, an HTTP status to answer without storing, or DropReply. Nil means no
	// faults. Set it while no request is under way.
	Fault func(key string) int
	// Ignore makes the server one that ignores the condition of put-if-absent.
	Ignore bool

	mu      sync.Mutex
	objects map[string][]byte
}

// Store stores an object, and returns the HTTP status to answer: 200, 412 if the condition doesn't hold, or the fault. For DropReply call Drop.
func (f *Fake) Store(key string, data []byte, ifAbsent bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := 0
	if f.Fault != nil {
		fault = f.Fault(key)
	}
	if fault > 0 {
		return fault
	}
	if _, ok := f.objects[key]; ok && ifAbsent && !f.Ignore {
		return http.StatusPreconditionFailed
	}
	if f.objects == nil {
		f.objects = map[string][]byte{}
	}
	f.objects[key] = data
	if fault == DropReply {
		return DropReply
	}
	return http.StatusOK
}

// Drop ends a handler and breaks its connection without an answer.
func Drop() { panic(http.ErrAbortHandler) }

// Load returns an object's bytes, which are not to be changed.
func (f *Fake) Load(key string) (data []byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, ok = f.objects[key]
	return data, ok
}

// Remove deletes an object, and tells whether there was one.
func (f *Fake) Remove(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.objects[key]
	delete(f.objects, key)
	return ok
}

// Page lists a few keys of a bucket, without its name, which start with prefix and are greater than after, in their order; more says that there
// are others behind them.
func (f *Fake) Page(bucket, prefix, after string) (keys []string, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		key, ok := strings.CutPrefix(name, bucket+"/")
		if !ok || key <= after || !strings.HasPrefix(key, prefix) {
			continue
		}
		if len(keys) == pageSize {
			return keys, true
		}
		keys = append(keys, key)
	}
	return keys, false
}
