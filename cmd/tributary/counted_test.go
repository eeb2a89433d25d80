package main

import "testing"

func TestCounted(t *testing.T) {
	for n, want := range map[int64]string{0: "0 rows", 1: "1 row", 2: "2 rows"} {
		if got := counted(n, "row"); got != want {
			t.Errorf("counted(%d) is %q, want %q", n, got, want)
		}
	}
}
