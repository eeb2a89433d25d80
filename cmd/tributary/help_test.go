package main

import (
	"strings"
	"testing"
)

func TestMistakesSayWhatIsRight(t *testing.T) {
	for _, c := range []struct {
		args string
		want []string
	}{
		{"dlq lst", []string{`unknown command "lst"`, "did you mean list?"}},
		{"lake foo", []string{`unknown command "foo"`, "tributary lake --help"}},
		{"lake show", []string{"accepts 1 arg(s)", "usage: tributary lake show TABLE"}},
		{"dlq list letters --broker here:9092", []string{"unknown flag: --broker", "did you mean --brokers?"}},
		{"diff --old x", []string{"unknown flag: --old"}},
		{"dlq list letters --dir " + t.TempDir(), []string{"which cluster?", "--brokers"}},
	} {
		text, err := output(t, strings.Fields(c.args)...)
		if err == nil {
			t.Errorf("%s: no error:\n%s", c.args, text)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, lacks %q", c.args, err, want)
			}
		}
	}
	if text, err := output(t, "dlq"); err != nil || !strings.Contains(text, "replay") {
		t.Errorf("a group by itself shows its help: %v\n%s", err, text)
	}
}
