package input

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"
)

func TestEventsAreTheSameForTheSameSeed(t *testing.T) {
	sum := func(seed uint64) string {
		h := sha256.New()
		for g, i := NewGenerator(seed, 1000, 5000), 0; i < 5000; i++ {
			e := g.Next()
			fmt.Fprintln(h, OrderKey(e.Order), string(e.Value), e.Timestamp)
		}
		return fmt.Sprintf("%x", h.Sum(nil)[:8])
	}
	if a, b := sum(1), sum(1); a != b {
		t.Errorf("two runs gave %s and %s", a, b)
	}
	if a, b := sum(1), sum(2); a == b {
		t.Error("seeds make no difference")
	}
}

// What the benchmarks' figures rest on: one in ten is a repeat, byte for byte, and the others are new.
func TestOneInTenIsARepeat(t *testing.T) {
	const n = 50_000
	g := NewGenerator(1, n, n)
	values, orders := map[string]bool{}, map[int]bool{}
	last, bytes := int64(0), 0
	for range n {
		e := g.Next()
		var fields struct {
			EventID string `json:"event_id"`
			OrderID string `json:"order_id"`
			Amount  float64
		}
		if err := json.Unmarshal(e.Value, &fields); err != nil || len(fields.EventID) != 36 || fields.OrderID != OrderKey(e.Order) || fields.Amount < 1 {
			t.Fatalf("%s: %v", e.Value, err)
		}
		if e.Timestamp < last {
			t.Fatal("event time goes back")
		}
		last = e.Timestamp
		values[string(e.Value)], orders[e.Order] = true, true
		bytes += len(e.Value)
	}
	if share := float64(n-len(values)) / n; share < 0.09 || share > 0.11 {
		t.Errorf("%.3f are repeats", share)
	}
	if len(orders) != len(values) {
		t.Errorf("%d orders in %d events, they should be as many", len(orders), len(values))
	}
	if mean := bytes / n; mean < 115 || mean > 130 {
		t.Errorf("values have %d bytes", mean)
	}
}
