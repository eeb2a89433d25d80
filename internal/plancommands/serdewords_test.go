package plancommands

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

type parcel struct {
	To string `json:"to" avro:"to"`
}

func table[V any](b *topology.Builder, name string, v serde.Serde[V]) {
	b.Table(name, serde.String, v, topology.Store(name))
}

// A plan names each serde by its Go type; explain says how a program names it.
func TestExplainNamesSerdesAsProgramsDo(t *testing.T) {
	registry := serde.NewMemoryRegistry()
	const schema = `{"type": "record", "name": "Parcel", "fields": [{"name": "to", "type": "string"}]}`
	b := topology.NewBuilder("post")
	table(b, "a", serde.Bytes)
	table(b, "b", serde.Int16)
	table(b, "c", serde.Int32)
	table(b, "d", serde.Int64)
	table(b, "e", serde.Int)
	table(b, "f", serde.Float32)
	table(b, "g", serde.Float64)
	table(b, "h", serde.Bool)
	table[uuid.UUID](b, "i", serde.UUID)
	table(b, "j", serde.Time)
	table(b, "k", serde.JSON[parcel]())
	table(b, "l", serde.Avro[parcel](registry, schema))
	table(b, "m", serde.AvroBytes(registry, schema))
	table(b, "n", serde.Ptr(serde.Int64))
	table(b, "o", serde.Ptr(serde.JSON[parcel]()))
	b.Stream("p", serde.String, serde.String).GroupByKey().Windowed(topology.Tumbling(time.Second)).Count(topology.Store("p")).EmitFinal(topology.Name("q"))
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	explain(&out, plansafety.Snapshot(plan))
	const here = "github.com/tributary-io/tributary/internal/plancommands.parcel]"
	for _, want := range []string{
		"keys: serde.String\n", "serde.Bytes\n", "serde.Int16\n", "serde.Int32\n", "serde.Int64\n", "serde.Int\n", "serde.Float32\n", "serde.Float64\n", "serde.Bool\n",
		"serde.UUID\n", "serde.Time\n", "serde.JSON[" + here, "serde.Avro[" + here, "serde.AvroBytes\n", "serde.Ptr[int64]\n", "serde.Ptr[" + here,
		"processors.TimeWindowedSerde[string]\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
	if own := plansafety.SerdeWords("orders.fixedSerde of orders.Order"); own != "orders.fixedSerde of orders.Order" {
		t.Errorf("a serde of somebody else's becomes %q", own)
	}
}
