package state

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestMemoryTableIsAMap compares the table with a map through growth, shrinking and deletions in the middle of runs of slots.
func TestMemoryTableIsAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, keys := range []int{3, 12, 200, 5000} {
		table, model := newMemoryTable(), map[string]string{}
		for step := range 20_000 {
			key, val := fmt.Sprint(rnd.IntN(keys)), fmt.Sprint(step)
			growing := step%8000 < 4000
			switch found := table.find([]byte(key)); {
			case rnd.IntN(10) < 4 == growing:
				table.delete([]byte(key))
				delete(model, key)
			case found == nil:
				table.insert([]byte(key), []byte(val))
				model[key] = val
			default:
				found.row = joinRow([]byte(key), []byte(val))
				model[key] = val
			}
			if table.n != len(model) {
				t.Fatalf("%d keys, step %d: %d rows, want %d", keys, step, table.n, len(model))
			}
		}
		got := map[string]string{}
		for i := range table.slots {
			if s := &table.slots[i]; s.row != nil {
				got[string(s.key())] = string(s.value())
			}
		}
		if !maps.Equal(got, model) {
			t.Fatalf("%d keys: the table holds other rows than the map", keys)
		}
		for k, v := range model {
			if s := table.find([]byte(k)); s == nil || string(s.value()) != v {
				t.Fatalf("%d keys: key %s isn't found with its value", keys, k)
			}
		}
	}
}
