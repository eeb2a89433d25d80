package topologytest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// station is a key in Avro.
type station struct {
	ID string `avro:"id"`
}

// degrees is a value in Avro.
type degrees struct {
	Station string  `avro:"station"`
	Celsius float64 `avro:"celsius"`
}

const (
	stationSchema  = `{"type":"record","name":"Station","fields":[{"name":"id","type":"string"}]}`
	measuredSchema = `{"type":"record","name":"Measured","fields":[{"name":"station","type":"string"},{"name":"celsius","type":"double"}]}`
)

// avroSerdes are those of one test's registry.
type avroSerdes struct {
	key   serde.Serde[station]
	value serde.Serde[degrees]
}

func warmer(a, b degrees) degrees { return degrees{b.Station, a.Celsius + b.Celsius} }

// withoutWindow gives keys whose serde is known, since it is that of the keys in the windows.
func withoutWindow(_ topology.Window[station], m degrees) (station, degrees) {
	return station{m.Station}, m
}

// avroTopologies lead from the topics "left" and "right" to "out", each by an operator that writes more than a plain topic or store.
var avroTopologies = map[string]func(b *topology.Builder, s avroSerdes){
	"foreign-key join":      func(b *topology.Builder, s avroSerdes) { foreignJoin(b, s, false) },
	"foreign-key left join": func(b *topology.Builder, s avroSerdes) { foreignJoin(b, s, true) },
	"table grouped anew": func(b *topology.Builder, s avroSerdes) {
		b.Table("left", s.key, s.value).
			GroupBy(func(_ station, m degrees) (station, degrees) { return station{m.Station}, m }).
			Reduce(warmer, func(a, b degrees) degrees { return a }, topology.Store("sums")).
			ToStream().To("out")
	},
	"windows": func(b *topology.Builder, s avroSerdes) {
		b.Stream("left", s.key, s.value).GroupByKey().Windowed(topology.Tumbling(time.Millisecond)).
			Reduce(warmer, topology.Store("sums")).ToStream().To("out")
	},
	"suppressed windows": func(b *topology.Builder, s avroSerdes) {
		b.Stream("left", s.key, s.value).GroupByKey().Windowed(topology.Tumbling(time.Millisecond)).
			Reduce(warmer, topology.Store("sums")).EmitFinal(topology.Name("final")).ToStream().Map(withoutWindow).To("out")
	},
	"suppressed sessions": func(b *topology.Builder, s avroSerdes) {
		b.Stream("left", s.key, s.value).GroupByKey().Sessions(topology.Session(time.Millisecond)).
			Reduce(warmer, topology.Store("sums")).EmitFinal(topology.Name("final")).ToStream().Map(withoutWindow).To("out")
	},
	"windows that close": func(b *topology.Builder, s avroSerdes) {
		b.Stream("left", s.key, s.value).GroupByKey().Windowed(topology.Sliding(time.Millisecond), topology.EmitOnClose()).
			Reduce(warmer, topology.Store("sums")).ToStream().To("out")
	},
	"windows grouped anew": func(b *topology.Builder, s avroSerdes) {
		b.Stream("left", s.key, s.value).GroupByKey().Windowed(topology.Tumbling(time.Millisecond)).
			Reduce(warmer, topology.Store("sums")).GroupBy(withoutWindow).Reduce(warmer, warmer, topology.Store("again")).ToStream().To("out")
	},
	"outer join of streams": func(b *topology.Builder, s avroSerdes) {
		b.Stream("left", s.key, s.value).OuterJoinStream(b.Stream("right", s.key, s.value), func(l, r *degrees) degrees {
			if l == nil {
				return *r
			}
			return *l
		}, topology.JoinWithin(time.Second), topology.Store("joined")).To("out")
	},
	"join of tables with a store": func(b *topology.Builder, s avroSerdes) {
		b.Table("left", s.key, s.value).OuterJoin(b.Table("right", s.key, s.value), func(l, r *degrees) degrees {
			if l == nil {
				return *r
			}
			return *l
		}, topology.Store("joined")).ToStream().To("out")
	},
	"join with grace": func(b *topology.Builder, s avroSerdes) {
		table := b.Table("right", s.key, s.value, topology.Versioned(time.Hour), topology.Store("rows"))
		b.Stream("left", s.key, s.value).Join(table, warmer, topology.JoinGrace(time.Millisecond), topology.Name("patient")).To("out")
	},
	"dedup": func(b *topology.Builder, s avroSerdes) {
		b.Stream("left", s.key, s.value).DedupBy(func(m degrees) string { return m.Station }, time.Hour).To("out")
	},
	"global join": func(b *topology.Builder, s avroSerdes) {
		b.Stream("left", s.key, s.value).JoinGlobal(b.GlobalTable("right", s.key, s.value), func(_ station, m degrees) station { return station{m.Station} }, warmer).To("out")
	},
}

func foreignJoin(b *topology.Builder, s avroSerdes, left bool) {
	rows, stations := b.Table("left", s.key, s.value), b.Table("right", s.key, s.value)
	key := func(_ station, m degrees) station { return station{m.Station} }
	if left {
		rows.LeftJoinForeign(stations, key, func(l degrees, _ *degrees) degrees { return l }, topology.Store("joined")).ToStream().To("out")
		return
	}
	rows.JoinForeign(stations, key, warmer, topology.Store("joined")).ToStream().To("out")
}

// Whatever an operator writes beside its stores and topics (foreign keys, hashes of rows, keys in windows, old rows beside new ones) is written
// by serdes that are ready, on one partition and on several, and is read again after a restart.
func TestEveryOperatorWritesAvro(t *testing.T) {
	for name, declare := range avroTopologies {
		for _, partitions := range []int32{1, 3} {
			t.Run(name, func(t *testing.T) {
				registry := serde.NewMemoryRegistry()
				s := avroSerdes{serde.Avro[station](registry, stationSchema), serde.Avro[degrees](registry, measuredSchema)}
				b := topology.NewBuilder("weather")
				declare(b, s)
				plan, err := b.Build()
				if err != nil {
					t.Fatal(err)
				}
				d := topologytest.New(t, plan, topologytest.Partitions(partitions))
				left, right := topologytest.Input(d, "left", s.key, s.value), topologytest.Input(d, "right", s.key, s.value)
				if slices.Contains(plan.Sources(), "right") {
					right.Pipe(station{"k"}, degrees{"k", 1}, 1_000)
				}
				left.Pipe(station{"k"}, degrees{"k", 2}, 1_000)
				left.Pipe(station{"k"}, degrees{"k", 3}, 1_000)
				d.Restart()
				left.Pipe(station{"k"}, degrees{"k", 4}, 60_000)
				if len(d.Read("out")) == 0 {
					t.Error("nothing came out")
				}
			})
		}
	}
}
