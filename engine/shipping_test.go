package engine

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/checkpoint"
	"github.com/tributary-io/tributary/engine/internal/fetch"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/state"
)

// adoption is what the second instance of an application did to get its state.
type adoption struct {
	adopted, records int64
	stats            Stats
	coming           int64 // bytes of a checkpoint when it was last said how far it is
	directory        string
}

// moveWithCheckpoints lets an application with some state run on one instance, starts a second one, and tells how that got its state. between is
// the way to the first instance's server.
func moveWithCheckpoints(t *testing.T, c *brokertest.Cluster, name string, between func(http.Handler) http.Handler, opts ...Option) adoption {
	t.Helper()
	a := newApp(t, c, name)
	a.create("in", 2)
	a.create("out", 1)
	out := a.read("out")
	a.produce("in", 2, numbered(8000, 3000)...)
	log1, log2 := &events{}, &events{}
	common := append([]Option{AcceptableLag(100), ShipCheckpoints()}, opts...)

	// The first instance's server is reached through a proxy, which may do harm.
	var target atomic.Pointer[url.URL]
	var proxy http.Handler = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target.Load()) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	if between != nil {
		proxy = between(proxy)
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	i1 := a.start(counts(a.name), "i1", append(common, HTTP("127.0.0.1:0"), Advertise(server.URL), OnRestore(log1.add))...)
	eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 8000 })
	u, err := url.Parse("http://" + i1.HTTPAddr())
	if err != nil {
		t.Fatal(err)
	}
	target.Store(u)

	i2 := a.start(counts(a.name), "i2", append(common, HTTP("127.0.0.1:0"), OnRestore(log2.add), func(c *config) { c.reportEvery = 0 })...)
	i2.await(t, "a task of its own", func(s Stats) bool { return statefulTasks(s) == 1 })
	a.produce("in", 2, numbered(1000, 3000)...)
	eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 9000 })
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
	adopted, _ := log2.count(CheckpointAdopted, true)
	_, ofStandby := log2.count(RestoreEnded, true)
	_, ofTasks := log2.count(RestoreEnded, false)
	got := adoption{int64(adopted), ofStandby + ofTasks, i2.Stats(), log2.comes(), filepath.Join(a.dir, "i2", a.name)}
	i2.stop(t)
	if left := leftovers(got.directory); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	i1.stop(t)
	if left := leftovers(filepath.Join(a.dir, "i1", a.name)); len(left) > 0 {
		t.Errorf("left behind by the first: %v", left)
	}
	return got
}

// comes gives the largest number of bytes that were said to have come of a checkpoint.
func (l *events) comes() (most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		if e.Phase == CheckpointComes {
			most = max(most, e.Bytes)
		}
	}
	return most
}

// leftovers are what checkpoints must not leave in the state directory.
func leftovers(dir string) (found []string) {
	for _, pattern := range []string{"*" + incomingSuffix, checkpointsDir, uploadDir} {
		matches, _ := filepath.Glob(filepath.Join(dir, pattern))
		found = append(found, matches...)
	}
	return found
}

// A new instance takes the state as files, and reads only what came after.
func TestStateMovesByCheckpoint(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		got := moveWithCheckpoints(t, c, "ship", nil)
		if got.adopted != 1 || got.stats.Checkpoints.Adopted != 1 || got.stats.Checkpoints.ReceivedBytes == 0 {
			t.Errorf("%d checkpoints taken over, %+v; want one", got.adopted, got.stats.Checkpoints)
		}
		if got.coming != got.stats.Checkpoints.ReceivedBytes {
			t.Errorf("it was said that %d bytes have come, of %d", got.coming, got.stats.Checkpoints.ReceivedBytes)
		}
		if got.records > 100 {
			t.Errorf("%d records read from changelogs, though a checkpoint was taken over", got.records)
		}
	})
}

// Whatever goes wrong with a checkpoint, the changelogs have it all.
func TestCheckpointsThatFailAreDoneWithout(t *testing.T) {
	isFile := func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Count(r.URL.Path, "/") == 4
	}
	harm := map[string]func(http.Handler) http.Handler{
		"corrupt": func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if isFile(r) && strings.HasSuffix(r.URL.Path, ".log") || strings.HasSuffix(r.URL.Path, ".sst") {
					w = &flipping{ResponseWriter: w}
				}
				next.ServeHTTP(w, r)
			})
		},
		"the peer dies in the middle": func(next http.Handler) http.Handler {
			var dead atomic.Bool
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if dead.Load() {
					panic(http.ErrAbortHandler)
				}
				if isFile(r) {
					dead.Store(true)
					w.Write(make([]byte, 10))
					w.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				}
				next.ServeHTTP(w, r)
			})
		},
		"another topology": func(next http.Handler) http.Handler {
			return editing(next, func(m string) string { return strings.Replace(m, `"signature":"`, `"signature":"f`, 1) })
		},
		"a topic made anew": func(next http.Handler) http.Handler {
			return editing(next, func(m string) string { return strings.Replace(m, `-changelog":"`, `-changelog":"00`, 1) })
		},
		"before the changelog's start": func(next http.Handler) http.Handler {
			return editing(next, func(m string) string { return strings.Replace(m, `"counts":`, `"counts":-5`, 1) })
		},
		"other offsets than it says": func(next http.Handler) http.Handler {
			return editing(next, func(m string) string {
				head, tail, _ := strings.Cut(m, `"counts":`)
				return head + `"counts":` + lowered(tail)
			})
		},
		"no manifest": func(next http.Handler) http.Handler {
			return editing(next, func(string) string { return "<html>" })
		},
	}
	for what, between := range harm {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got := moveWithCheckpoints(t, brokertest.Embedded(t), "harm", between)
			if got.adopted != 0 || got.stats.Checkpoints.Failed == 0 {
				t.Errorf("%d checkpoints taken over, %+v; want none, and a failure", got.adopted, got.stats.Checkpoints)
			}
			if got.records < 1000 {
				t.Errorf("%d records read from changelogs, want those of the task", got.records)
			}
		})
	}
}

// lowered makes the number at the beginning of a text one less.
func lowered(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	digits := []byte(text[:end])
	for i := len(digits) - 1; ; i-- {
		if digits[i]--; digits[i] >= '0' {
			return string(digits) + text[end:]
		}
		digits[i] = '9'
	}
}

// A connection that breaks now and then is no failure: files are gone on with where they broke.
func TestCheckpointGoesOnAfterBreaks(t *testing.T) {
	var breaks atomic.Int64
	got := moveWithCheckpoints(t, brokertest.Embedded(t), "breaks", func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, ".log") && r.Header.Get("Range") == "" {
				w = &breaking{ResponseWriter: w, left: 3000, breaks: &breaks}
			}
			next.ServeHTTP(w, r)
		})
	})
	if got.adopted != 1 || breaks.Load() == 0 {
		t.Errorf("%d checkpoints taken over after %d breaks, want one after some", got.adopted, breaks.Load())
	}
}

// flipping changes a bit of each part.
type flipping struct{ http.ResponseWriter }

func (w *flipping) Write(b []byte) (int, error) {
	b = append([]byte(nil), b...)
	if len(b) > 0 {
		b[len(b)/2] ^= 4
	}
	return w.ResponseWriter.Write(b)
}

// breaking ends the connection after so many bytes.
type breaking struct {
	http.ResponseWriter
	left   int
	breaks *atomic.Int64
}

func (w *breaking) Write(b []byte) (int, error) {
	if len(b) > w.left {
		w.ResponseWriter.Write(b[:w.left])
		w.ResponseWriter.(http.Flusher).Flush()
		w.breaks.Add(1)
		panic(http.ErrAbortHandler)
	}
	w.left -= len(b)
	return w.ResponseWriter.Write(b)
}

// editing changes manifests on their way.
func editing(next http.Handler, edit func(string) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || strings.Count(r.URL.Path, "/") != 2 {
			next.ServeHTTP(w, r)
			return
		}
		seen := httptest.NewRecorder()
		next.ServeHTTP(seen, r)
		io.WriteString(w, edit(seen.Body.String()))
	})
}

// All instances are gone, and their disks: the state comes from the object store, and only what came after the checkpoint from changelogs.
func TestStateComesFromTheObjectStore(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "vault")
		a.create("in", 2)
		a.create("out", 1)
		out := a.read("out")
		a.produce("in", 2, numbered(8000, 3000)...)
		store := object.NewMemory("vault")
		keep := KeepCheckpoints(store, 100*time.Millisecond)
		i1 := a.start(counts(a.name), "i1", AcceptableLag(100), keep)
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 8000 })
		eventually(t, "kept what is there", func() bool {
			before := i1.Stats().Checkpoints.Kept
			time.Sleep(time.Second) // ten rounds in which nothing changes
			return keptOffset(t, store, a.name, "1_0") > 1000 && keptOffset(t, store, a.name, "1_1") > 1000 && i1.Stats().Checkpoints.Kept == before
		})
		i1.stop(t)
		if left := leftovers(filepath.Join(a.dir, "i1", a.name)); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		a.produce("in", 2, numbered(500, 3000)...)
		log := &events{}
		i2 := a.start(counts(a.name), "i2", AcceptableLag(100), keep, OnRestore(log.add))
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 8500 })
		if n, _ := log.count(CheckpointAdopted, false); n != 2 {
			t.Errorf("%d checkpoints taken over, want those of both tasks", n)
		}
		if _, records := log.count(RestoreEnded, false); records > 1500 {
			t.Errorf("%d records read from changelogs of 6000 keys, though checkpoints were taken over", records)
		}
		i2.stop(t)
		if err := out.onlyRises(); err != nil {
			t.Error(err)
		}
	})
}

// keptOffset is how far the kept checkpoint of a task's counts has come.
func keptOffset(t *testing.T, store CheckpointStore, app, task string) int64 {
	m, err := checkpoint.NewVault(store, app).Origin(task).Manifest(t.Context())
	if err != nil {
		return 0 // none yet
	}
	return m.Offsets["counts"]
}

// What a task's state is on disk after it was taken over is a database that opens, with what was promised.
func TestAdoptedStateOpensAgain(t *testing.T) {
	got := moveWithCheckpoints(t, brokertest.Embedded(t), "again", nil)
	if got.adopted != 1 {
		t.Fatalf("%d checkpoints taken over, want one", got.adopted)
	}
	resources := state.NewResources(state.ResourceOptions{})
	defer resources.Close()
	found := 0
	for _, task := range []string{"1_0", "1_1"} {
		dir := filepath.Join(got.directory, task)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		found++
		offsets, err := state.InspectCheckpoint(dir, resources)
		if err != nil || offsets["counts"] <= 0 {
			t.Errorf("%s: offsets %v, %v", task, offsets, err)
		}
	}
	if found != 1 {
		t.Errorf("%d task directories, want one", found)
	}
}

// What a checkpoint saves is judged by what would really be read: where one store doesn't fit its changelog, the task's others still do.
func TestCheckpointIsWeighedAgainstTheStoresThatFit(t *testing.T) {
	e, spec := withoutBrokers(t, countsOfTwo("weigh"))
	e.known.Store(&catalog{signatures: map[int32]uint64{}})
	r := e.newRunner(spec, 0)
	if err := e.openStores(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	counts, others := fetch.Partition{Topic: "weigh-counts-changelog"}, fetch.Partition{Topic: "weigh-others-changelog"}
	s := &starts{
		logStart: map[fetch.Partition]int64{counts: 0, others: 500}, // what the store would read next is gone
		high:     map[fetch.Partition]int64{counts: 10_000, others: 1000},
	}
	for store, at := range map[string]int64{"counts": 9_900, "others": 400} {
		if err := r.db.Restore(store, nil, at); err != nil {
			t.Fatal(err)
		}
	}
	if n := e.missing(r, s, r.db.Offset); n != 100+500 {
		t.Errorf("%d offsets are missing, want 100 of one store and all 500 of the other", n)
	}
	m := e.manifestFor(spec)
	m.Offsets = map[string]int64{"counts": 5_000, "others": 1_000} // older than what is here of the large store
	var unfit *UnfitCheckpointError
	if err := e.fits(r, s, m); !errors.As(err, &unfit) {
		t.Errorf("a checkpoint that leaves 5000 records instead of 600 fits: %v", err)
	}
	m.Offsets["counts"] = 9_900
	if err := e.fits(r, s, m); err != nil {
		t.Errorf("one that leaves 100 of 600 doesn't: %v", err)
	}
}
