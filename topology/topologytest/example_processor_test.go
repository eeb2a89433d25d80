package topologytest_test

import (
	"fmt"
	"log"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

var lastSeen = topology.KeyValueStore("last-seen", serde.String, serde.Int64)

// silence tells of devices that have sent nothing for a minute.
type silence struct {
	ctx  processors.ProcessorContext[string, string]
	seen *state.KeyValueStore[string, int64]
}

func newSilence() processors.Processor[string, float64, string, string] { return &silence{} }

func (s *silence) Init(ctx processors.ProcessorContext[string, string]) (err error) {
	s.ctx = ctx
	s.seen, err = processors.KeyValueStore(ctx, lastSeen)
	ctx.Schedule(10*time.Second, processors.StreamTime, s.check)
	return err
}

func (s *silence) Process(r *processors.Record[string, float64]) error {
	return s.seen.Put(r.Key, r.Timestamp)
}

func (s *silence) check(now int64) error {
	var silent []string
	for e, err := range s.seen.All() {
		if err != nil {
			return err
		}
		if now-e.Value >= time.Minute.Milliseconds() {
			silent = append(silent, e.Key)
		}
	}
	for _, device := range silent {
		if _, _, err := s.seen.Delete(device); err != nil {
			return err
		}
		if err := s.ctx.Forward(&processors.Record[string, string]{Key: device, Value: "silent", Timestamp: now}); err != nil {
			return err
		}
	}
	return nil
}

func (s *silence) Close() error { return nil }

func alarms() *topology.Builder {
	b := topology.NewBuilder("alarms")
	b.Stream("readings", serde.String, serde.Float64).
		Process(newSilence, topology.Name("silence"), topology.Provide(lastSeen)).
		To("alarms")
	return b
}

func Example_processor() {
	plan, err := alarms().Build()
	if err != nil {
		log.Fatal(err)
	}
	d, err := topologytest.Open(plan)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	in := topologytest.Input(d, "readings", serde.String, serde.Float64)
	for _, m := range []struct {
		device string
		at     int64
	}{{"a", 0}, {"b", 30_000}, {"b", 61_000}} {
		if err := in.Pipe(m.device, 20.5, m.at); err != nil {
			log.Fatal(err)
		}
	}
	for _, m := range topologytest.Output(d, "alarms", serde.String, serde.String).Read() {
		fmt.Println(m.Key, m.Value, "at", m.Timestamp)
	}
	// Output: a silent at 61000
}
