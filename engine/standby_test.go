package engine

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// taskDatabases are the open databases of an instance's tasks, and of its standbys.
func taskDatabases(i *instance) (tasks, copies map[task.ID]*state.DB) {
	tasks, copies = map[task.ID]*state.DB{}, map[task.ID]*state.DB{}
	if shown := i.shown.Load(); shown != nil {
		for _, r := range *shown {
			if r.db != nil {
				tasks[r.spec.id] = r.db
			}
		}
	}
	for _, s := range i.standbysNow() {
		if s.following.Load() {
			copies[s.r.spec.id] = s.r.db
		}
	}
	return tasks, copies
}

func statefulTasks(s Stats) (n int) {
	for _, t := range s.Tasks {
		if t.Running && t.Name[0] == '1' { // the counting sub-topology of counts
			n++
		}
	}
	return n
}

// caughtUp waits until n copies of an instance follow and lack nothing of what is committed now: their own lag is as far as they know.
func (i *instance) caughtUp(t *testing.T, n int) {
	t.Helper()
	var ends kadm.ListedOffsets
	i.await(t, fmt.Sprintf("%d standbys that lack nothing", n), func(s Stats) bool {
		following := 0
		for _, c := range s.Standbys {
			if c.Following && c.Lag == 0 {
				following++
			}
		}
		if following != n || len(s.Standbys) != n {
			return false
		}
		if ends == nil {
			ends = i.changelogEnds(t)
		}
		return i.copiesReach(ends)
	})
}

// changelogEnds are the ends of what is committed of all changelogs of which the instance has copies or tasks.
func (i *instance) changelogEnds(t *testing.T) kadm.ListedOffsets {
	t.Helper()
	var topics []string
	for _, st := range i.plan.Stores {
		if st.Changelog != "" {
			topics = append(topics, st.Changelog)
		}
	}
	ends, err := kadm.NewClient(i.control).ListCommittedOffsets(t.Context(), topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

// copiesReach tells whether the copies have all that is before these ends.
func (i *instance) copiesReach(ends kadm.ListedOffsets) bool {
	for _, s := range i.standbysNow() {
		stores := s.stores.Load()
		if stores == nil {
			return false
		}
		for _, c := range *stores {
			end, known := ends.Lookup(c.span.Partition.Topic, c.span.Partition.Partition)
			if !known || c.at.Load() < end.Offset {
				return false
			}
		}
	}
	return true
}

// events collects what OnRestore is told.
type events struct {
	mu  sync.Mutex
	all []RestoreEvent
}

func (l *events) add(e RestoreEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

func (l *events) count(phase RestorePhase, standby bool) (n int, records int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		if e.Phase == phase && e.Standby == standby {
			n++
			records += e.Records
		}
	}
	return n, records
}

// left is how far what the events of a phase are about was behind.
func (l *events) left(phase RestorePhase) (all []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.all {
		if e.Phase == phase {
			all = append(all, e.Left)
		}
	}
	return all
}

// Tasks come up on the instance with their standbys, with the same open database and nothing to restore; and where a task goes the one that
// gave it up keeps a copy, again with the same database.
func TestRolesChangeWithoutReopening(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "recycle")
		a.create("in", 4)
		a.create("out", 1)
		out := a.read("out")
		a.produce("in", 4, numbered(4000, 700)...)
		log1, log2 := &events{}, &events{}
		i1 := a.start(counts(a.name), "i1", Standbys(1), AcceptableLag(5), OnRestore(log1.add))
		i1.await(t, "the first has all", func(s Stats) bool { return statefulTasks(s) == 4 && s.State == Running })
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 4000 })
		first, _ := taskDatabases(i1)

		i2 := a.start(counts(a.name), "i2", Standbys(1), AcceptableLag(5), OnRestore(log2.add))
		i2.await(t, "half of the tasks", func(s Stats) bool { return statefulTasks(s) == 2 })
		i1.caughtUp(t, 2)
		i2.caughtUp(t, 2)
		if n, _ := log2.count(StandbyCaughtUp, true); n != 2 {
			t.Errorf("%d warm-ups have said that they are caught up, want 2", n)
		}
		if n, records := log2.count(RestoreEnded, false); records > 10 {
			t.Errorf("%d tasks restored %d records, though they had warmed up", n, records)
		}
		tasks1, copies1 := taskDatabases(i1)
		for id, db := range first {
			if tasks1[id] != db && copies1[id] != db {
				t.Errorf("task %v of the first has another database than before", id)
			}
		}
		if len(tasks1) != 2 || len(copies1) != 2 {
			t.Fatalf("the first has %d databases of tasks and %d of copies, want 2 and 2", len(tasks1), len(copies1))
		}

		a.produce("in", 4, numbered(400, 700)...)
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 4400 })
		i2.caughtUp(t, 2)
		tasks2, copies2 := taskDatabases(i2)
		before, recordsBefore := log2.count(RestoreEnded, false)
		i1.stop(t)
		a.produce("in", 4, numbered(400, 700)...)
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 4800 })
		after, _ := taskDatabases(i2)
		want := map[task.ID]*state.DB{}
		maps.Copy(want, tasks2)
		maps.Copy(want, copies2)
		if !maps.Equal(after, want) {
			t.Errorf("the second runs on %v, want the databases that it had: %v", after, want)
		}
		if n, records := log2.count(RestoreEnded, false); n != before+4 || records != recordsBefore { // the repartitioning tasks have no state
			if records != recordsBefore {
				t.Errorf("%d records restored at the take-over, want none", records-recordsBefore)
			}
		}
		if n, _ := log2.count(StandbyTakesOver, true); n != 4 {
			t.Errorf("%d standbys took over, want 4: two that had warmed up, two of the first", n)
		}
		for _, left := range log2.left(StandbyTakesOver) {
			if left < 0 || left > 400 {
				t.Errorf("a standby that had caught up took over %d records behind", left)
			}
		}
		if err := out.onlyRises(); err != nil {
			t.Error(err)
		}
	})
}

// While a new instance warms up, everything runs where it was: results go on, and the task that moves stands still for a moment only.
func TestScaleOutGoesOnWhileItWarmsUp(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "warm")
		a.create("in", 2)
		a.create("out", 1)
		out := a.read("out")
		a.produce("in", 2, numbered(20_000, 5000)...)
		i1 := a.start(counts(a.name), "i1", AcceptableLag(100))
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 20_000 })

		stop, fed := make(chan struct{}), make(chan int)
		go func() { // a record every few milliseconds
			n := 0
			defer func() { fed <- n }()
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
					a.produce("in", 2, numbered(20, 5000)...)
					n += 20
				}
			}
		}()
		i2 := a.start(counts(a.name), "i2", AcceptableLag(100))
		i2.await(t, "a task of its own", func(s Stats) bool { return statefulTasks(s) == 1 })
		i1.await(t, "the other one", func(s Stats) bool { return statefulTasks(s) == 1 })
		time.Sleep(300 * time.Millisecond)
		close(stop)
		n := <-fed
		eventually(t, "all counted", func() bool { return total(out.lastCounts()) == int64(20_000+n) })
		for _, s := range i2.Stats().Tasks {
			if s.Restore.Records > 2000 {
				t.Errorf("task %s restored %d records when it moved, though it had warmed up", s.Name, s.Restore.Records)
			}
		}
		if err := out.onlyRises(); err != nil {
			t.Error(err)
		}
		t.Logf("longest time between two committed results: %v", longestPause(out))
	})
}

// longestPause is the longest time between the broker's times of two successive results of one partition.
func longestPause(o *output) (longest time.Duration) {
	last := map[int32]time.Time{}
	for _, r := range o.all() {
		if before, ok := last[r.Partition]; ok {
			longest = max(longest, r.Timestamp.Sub(before))
		}
		last[r.Partition] = r.Timestamp
	}
	return longest
}

// standbyCount reads a count from a standby's store on an instance.
func standbyCount(t *testing.T, i *instance, key string) (n int64, ok bool) {
	t.Helper()
	q, err := QueryKeyValue(i.Engine, "counts", serde.String, serde.Int64)
	if err != nil {
		t.Fatal(err)
	}
	entry, ok, err := q.Standby().Get(key)
	if err != nil {
		return 0, false
	}
	return entry.Value, ok
}

// What is written to a changelog in a transaction that doesn't commit never enters a standby.
func TestStandbyNeverSeesWhatIsAborted(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "zombie")
		a.create("in", 1)
		a.create("out", 1)
		a.produce("in", 1, "x", "x", "x")
		i1 := a.start(counts(a.name), "i1", Standbys(1))
		i1.await(t, "runs", func(s Stats) bool { return s.State == Running && s.Commits > 0 })
		i2 := a.start(counts(a.name), "i2", Standbys(1))
		standby := func() *instance {
			for _, i := range []*instance{i1, i2} {
				if s := i.Stats().Standbys; len(s) == 1 && s[0].Following {
					return i
				}
			}
			return nil
		}
		eventually(t, "one of them has a standby with the count", func() bool {
			i := standby()
			if i == nil {
				return false
			}
			n, ok := standbyCount(t, i, "x")
			return ok && n == 3
		})
		changelog := a.name + "-counts-changelog"
		zombie, err := kgo.NewClient(kgo.SeedBrokers(a.c.Addrs...), kgo.TransactionalID(a.name+"-zombie"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer zombie.Close()
		if err := zombie.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		value := append(make([]byte, 8), 0, 0, 0, 0, 0, 0, 0, 99)
		if err := zombie.ProduceSync(t.Context(), &kgo.Record{Topic: changelog, Key: []byte("x"), Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		holder := standby()
		time.Sleep(500 * time.Millisecond) // for what shouldn't come
		if n, ok := standbyCount(t, holder, "x"); ok && n != 3 {
			t.Errorf("the standby counts %d while a transaction is open, want 3", n)
		}
		if err := zombie.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		a.produce("in", 1, "x", "y")
		eventually(t, "the standby goes on behind what is aborted", func() bool {
			n, ok := standbyCount(t, holder, "y")
			return ok && n == 1
		})
		if n, _ := standbyCount(t, holder, "x"); n != 4 {
			t.Errorf("the standby counts %d, want 4", n)
		}
	})
}

// A table that has its source topic for a changelog: its standby stops where the group has committed, not where the topic ends.
func TestStandbyOfASourceStopsAtTheCommit(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "bound")
		a.create("names", 1)
		a.create("in", 1)
		a.create("out", 1)
		plan := func() *topology.Plan {
			b := topology.NewBuilder(a.name, topology.Optimize(topology.AllOptimizations))
			names := b.Table(a.topic("names"), serde.String, serde.String, topology.Store("names"))
			b.Stream(a.topic("in"), serde.String, serde.String).
				Join(names, func(v, name string) string { return v + "=" + name }).
				To(a.topic("out"))
			return build(b)
		}
		a.produce("names", 1, "zero")
		i1 := a.start(plan(), "i1", Standbys(1))
		i1.await(t, "runs", func(s Stats) bool { return runningTasks(s) == 1 && s.Commits > 0 })
		i2 := a.start(plan(), "i2", Standbys(1))
		i2.caughtUp(t, 1)
		name := func() string {
			q, err := QueryKeyValue(i2.Engine, "names", serde.String, serde.String)
			if err != nil {
				t.Fatal(err)
			}
			entry, _, err := q.Standby().Get("k0")
			if err != nil {
				return err.Error()
			}
			return entry.Value
		}
		eventually(t, "the standby has the name", func() bool { return name() == "zero" })
		i1.Pause()
		i1.await(t, "is paused", func(s Stats) bool { return s.State == Paused })
		a.produce("names", 1, "ZERO")
		time.Sleep(3 * followSourcesEvery)
		if got := name(); got != "zero" {
			t.Errorf("the standby has %q, which the task hasn't processed", got)
		}
		i1.Resume()
		eventually(t, "the standby has the new name", func() bool { return name() == "ZERO" })
		i1.stop(t)
		out := a.read("out")
		a.produce("in", 1, "x")
		eventually(t, "joined by the second", func() bool { return len(out.all()) == 1 && string(out.all()[0].Value) == "x=ZERO" })
	})
}

// An instance is killed on real Kafka: its tasks come up on the standby, which doesn't restore them; the instance with standbys is killed, and
// comes back. Every input counts once.
func TestStandbysSurviveKills(t *testing.T) {
	t.Parallel()
	c := &brokertest.Cluster{Addrs: realkafka.Shared(t, 1).Addrs()}
	a := newApp(t, c, "kill-standby")
	a.create("in", 4)
	a.create("out", 1)
	out := a.read("out")
	produced := 0
	feed := func() { a.produce("in", 4, numbered(3000, 900)...); produced += 3000 }
	feed()
	log := &events{}
	i1 := a.start(counts(a.name), "i1", Standbys(1), AcceptableLag(5), OnRestore(log.add))
	i1.await(t, "has all", func(s Stats) bool { return statefulTasks(s) == 4 && s.State == Running })
	other := a.spawnWith("i2", instanceArgs{Standbys: 1})
	i1.await(t, "half of the tasks", func(s Stats) bool { return statefulTasks(s) == 2 })
	for range 2 {
		feed()
		want := int64(produced)
		eventually(t, "counted by both", func() bool { return total(out.lastCounts()) == want })
		i1.caughtUp(t, 2)
		_, before := log.count(RestoreEnded, false)
		_, copies := taskDatabases(i1)
		other.Kill() // with tasks and standbys
		feed()
		i1.await(t, "took over", func(s Stats) bool { return statefulTasks(s) == 4 })
		tasks, _ := taskDatabases(i1)
		for id, db := range copies {
			if tasks[id] != db {
				t.Errorf("task %v doesn't run on the standby's database", id)
			}
		}
		if _, records := log.count(RestoreEnded, false); records != before {
			t.Errorf("%d records restored at the take-over, want none: the standby had them", records-before)
		}
		want = int64(produced)
		eventually(t, "counted by the one", func() bool { return total(out.lastCounts()) == want })
		other = a.spawnWith("i2", instanceArgs{Standbys: 1})
		i1.await(t, "half of the tasks again", func(s Stats) bool { return statefulTasks(s) == 2 })
	}
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
}

// Over HTTP a standby answers where it will do, and says how far it is behind; else the task's instance does.
func TestStandbysAnswerOverHTTP(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "http-standby")
	a.create("in", 1)
	a.create("out", 1)
	a.produce("in", 1, "x", "x")
	opts := []Option{Standbys(1), HTTP("127.0.0.1:0"), Queries()}
	i1 := a.start(counts(a.name), "i1", opts...)
	i1.await(t, "runs", func(s Stats) bool { return statefulTasks(s) == 1 && s.Commits > 0 })
	i2 := a.start(counts(a.name), "i2", opts...)
	task, copy := i1, i2
	eventually(t, "one has the task, the other a standby", func() bool {
		for _, pair := range [][2]*instance{{i1, i2}, {i2, i1}} {
			s := pair[1].Stats()
			if statefulTasks(pair[0].Stats()) == 1 && len(s.Standbys) == 1 && s.Standbys[0].Following && statefulTasks(s) == 0 {
				task, copy = pair[0], pair[1]
				return true
			}
		}
		return false
	})
	get := func(i *instance, query string) (status int, body string) {
		resp, err := http.Get("http://" + i.HTTPAddr() + "/stores/counts/get?key=x" + query)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	eventually(t, "the standby answers", func() bool {
		status, body := get(copy, "&standby=true")
		return status == http.StatusOK && strings.Contains(body, `"value":2`) && strings.Contains(body, `"behind":`)
	})
	for i, query := range map[*instance]string{task: "&standby=true", copy: ""} {
		if status, body := get(i, query); status != http.StatusOK || !strings.Contains(body, `"value":2`) || strings.Contains(body, "behind") {
			t.Errorf("the task's instance should have answered: %d %s", status, body)
		}
	}
	if status, body := get(copy, "&standby=perhaps"); status != http.StatusBadRequest {
		t.Errorf("got %d %s", status, body)
	}
}

// Typed queries of all kinds of stores read the standby that an instance keeps, if they are told to.
func TestStandbysAnswerTypedQueries(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "typed-standby")
	for _, topic := range []string{"in", "out", "rates"} {
		a.create(topic, 1)
	}
	a.produce("in", 1, "x")
	plan := queried(t, a.name)
	instances := []*instance{a.start(plan, "i1", Standbys(1)), a.start(plan, "i2", Standbys(1))}
	kinds := map[string]func(e *Engine, standby bool) (bool, error){
		"key-value": func(e *Engine, standby bool) (bool, error) {
			q, err := QueryKeyValue(e, "counts", serde.String, serde.Int64)
			if err != nil {
				return false, err
			}
			_, ok, err := orStandby(q, standby).Get("x")
			return ok, err
		},
		"window": func(e *Engine, standby bool) (bool, error) {
			q, err := QueryWindow(e, "windows", serde.String, serde.Int64)
			if err != nil {
				return false, err
			}
			return anyOf(orStandby(q, standby).Fetch("x", 0, math.MaxInt64))
		},
		"session": func(e *Engine, standby bool) (bool, error) {
			q, err := QuerySession(e, "sessions", serde.String, serde.Int64)
			if err != nil {
				return false, err
			}
			return anyOf(orStandby(q, standby).Fetch("x"))
		},
		"versioned": func(e *Engine, standby bool) (bool, error) {
			q, err := QueryVersioned(e, "versions", serde.String, serde.String)
			if err != nil {
				return false, err
			}
			_, ok, err := orStandby(q, standby).Get("x")
			return ok, err
		},
	}
	for kind, ask := range kinds {
		eventually(t, kind+": both find it with standbys, and one without", func() bool {
			with, without, elsewhere := 0, 0, 0
			for _, i := range instances {
				if ok, err := ask(i.Engine, true); ok && err == nil {
					with++
				}
				ok, err := ask(i.Engine, false)
				var absent *NotHereError
				switch {
				case ok && err == nil:
					without++
				case errors.As(err, &absent) && absent.Reason == Elsewhere:
					elsewhere++
				}
			}
			return with == 2 && without == 1 && elsewhere == 1
		})
	}
}

// orStandby has a query read standbys as well, if they will do.
func orStandby[Q interface{ Standby() Q }](q Q, standby bool) Q {
	if standby {
		return q.Standby()
	}
	return q
}

// anyOf tells whether there is something.
func anyOf[E any](all iter.Seq2[E, error]) (ok bool, err error) {
	for _, err := range all {
		return err == nil, err
	}
	return false, nil
}
