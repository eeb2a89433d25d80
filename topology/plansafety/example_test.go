package plansafety_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// savePlan writes what is to be compared of a plan to a file.
func savePlan(plan *topology.Plan, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := plansafety.Snapshot(plan).Write(f); err != nil {
		return err
	}
	return f.Close()
}

func ExampleSnapshot() {
	b := topology.NewBuilder("counts")
	b.Stream("words", serde.String, serde.String).GroupByKey().Count(topology.Store("by-word"))
	plan, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "plan")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "released.json")
	if err := savePlan(plan, path); err != nil {
		log.Fatal(err)
	}
	old, err := plansafety.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("loses something:", plansafety.Compare(old, plansafety.Snapshot(plan)).Loses())
	// Output: loses something: false
}
