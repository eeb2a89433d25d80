package topologytest_test

import (
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// relations joins two tables by key and by foreign key, and sums up over one of them. A left row is a foreign key and a number.
func relations() *topology.Builder {
	b := topology.NewBuilder("relations")
	left := b.Table("left", serde.String, serde.String, topology.Store("lefts"))
	right := b.Table("right", serde.String, serde.String, topology.Store("rights"))
	text := topology.ValueSerde(serde.String)
	both := func(l, r string) string { return l + "+" + r }
	foreign := func(_, l string) string { return l[:1] }

	left.Join(right, both, text).ToStream().To("inner")
	left.LeftJoin(right, func(l string, r *string) string { return both(l, orNone(r)) }, text).ToStream().To("leftJoin")
	left.OuterJoin(right, func(l, r *string) string { return both(orNone(l), orNone(r)) }, text).ToStream().To("outer")
	left.JoinForeign(right, foreign, both, text).ToStream().To("foreign")
	left.LeftJoinForeign(right, foreign, func(l string, r *string) string { return both(l, orNone(r)) }, text).ToStream().To("leftForeign")
	left.GroupBy(func(_, l string) (string, int64) { return l[:1], amount(l) }).
		Aggregate(func() int64 { return 0 },
			func(_ string, n, sum int64) int64 { return sum + n }, func(_ string, n, sum int64) int64 { return sum - n },
			topology.Store("sums")).
		MapValues(func(n int64) string { return fmt.Sprint(n) }).ToStream().To("sums")
	return b
}

func orNone(s *string) string {
	if s == nil {
		return "none"
	}
	return *s
}

func amount(l string) int64 {
	n, _ := strconv.ParseInt(l[1:], 10, 64)
	return n
}

// change is an update or a delete of a row.
type change struct {
	left       bool
	key, value string // a value of "" deletes
}

func changes() *rapid.Generator[[]change] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) change {
		c := change{left: rapid.Bool().Draw(t, "left"), key: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "key")}
		switch n := rapid.IntRange(0, 9).Draw(t, "value"); {
		case n < 2:
		case c.left:
			c.value = fmt.Sprint(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "foreign key"), n)
		default:
			c.value = fmt.Sprint("r", n)
		}
		return c
	}), 1, 15)
}

// relationsModel is what the tables are in the end.
func relationsModel(all []change) map[string]map[string]string {
	left, right, sums := map[string]string{}, map[string]string{}, map[string]int64{}
	for _, c := range all {
		side := right
		if c.left {
			side = left
		}
		if side[c.key] = c.value; c.value == "" {
			delete(side, c.key)
		} else if c.left {
			sums[c.value[:1]] += 0 // a group that has lost all its rows keeps a sum of 0
		}
	}
	want := map[string]map[string]string{"inner": {}, "leftJoin": {}, "outer": {}, "foreign": {}, "leftForeign": {}, "sums": {}}
	for k, l := range left {
		sums[l[:1]] += amount(l)
		want["leftJoin"][k], want["outer"][k], want["leftForeign"][k] = l+"+none", l+"+none", l+"+none"
		if r, ok := right[k]; ok {
			want["inner"][k], want["leftJoin"][k], want["outer"][k] = l+"+"+r, l+"+"+r, l+"+"+r
		}
		if r, ok := right[l[:1]]; ok {
			want["foreign"][k], want["leftForeign"][k] = l+"+"+r, l+"+"+r
		}
	}
	for k, r := range right {
		if _, ok := left[k]; !ok {
			want["outer"][k] = "none+" + r
		}
	}
	for group, n := range sums {
		want["sums"][group] = fmt.Sprint(n)
	}
	return want
}

// Joined and grouped tables end as a model says that knows nothing of partitions, restarts and time.
func TestRelationsInAnyWeather(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := changes().Draw(t, "changes")
		w := inWeather(t, relations)
		left := topologytest.Input(w.Driver, "left", serde.String, serde.String)
		right := topologytest.Input(w.Driver, "right", serde.String, serde.String)
		for i, c := range all {
			in := right
			if c.left {
				in = left
			}
			if c.value == "" {
				w.must(in.PipeNull(c.key, int64(i)))
			} else {
				w.must(in.Pipe(c.key, c.value, int64(i)))
			}
			w.blow()
		}
		w.compare(relationsModel(all))
	})
}

// visits drops the visits that were sent twice, counts the rest, and keeps each visitor's last.
func visits() *topology.Builder {
	b := topology.NewBuilder("visits")
	once := b.Stream("visits", serde.String, serde.String).DedupBy(func(v string) string { return v }, topology.Forever, topology.Store("seen"))
	once.To("once")
	once.GroupByKey().Count(topology.Store("counts")).MapValues(func(n int64) string { return fmt.Sprint(n) }).ToStream().To("counts")
	once.GroupBy(func(_, v string) string { return v[:1] }).Reduce(func(_, v string) string { return v }, topology.Store("last")).
		ToStream().To("last")
	return b
}

// Each visit counts once, however often it was sent and whatever happens meanwhile.
func TestDuplicatesInAnyWeather(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.IntRange(0, 11), 1, 30).Draw(t, "ids")
		w := inWeather(t, visits)
		in := topologytest.Input(w.Driver, "visits", serde.String, serde.String)
		seen, counts, last := map[string]bool{}, map[string]int{}, map[string]string{}
		for i, id := range ids {
			key := fmt.Sprint("k", id%3) // a producer's retry keeps the key
			visit := fmt.Sprint(id%3, "/", id)
			w.must(in.Pipe(key, visit, int64(i)))
			w.blow()
			if !seen[visit] {
				seen[visit] = true
				counts[key]++
				last[visit[:1]] = visit
			}
		}
		want := map[string]map[string]string{"counts": {}, "last": last}
		for k, n := range counts {
			want["counts"][k] = fmt.Sprint(n)
		}
		w.compare(want)
		if got := len(topologytest.Output(w.Driver, "once", serde.String, serde.String).Read()); got != len(seen) {
			t.Errorf("%d visits passed, want %d", got, len(seen))
		}
	})
}

// An inner join's result goes although its row has given its foreign key up, and gone, while the answer to that was under way. Kafka Streams
// keeps the result.
func TestForeignKeyGivenUpOnTheWay(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder("given-up")
	left := b.Table("left", serde.String, serde.String, topology.Store("lefts"))
	right := b.Table("right", serde.Ptr(serde.String), serde.String, topology.Store("rights"))
	left.JoinForeign(right, func(_, l string) *string {
		if l == "" {
			return nil
		}
		return &l
	}, func(l, r string) string { return l + "+" + r }, topology.ValueSerde(serde.String)).ToStream().To("joined")
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan, topologytest.Partitions(2), topologytest.ManualCommit())
	lefts := topologytest.Input(d, "left", serde.String, serde.String)
	key := "r"
	inTurn(t,
		func() error {
			return topologytest.Input(d, "right", serde.Ptr(serde.String), serde.String).Pipe(&key, "row", 1)
		},
		func() error { return lefts.Pipe("x", "r", 2) }, d.Commit, d.Commit, d.Commit,
		func() error { return lefts.Pipe("x", "", 3) },
		func() error { return lefts.PipeNull("x", 4) }, d.Commit, d.Commit, d.Commit,
	)
	out := topologytest.Output(d, "joined", serde.String, serde.String).Read()
	if len(out) != 2 || out[0].Value != "r+row" || !out[1].ValueNull {
		t.Errorf("got %v, want the result and its delete", out)
	}
}

// The result of a row whose foreign key can't be found any more stays when the right row goes, as in Kafka Streams; also where a restart
// has forgotten that the row's update was left out.
func TestForeignKeyLeftOutBeforeARestart(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder("left-out")
	left := b.Table("left", serde.String, serde.String, topology.Store("lefts"))
	right := b.Table("right", serde.String, serde.String, topology.Store("rights"))
	left.JoinForeign(right, func(_, l string) string {
		if l == "bad" {
			panic("no foreign key")
		}
		return l
	}, func(l, r string) string { return l + "+" + r }, topology.Store("joined"), topology.ValueSerde(serde.String))
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan, topologytest.ErrorHandlers(processors.Handlers{Processing: processors.SkipOnError()}))
	lefts := topologytest.Input(d, "left", serde.String, serde.String)
	rights := topologytest.Input(d, "right", serde.String, serde.String)
	inTurn(t,
		func() error { return rights.Pipe("r", "row", 1) },
		func() error { return lefts.Pipe("x", "r", 2) },
		func() error { return lefts.Pipe("x", "bad", 3) },
		d.Restart,
		func() error { return rights.PipeNull("r", 4) },
	)
	joined, err := topologytest.TimestampedKeyValue(d, "joined", 0, serde.String, serde.String)
	if err != nil {
		t.Fatal(err)
	}
	if v, _, ok, err := joined.Get("x"); err != nil || !ok || v != "r+row" {
		t.Errorf("the result is %q, %v, %v; want r+row", v, ok, err)
	}
	if failed := d.Dropped()[processors.DroppedProcessing]; failed != 1 {
		t.Errorf("%d records failed, want the left row only", failed)
	}
}

// A left table that sends its updates at the commit shows them before: the answer that was due comes for a row that is another one by then, and
// whose update asks for none. The result must go all the same.
func TestForeignKeyAnswersWhileTheRowIsHeldBack(t *testing.T) {
	t.Parallel()
	b := topology.NewBuilder("held-back")
	left := b.Stream("left", serde.String, serde.String).Repartition().ToTable(topology.Store("lefts"), topology.EmitOnCommit())
	right := b.Table("right", serde.String, serde.String, topology.Store("rights"))
	left.JoinForeign(right, func(_, l string) string { return l[:2] }, func(l, r string) string { return l + "+" + r }, topology.ValueSerde(serde.String)).ToStream().To("joined")
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan, topologytest.Partitions(2), topologytest.ManualCommit())
	lefts := topologytest.Input(d, "left", serde.String, serde.String)
	inTurn(t,
		func() error {
			return topologytest.Input(d, "right", serde.String, serde.String).Pipe("r1", "row", 1)
		},
		func() error { return lefts.Pipe("x", "r1", 2) }, d.Commit, d.Commit, d.Commit, d.Commit,
		func() error { return lefts.Pipe("x", "r2", 3) }, d.Commit, d.Commit,
		func() error { return lefts.Pipe("x", "r2'", 2) }, d.Commit, d.Commit, d.Commit, d.Commit, d.Commit, d.Commit,
	)
	out := topologytest.Output(d, "joined", serde.String, serde.String).Read()
	if len(out) != 2 || !out[1].ValueNull {
		t.Errorf("got %v, want the result and its delete", out)
	}
}

// inTurn does one thing after the other.
func inTurn(t *testing.T, what ...func() error) {
	t.Helper()
	for _, do := range what {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}
