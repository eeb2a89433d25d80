package land

import (
	"fmt"
	"testing"

	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/internal/realregistry"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/readers"
)

// TestRealClusterAndReaders does everything on Apache Kafka and Apicurio Registry, and has the table read by readers that we did not
// write.
func TestRealClusterAndReaders(t *testing.T) {
	kafka := realkafka.Shared(t, 1)
	registry := realregistry.Start(t)
	w := newWorld(t, kafka.Addrs(), registry.URL())
	subjects(t, registry.URL())
	land(t, w)
	prove(t, w, testStream(t, "ods.test.every", everyType), 500)

	s := &w.cfg.Streams[0]
	r := readers.Open(t)
	app := fmt.Sprintf("ods-sink/%s/0", s.Topic)
	d := r.DeltaRS(t, w.cfg.TablePlace(s), readers.Txns(app), readers.Query(fmt.Sprintf(
		"SELECT count(*) AS n, count(DISTINCT id) AS ids, min(%s) AS run, count(%s) AS created FROM t", lake.RunID, lake.CreatedAt)))
	if got := fmt.Sprint(d.Rows); d.Count != 102 || got != "[map[created:102 ids:102 n:102 run:stream:ods-sink]]" {
		t.Errorf("delta-rs reads %d rows, %s", d.Count, got)
	}
	if d.Txn[app] != 53 { // of 54 records in partition 0
		t.Errorf("delta-rs reads progress %d of %s, want 53, the last offset that landed", d.Txn[app], app)
	}
	if d.Configuration["ods.topic"] != s.Topic {
		t.Errorf("delta-rs reads properties %v", d.Configuration)
	}
}
