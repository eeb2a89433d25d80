package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/internal/embedded"
)

func TestReset(t *testing.T) {
	b, err := embedded.StartBroker(embedded.BrokerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	run := func(args ...string) (string, error) {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"reset", "orders", "--brokers", b.Addrs()[0]}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, c := range []struct{ lake, out, err string }{
		{"refuse", "", "--lake keep or --lake truncate"},
		{"keep", "keep table", ""},
		{"truncate", "Nothing was changed", ""},
		{"burn", "", "choose refuse, keep or truncate"},
	} {
		out, err := run("--lake", c.lake)
		if !strings.Contains(out, c.out) || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("--lake %s: %v\n%s", c.lake, err, out)
		}
	}
	if out, err := run("--lake", "keep"); err != nil || !strings.Contains(out, "Nothing was changed") {
		t.Errorf("dry run: %v\n%s", err, out)
	}
	if out, err := run("--lake", "keep", "--execute"); err != nil || !strings.Contains(out, "is reset") {
		t.Errorf("reset: %v\n%s", err, out)
	}
}
