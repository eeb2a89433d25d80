package land

import (
	"fmt"
	"testing"

	"github.com/tributary-io/tributary/lake"
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
