package processors

import (
	"strconv"
	"testing"

	"github.com/tributary-io/tributary/serde"
)

// What is known of a join's rows doesn't grow with the number of rows whose foreign key fails, or whose answers never come.
func TestDueAnswersAreLimited(t *testing.T) {
	d := &dueAnswers[string]{keys: serde.String, rows: map[string]rowVersion{}, unasked: map[string]bool{}}
	for i := range 3 * dueLimit {
		key := strconv.Itoa(i)
		if err := d.left("l" + key); err != nil {
			t.Fatal(err)
		}
		if err := d.asked(&Subscription[string]{Key: key, Instruction: SubscribeAndAnswer}); err != nil {
			t.Fatal(err)
		}
		if len(d.unasked) > dueLimit || len(d.rows) > dueLimit {
			t.Fatalf("%d rows are left out, %d are due, after %d of each", len(d.unasked), len(d.rows), i+1)
		}
		for _, newest := range []string{key, "l" + key} {
			if keeps, err := d.keeps(newest); err != nil || !keeps {
				t.Fatalf("%s isn't known: %v", newest, err)
			}
		}
	}
	if err := d.left("l0"); err != nil { // they were full, and this one makes the first of the next
		t.Fatal(err)
	}
	for range 2 * dueLimit { // a row that is known needs no room
		if err := d.left("l0"); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i < dueLimit; i++ {
		if err := d.left("l" + strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.left("l0"); err != nil || len(d.unasked) != dueLimit {
		t.Fatalf("%d rows are known after one of them changed again, want all %d: %v", len(d.unasked), dueLimit, err)
	}
}
