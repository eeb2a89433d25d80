package topology_test

import (
	"fmt"
	"log"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// in is a record for the examples: text keys and values; "-" is a null value.
type in struct {
	topic, key, value string
	at                int64
}

// play builds b, feeds records into it in the test's process, and prints what comes out of a topic of text.
func play(b *topology.Builder, out string, records ...in) {
	plan, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := topologytest.Open(plan)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	for _, r := range records {
		topic := topologytest.Input(d, r.topic, serde.String, serde.String)
		if r.value == "-" {
			err = topic.PipeNull(r.key, r.at)
		} else {
			err = topic.Pipe(r.key, r.value, r.at)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	for _, m := range topologytest.Output(d, out, serde.String, serde.String).Read() {
		value := m.Value
		if m.ValueNull {
			value = "(deleted)"
		}
		fmt.Printf("%s: %s at %d\n", m.Key, value, m.Timestamp)
	}
}

// number writes a count as text.
func number(n int64) string { return fmt.Sprint(n) }

// window writes a key in a window as text.
func window(w topology.Window[string]) string {
	return fmt.Sprintf("%s@%d-%d", w.Key, w.Window.Start, w.Window.End)
}
