package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestACLsOfTheOrdersApplication(t *testing.T) {
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs([]string{"acls", "orders", "--principal", "User:shop", "--bootstrap-server", "b:9092"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--operation Read --topic 'ods.demo.order_events' --bootstrap-server b:9092\n",
		"--operation Write --topic 'ods.demo.order_events.dead_letters'",
		"--resource-pattern-type prefixed",
		"--operation Read --group '",
		"--operation Write --transactional-id '",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q:\n%s", want, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "# ") && !strings.HasPrefix(line, "kafka-acls.sh --add --allow-principal 'User:shop' ") {
			t.Errorf("line %q is neither a comment nor a command", line)
		}
	}
}
