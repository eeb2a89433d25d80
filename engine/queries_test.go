package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// queried has a store of each kind that can be asked for, filled by value.
func queried(t *testing.T, name string) *topology.Plan {
	t.Helper()
	b := topology.NewBuilder(name)
	in := b.Stream(name+"-in", serde.String, serde.String)
	byValue := in.GroupBy(func(_, v string) string { return v }, topology.Name("by-value"))
	byValue.Count(topology.Store("counts")).ToStream().To(name + "-out")
	byValue.Windowed(topology.Tumbling(time.Hour)).Count(topology.Store("windows"))
	byValue.Sessions(topology.Session(time.Hour)).Count(topology.Store("sessions"))
	in.SelectKey(func(_, v string) string { return v }).ToTable(topology.Store("versions"), topology.Versioned(time.Hour))
	rates := b.GlobalTable(name+"-rates", serde.String, serde.String, topology.Store("rates"))
	in.JoinGlobal(rates, func(_, v string) string { return v }, func(v, rate string) string { return v + rate }).To(name + "-out")
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func startQueried(t *testing.T, c *brokertest.Cluster, name string) *app {
	a := newApp(t, c, name)
	a.create("in", 4)
	a.create("out", 1)
	a.create("rates", 1)
	return a
}

func (a *app) startServing(plan *topology.Plan, name string, opts ...Option) *instance {
	return a.start(plan, name, append([]Option{HTTP("127.0.0.1:0"), Queries()}, opts...)...)
}

// get asks an instance over HTTP.
func (i *instance) get(t *testing.T, path string, header ...string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+i.HTTPAddr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range header {
		req.Header.Set(h, "1")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// Two instances share the stores: each tells what it has and where the rest is, and answers for both over HTTP.
func TestQueriesOverTwoInstances(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) { queriesOverTwoInstances(t, c, "queries") })
	t.Run("streams protocol", func(t *testing.T) {
		queriesOverTwoInstances(t, realCluster(t), "queries-streams", GroupProtocol(Streams))
	})
}

func queriesOverTwoInstances(t *testing.T, c *brokertest.Cluster, name string, opts ...Option) {
	a := startQueried(t, c, name)
	a.produce("in", 4, numbered(400, 20)...)
	a.produce("rates", 1, "one", "two")
	plan := queried(t, a.name)
	i1 := a.startServing(plan, "i1", opts...)
	i2 := a.startServing(plan, "i2", opts...)
	out := a.read("out")
	for _, i := range []*instance{i1, i2} {
		i.await(t, "tasks are shared", func(s Stats) bool { return s.State == Running && len(s.Tasks) >= 5 && runningTasks(s) == len(s.Tasks) })
	}
	eventually(t, "counted", func() bool { return total(out.lastCounts()) >= 400 })
	awaitStores(t, i1, i2)
	checkMembers(t, i1, i2)
	checkTyped(t, i1, i2)
	checkGlobal(t, i1, i2)
	for _, i := range []*instance{i1, i2} {
		checkHTTP(t, i)
	}
	checkForwardsOnce(t, i1, i2)

	i2.stop(t)
	eventually(t, "the first answers for all", func() bool {
		status, body := i1.get(t, "/stores/counts/scan")
		return status == http.StatusOK && strings.Count(body, `"value":20`) == 20
	})
	here, all, err := i1.LocalPartitions("counts")
	if err != nil || len(here) != 4 || all != 4 {
		t.Errorf("has partitions %v of %d, %v", here, all, err)
	}
}

// awaitStores waits until everything is processed and committed to the stores, which other tasks than those of the output fill.
func awaitStores(t *testing.T, i1, i2 *instance) {
	t.Helper()
	eventually(t, "nothing waits", func() bool { return i1.Stats().Lag == 0 && i2.Stats().Lag == 0 })
	last := ""
	eventually(t, "the stores are at rest", func() bool {
		_, now := i1.get(t, "/stores/counts/scan")
		found := strings.Count(now, `"value":20`)
		for v := range 20 {
			status, body := i1.get(t, fmt.Sprintf("/stores/versions/get?key=v%d", v))
			if status == http.StatusOK {
				found++
			}
			now += body
		}
		rests := found == 40 && now == last
		last = now
		time.Sleep(300 * time.Millisecond) // some commits
		return rests
	})
}

// checkTyped asks both instances by the typed queries: one of them has each key, and the other says so.
func checkTyped(t *testing.T, instances ...*instance) {
	t.Helper()
	found := map[string]int{}
	for n, i := range instances {
		counts, err := QueryKeyValue(i.Engine, "counts", serde.String, serde.Int64)
		if err != nil {
			t.Fatal(err)
		}
		windows, err := QueryWindow(i.Engine, "windows", serde.String, serde.Int64)
		if err != nil {
			t.Fatal(err)
		}
		sessions, err := QuerySession(i.Engine, "sessions", serde.String, serde.Int64)
		if err != nil {
			t.Fatal(err)
		}
		versions, err := QueryVersioned(i.Engine, "versions", serde.String, serde.String)
		if err != nil {
			t.Fatal(err)
		}
		for v := range 20 {
			key := fmt.Sprint("v", v)
			loc, err := i.Locate(t.Context(), "counts", []byte(key))
			if err != nil {
				t.Fatal(err)
			}
			holder := instances[n]
			if !loc.Here {
				holder = instances[1-n]
			}
			if loc.Endpoint != holder.HTTPAddr() {
				t.Errorf("%s is said to be at %s, not at %s", key, loc.Endpoint, holder.HTTPAddr())
			}
			e, ok, err := counts.Get(key)
			var absent *NotHereError
			if errors.As(err, &absent) {
				if loc.Here || absent.Reason != Elsewhere {
					t.Errorf("%s: %v, but it is located at %+v", key, err, loc)
				}
				continue
			}
			if err != nil || !ok || e.Value != 20 || e.Key != key {
				t.Errorf("count of %s: %+v, %v, %v", key, e, ok, err)
			}
			found[key]++
			window := only(t, windows.Fetch(key, 0, time.Now().UnixMilli()))
			if window.Value != 20 && window.Start%3_600_000 == 0 {
				t.Errorf("window of %s: %+v", key, window)
			}
			if same, ok, err := windows.Get(key, window.Start); err != nil || !ok || same != window {
				t.Errorf("window of %s by its start: %+v, %v, %v; want %+v", key, same, ok, err, window)
			}
			if none, ok, err := windows.Get(key, window.Start+1); err != nil || ok {
				t.Errorf("window of %s by another start: %+v, %v", key, none, err)
			}
			if entry := only(t, sessions.Fetch(key)); entry.Value != 20 || entry.End < entry.Start {
				t.Errorf("session of %s: %+v", key, entry)
			}
			checkVersions(t, versions, key)
		}
		for e, err := range counts.All() {
			if err != nil || e.Value != 20 {
				t.Errorf("scan: %+v, %v", e, err)
			}
			found[e.Key]++
		}
		for e, err := range counts.Prefix([]byte("v1")) {
			if err != nil || !strings.HasPrefix(e.Key, "v1") {
				t.Errorf("prefix: %+v, %v", e, err)
			}
			found["prefix"]++
		}
		inWindows := map[string]int64{}
		for w, err := range windows.FetchAll(0, time.Now().UnixMilli()) {
			if err != nil {
				t.Error(err)
			}
			inWindows[w.Key] += w.Value
		}
		for key, n := range inWindows {
			if found["windows of "+key]++; n != 20 {
				t.Errorf("windows of %s count %d records", key, n)
			}
		}
	}
	if found["prefix"] != 11 { // v1 and v10 to v19
		t.Errorf("%d rows begin with v1", found["prefix"])
	}
	for v := range 20 {
		if n := found[fmt.Sprint("v", v)]; n != 2 { // by key and by scan
			t.Errorf("v%d was found %d times over both instances", v, n)
		}
		if n := found[fmt.Sprint("windows of v", v)]; n != 1 {
			t.Errorf("windows of v%d were found %d times over both instances", v, n)
		}
	}
}

func checkVersions(t *testing.T, versions *VersionedQuery[string, string], key string) {
	t.Helper()
	latest, ok, err := versions.Get(key)
	if err != nil || !ok || latest.Value != key || latest.ValidTo != state.LatestVersion {
		t.Errorf("latest version of %s: %+v, %v, %v", key, latest, ok, err)
	}
	at, ok, err := versions.GetAsOf(key, latest.ValidFrom)
	if err != nil || !ok || at != latest {
		t.Errorf("version of %s as of its beginning: %+v, %v, %v", key, at, ok, err)
	}
	if _, ok, err := versions.GetAsOf(key, 1); err != nil || ok {
		t.Errorf("version of %s as of 1970: %v, %v", key, ok, err)
	}
	n := 0
	for _, err := range versions.History(key, 0, time.Now().UnixMilli()) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n == 0 {
		t.Errorf("%s has no history", key)
	}
}

func only[E any](t *testing.T, seq func(func(E, error) bool)) (e E) {
	t.Helper()
	n := 0
	for entry, err := range seq {
		if err != nil {
			t.Error(err)
		}
		e = entry
		n++
	}
	if n == 0 {
		t.Error("nothing found")
	}
	return e
}

// checkGlobal asks for a global table, which every instance has.
func checkGlobal(t *testing.T, instances ...*instance) {
	t.Helper()
	for _, i := range instances {
		rates, err := QueryKeyValue(i.Engine, "rates", serde.String, serde.String)
		if err != nil {
			t.Fatal(err)
		}
		if e, ok, err := rates.Get("k1"); err != nil || !ok || e.Value != "two" {
			t.Errorf("global table: %+v, %v, %v", e, ok, err)
		}
	}
}

// checkHTTP asks one instance for everything.
func checkHTTP(t *testing.T, i *instance) {
	t.Helper()
	for v := range 20 {
		status, body := i.get(t, fmt.Sprintf("/stores/counts/get?key=v%d", v))
		var got struct {
			Key       string `json:"key"`
			Value     int64  `json:"value"`
			Timestamp int64  `json:"timestamp"`
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || got.Key != fmt.Sprint("v", v) || got.Value != 20 || got.Timestamp == 0 {
			t.Errorf("v%d over HTTP: %d %s (%v)", v, status, body, err)
		}
		var windows struct {
			Rows []struct{ Start, End int64 } `json:"rows"`
		}
		if _, body := i.get(t, fmt.Sprintf("/stores/windows/windows?key=v%d", v)); json.Unmarshal([]byte(body), &windows) != nil ||
			len(windows.Rows) == 0 || windows.Rows[0].End-windows.Rows[0].Start != time.Hour.Milliseconds() {
			t.Errorf("windows of an hour of v%d: %s", v, body)
		}
		for _, path := range []string{"windows", "sessions", "history"} {
			store := map[string]string{"windows": "windows", "sessions": "sessions", "history": "versions"}[path]
			if status, body := i.get(t, fmt.Sprintf("/stores/%s/%s?key=v%d", store, path, v)); status != 200 || !strings.Contains(body, `"start"`) {
				t.Errorf("%s of v%d: %d %s", path, v, status, body)
			}
		}
	}
	for _, tt := range []struct {
		path   string
		status int
		says   string
	}{
		{"/stores", 200, `"name":"windows","kind":"timestampedWindow"`},
		{"/stores/counts", 200, `"locations":[{"partition":0`},
		{"/stores/counts/get?key=none", 404, "no such key"},
		{"/stores/counts/get?key64=djE=", 200, `"value":20`},
		{"/stores/counts/get?key=v1&raw", 200, `{"base64":"AAAAAAAAABQ="}`},
		{"/stores/counts/get", 400, "give key"},
		{"/stores/counts/windows", 400, "has no"},
		{"/stores/counts/scan?limit=0", 400, "limit"},
		{"/stores/counts/scan?partition=9", 400, "4 partitions"},
		{"/stores/counts/scan?limit=7", 200, `"truncated":true`},
		{"/stores/counts/scan?from=v3&to=v5", 200, `"truncated":false`},
		{"/stores/counts/scan?prefix64=_", 400, "prefix64 is base64"},
		{"/stores/nothing/get?key=a", 404, `no store`},
		{"/stores/windows/windows?since=x", 400, "milliseconds"},
		{"/stores/versions/get?key=v1", 200, `"value":"v1"`},
		{"/stores/versions/get?key=v1&at=1", 404, "no such key"},
		{"/stores/rates/get?key=k1", 200, `"value":"two"`},
	} {
		status, body := i.get(t, tt.path)
		if status != tt.status || !strings.Contains(body, tt.says) {
			t.Errorf("%s: %d %s", tt.path, status, body)
		}
	}
	for path, want := range map[string]int{"/stores/counts/scan": 20, "/stores/counts/scan?prefix=v1": 11, "/stores/counts/scan?prefix64=djE=": 11, "/stores/counts/scan?limit=7": 7,
		"/stores/counts/scan?from=v3&to=v5": 3, "/stores/windows/windows": 20, "/stores/sessions/sessions": 20} {
		_, body := i.get(t, path)
		var got struct{ Rows []json.RawMessage }
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Rows) < want || path != "/stores/windows/windows" && len(got.Rows) != want {
			t.Errorf("%s has %d rows, want %d (%v)", path, len(got.Rows), want, err)
		}
	}
}

// checkForwardsOnce: what was forwarded is answered from what is here, or refused.
func checkForwardsOnce(t *testing.T, i1, i2 *instance) {
	t.Helper()
	statuses := map[int]int{}
	for v := range 20 {
		for _, i := range []*instance{i1, i2} {
			status, _ := i.get(t, fmt.Sprintf("/stores/counts/get?key=v%d", v), "Tributary-Forwarded")
			statuses[status]++
		}
	}
	if !maps.Equal(statuses, map[int]int{http.StatusOK: 20, http.StatusMisdirectedRequest: 20}) {
		t.Errorf("answers to forwarded queries: %v", statuses)
	}
	if status, body := i1.get(t, "/stores/counts/get?key=v1", "Tributary-Application"); status != http.StatusMisdirectedRequest {
		t.Errorf("a query meant for another application: %d %s", status, body)
	}
}

// Queries go on while tasks move between instances: each answer is a committed count or says why there is none, and a key's count never
// goes back. Run it with -race.
func TestQueriesWhileTasksMove(t *testing.T) {
	c := brokertest.Embedded(t)
	a := newApp(t, c, "moving")
	a.create("in", 4)
	a.create("out", 1)
	plan := counts(a.name)
	i1 := a.startServing(plan, "i1")
	i1.await(t, "it has all", func(s Stats) bool { return s.State == Running && runningTasks(s) == 8 })
	asked, err := QueryKeyValue(i1.Engine, "counts", serde.String, serde.Int64)
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var answered, absent atomic.Int64
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			last := map[string]int64{}
			note := func(key string, n int64) {
				if n < last[key] {
					t.Errorf("the count of %s went back from %d to %d", key, last[key], n)
				}
				last[key] = n
				answered.Add(1)
			}
			for v := 0; !stop.Load(); v++ {
				key := fmt.Sprint("v", v%20)
				e, ok, err := asked.Get(key)
				var gone *NotHereError
				switch {
				case errors.As(err, &gone):
					absent.Add(1)
				case err != nil:
					t.Error(err)
				case ok:
					note(key, e.Value)
				}
				if v%20 == 0 {
					for e, err := range asked.All() {
						if errors.As(err, &gone) {
							break
						}
						if err != nil {
							t.Error(err)
							break
						}
						if _, _, err := asked.Get(e.Key); err != nil && !errors.As(err, &gone) { // one within another
							t.Error(err)
						}
						note(e.Key, e.Value)
					}
				}
				time.Sleep(200 * time.Microsecond)
			}
		})
	}
	for range 3 {
		a.produce("in", 4, numbered(200, 20)...)
		i2 := a.startServing(plan, "i2")
		i2.await(t, "it has half", func(s Stats) bool { return s.State == Running && runningTasks(s) == 4 })
		before := absent.Load()
		eventually(t, "some keys are elsewhere", func() bool { return absent.Load() > before })
		a.produce("in", 4, numbered(200, 20)...)
		i2.stop(t)
		i1.await(t, "it has all", func(s Stats) bool { return s.State == Running && runningTasks(s) == 8 })
	}
	eventually(t, "all counted", func() bool {
		sum := int64(0)
		for e, err := range asked.All() {
			if err == nil {
				sum += e.Value
			}
		}
		return sum == 1200
	})
	stop.Store(true)
	asking.Wait()
	if answered.Load() == 0 {
		t.Error("nothing was answered")
	}
}

// What can't be asked is an error that says so.
func TestQueryErrors(t *testing.T) {
	e, err := New(counts("query-errors"), Brokers("localhost:1"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = QueryKeyValue(e, "nothing", serde.String, serde.Int64)
	var unknown *UnknownStoreError
	if !errors.As(err, &unknown) || !slices.Contains(unknown.Known, "counts") {
		t.Errorf("unknown store: %v", err)
	}
	_, err = QueryWindow(e, "counts", serde.String, serde.Int64)
	var kind *state.LookupError
	if !errors.As(err, &kind) {
		t.Errorf("another kind: %v", err)
	}
	if _, err := QueryKeyValue[string, int64](e, "counts", nil, serde.Int64); err == nil {
		t.Error("no serde was taken")
	}
	var types *topology.StoreTypesError
	if _, err := QueryKeyValue(e, "counts", serde.Int32, serde.String); !errors.As(err, &types) ||
		!strings.Contains(err.Error(), "counts: its keys are string, the serde is one of int32, and its values are int64") {
		t.Errorf("serdes of other types: %v", err)
	}
	if _, err := QueryKeyValue(e, "counts", serde.String, serde.JSON[*int64]()); !errors.As(err, &types) || strings.Contains(err.Error(), "keys") {
		t.Errorf("a serde of another type for values: %v", err)
	}
	type word string
	if _, err := QueryKeyValue(e, "counts", serde.Func(func(dst []byte, w word) ([]byte, error) { return append(dst, w...), nil },
		func(b []byte) (word, error) { return word(b), nil }), serde.Int64); err != nil {
		t.Errorf("a type that is the same but for its name: %v", err)
	}
	if _, err := QueryKeyValue(e, "counts", serde.String, serde.Bytes); err != nil {
		t.Errorf("the bytes as they are: %v", err)
	}
	q, err := QueryKeyValue(e, "counts", serde.String, serde.Int64)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = q.Get("a")
	var absent *NotHereError
	if !errors.As(err, &absent) || absent.Reason != NotStarted {
		t.Errorf("before the start: %v", err)
	}
	for _, err := range q.All() {
		if !errors.As(err, &absent) {
			t.Errorf("scan before the start: %v", err)
		}
	}
	if _, err := e.Locate(t.Context(), "counts", []byte("a")); !errors.As(err, &absent) {
		t.Errorf("locate before the start: %v", err)
	}
}
