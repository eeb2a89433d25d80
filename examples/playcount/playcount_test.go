package playcount

import (
	"testing"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology/topologytest"
)

func TestCountsEachPlayOnce(t *testing.T) {
	plan, err := Topology(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := topologytest.New(t, plan)
	plays := topologytest.Input(d, "plays", serde.String, serde.JSON[Play]())

	plays.Pipe("anna", Play{EventID: "e1", Title: "Dune"}, 1_000)
	plays.Pipe("anna", Play{EventID: "e1", Title: "Dune"}, 1_000) // a producer's retry
	plays.Pipe("ben", Play{EventID: "e2", Title: "Dune"}, 59_999)
	plays.Pipe("ben", Play{EventID: "e3", Title: "Dune"}, 70_000) // the first minute is over, and so is its grace

	rows := topologytest.LakeRows[Minute](d, "plays-per-minute")
	if len(rows) != 1 || rows[0].Value.Plays != 2 {
		t.Errorf("landed %+v, want one minute with two plays", rows)
	}
}
