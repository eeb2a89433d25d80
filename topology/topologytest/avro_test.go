package topologytest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/topologytest"
)

type reading struct {
	Celsius float64 `avro:"celsius"`
}

const readingSchema = `{"type":"record","name":"Reading","fields":[{"name":"celsius","type":"double"}]}`

// Schemas of everything that the application writes are registered before the first record: of topics, stores and repartitions.
func TestSchemasAreRegisteredAtTheStart(t *testing.T) {
	registry := serde.NewMemoryRegistry()
	if _, err := registry.Register(context.Background(), "readings-value", readingSchema); err != nil {
		t.Fatal(err)
	}
	avro := serde.Avro[reading](registry, readingSchema)
	b := topology.NewBuilder("weather")
	b.Stream("readings", serde.String, avro).
		SelectKey(func(_ string, r reading) string { return "all" }).
		GroupByKey(topology.Name("all")).
		Reduce(func(_, r reading) reading { return r }, topology.Store("latest")).
		ToStream().
		To("latest-readings")
	plan, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan)
	for _, subject := range []string{"weather-all-repartition-value", "weather-latest-changelog-value", "latest-readings-value"} {
		if _, err := registry.Lookup(context.Background(), subject, readingSchema); err != nil {
			t.Errorf("before the first record: %v", err)
		}
	}
	topologytest.Input(d, "readings", serde.String, avro).Pipe("here", reading{21.5}, 1)
	out := topologytest.Output(d, "latest-readings", serde.String, avro).Read()
	if len(out) != 1 || out[0].Value.Celsius != 21.5 {
		t.Errorf("got %+v", out)
	}
}

func TestMistakesInSerdesAreFoundAtBuild(t *testing.T) {
	registry := serde.NewMemoryRegistry()
	b := topology.NewBuilder("weather")
	b.Stream("readings", serde.String, serde.Avro[reading](registry, `{"type":"record","name":"Reading","fields":[{"name":"celsius","type":"string"}]}`)).
		To("copy", topology.ValueSerde(serde.Avro[reading](registry, `{"type":`)))
	_, err := b.Build()
	if err == nil {
		t.Fatal("built with two schemas that can't be used")
	}
	for _, part := range []string{"celsius", "KSTREAM-SINK"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not speak of %s:\n%v", part, err)
		}
	}
}
