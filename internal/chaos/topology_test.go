package chaos

import "testing"

func TestTheApplicationIsSound(t *testing.T) {
	p, err := plan(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Internal().Subtopologies); n < 4 {
		t.Errorf("%d sub-topologies: nothing is repartitioned", n)
	}
}
