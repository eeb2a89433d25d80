package land

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// TestTopologyOnTheHarness shows the rows and the dead letters of production without a broker and a registry.
func TestTopologyOnTheHarness(t *testing.T) {
	s := testStream(t, "ods.shop.orders", small)
	cfg := Config{Lake: t.TempDir(), Streams: []Stream{s}}
	p, err := Topology(cfg, lake.SchemaSourceFunc(func(id int) (lake.WriterSchema, error) {
		if id != 7 {
			return lake.WriterSchema{}, fmt.Errorf("%w: %d", lake.ErrUnknownSchema, id)
		}
		return lake.WriterSchema{Schema: small}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, p, topologytest.ErrorHandlers(cfg.Handlers()))
	for _, v := range [][]byte{smallValue(7, 1), []byte("bad"), smallValue(8, 1), nil, smallValue(7, 2)} {
		d.Pipe(topologytest.Record{Topic: s.Topic, Key: []byte("k"), Value: v})
	}
	if rows := topologytest.LakeRows[[]byte](d, "land-"+s.Topic); len(rows) != 3 { // two, and the null that the table skips
		t.Errorf("%d rows reach the table, want 3", len(rows))
	}
	if letters := d.Read(s.DeadLetters); len(letters) != 2 || string(letters[0].Value) != "bad" {
		t.Errorf("dead letters %v", letters)
	}
}

// TestUpkeepIsConfigured lands a row with compaction and vacuum configured: the table's log shows that both were begun.
func TestUpkeepIsConfigured(t *testing.T) {
	s := testStream(t, "ods.shop.orders", small)
	known := lake.SchemaSourceFunc(func(int) (lake.WriterSchema, error) { return lake.WriterSchema{Schema: small}, nil })
	cfg := Config{Lake: t.TempDir(), Streams: []Stream{s}, Optimize: time.Hour, Vacuum: 24 * time.Hour}
	table := cfg.table(&s, harnessed{known}, 0)
	if err := table.Bind(reflect.TypeFor[[]byte](), reflect.TypeFor[[]byte]()); err != nil {
		t.Fatal(err)
	}
	w, err := table.Open(t.Context(), sink.Env{ApplicationID: "a", Name: "n"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b, value := w.NewBatch(), smallValue(7, 1)
	defer b.Release()
	if err := b.Append(nil, &value, &sink.Meta{}); err != nil {
		t.Fatal(err)
	}
	part := sink.Partition{Topic: s.Topic}
	if _, err := w.Commit(t.Context(), b, []sink.Move{{Partition: part, From: sink.NoOffset, To: 1}}); err != nil {
		t.Fatal(err)
	}
	store, err := object.NewLocal(cfg.TablePlace(&s))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(4 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		log, err := delta.Open(t.Context(), store, delta.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, optimizes := log.Head().Txn("tributary/upkeep/optimize")
		_, vacuums := log.Head().Txn("tributary/upkeep/vacuum")
		if optimizes && vacuums {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("in four minutes: compaction begun: %v, vacuum begun: %v", optimizes, vacuums)
		}
	}
	cfg.Optimize = time.Second
	if _, err := Topology(cfg, known); err == nil || !strings.Contains(err.Error(), "at least each 1m0s") {
		t.Errorf("each second: %v", err)
	}
}
