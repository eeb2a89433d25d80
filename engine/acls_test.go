package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

func TestRequiredACLs(t *testing.T) {
	own := ACL{Resource: TopicResource, Name: "app-", Prefixed: true, Operations: []string{"Create", "DescribeConfigs", "Read", "Write"}}
	group := ACL{Resource: GroupResource, Name: "app", Operations: []string{"Read"}}
	txn := ACL{Resource: TransactionalIDResource, Name: "app-", Prefixed: true, Operations: []string{"Write"}}
	topic := func(name string, ops ...string) ACL { return ACL{Resource: TopicResource, Name: name, Operations: ops} }
	for name, c := range map[string]struct {
		declare func(*topology.Builder)
		options ACLOptions
		want    []ACL
	}{
		"state and a repartition": {
			declare: func(b *topology.Builder) {
				b.Stream("in", serde.String, serde.String).
					GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).Count(topology.Store("counts")).ToStream().To("out")
			},
			options: ACLOptions{Writes: []string{"dead"}},
			want:    []ACL{topic("dead", "Write"), topic("in", "Read"), topic("out", "Write"), own, topic("app-by-value-repartition", "Delete"), group, txn},
		},
		"a changelog with a name of its own": {
			declare: func(b *topology.Builder) {
				b.Stream("in", serde.String, serde.String).GroupByKey().Count(topology.Store("counts"), topology.ChangelogTopic("old-table"))
			},
			want: []ACL{topic("in", "Read"), own, topic("old-table", own.Operations...), group, txn},
		},
		"windows": {
			declare: func(b *topology.Builder) {
				g := b.Stream("in", serde.String, serde.String).GroupByKey().Windowed(topology.Tumbling(time.Hour))
				g.Count(topology.Store("counts"))
				g.Count(topology.Store("kept"), topology.ChangelogConfig("retention.ms", "1000")) // by the brokers
			},
			want: []ACL{topic("in", "Read"), own, topic("app-counts-changelog", "Delete"), group, txn},
		},
		"a global table": {
			declare: func(b *topology.Builder) {
				names := b.GlobalTable("names", serde.String, serde.String)
				b.Stream("in", serde.String, serde.String).
					JoinGlobal(names, func(k, _ string) string { return k }, func(v, name string) string { return v + name }).To("out")
			},
			want: []ACL{topic("in", "Read"), topic("names", "Read"), topic("out", "Write"), group,
				{Resource: GroupResource, Name: "app.dead-letters", Operations: []string{"Read"}}, txn},
		},
		"transactional ids by another scheme": {
			declare: func(b *topology.Builder) { b.Stream("in", serde.String, serde.String).To("out") },
			options: ACLOptions{TransactionalIDPrefix: "team."},
			want: []ACL{topic("in", "Read"), topic("out", "Write"), group,
				{Resource: TransactionalIDResource, Name: "team.app-", Prefixed: true, Operations: []string{"Write"}}},
		},
		"one topic both ways, without transactions": {
			declare: func(b *topology.Builder) { b.Stream("loop", serde.String, serde.String).To("loop") },
			options: ACLOptions{Guarantee: AtLeastOnce},
			want:    []ACL{topic("loop", "Read", "Write"), group},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := topology.NewBuilder("app")
			c.declare(b)
			p, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			got := RequiredACLs(p, c.options)
			for i := range got {
				if got[i].Why == "" {
					t.Errorf("%v doesn't say why", got[i])
				}
				got[i].Why = ""
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// A refusal names the right that is missing, not one on a topic whose name is only a part of its own, or that lacks another operation.
func TestRefusalsNameTheirRight(t *testing.T) {
	b := topology.NewBuilder("app")
	b.Stream("in", serde.String, serde.String).GroupByKey().Count(topology.Store("counts")).ToStream().To("out")
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"reading":                          {fmt.Errorf("in-3 can't be read: %w", kerr.TopicAuthorizationFailed), "Read on topic in"},
		"writing":                          {&txn.ProduceError{Topic: "out", Err: kerr.TopicAuthorizationFailed}, "Write on topic out"},
		"a changelog":                      {&txn.ProduceError{Topic: "app-counts-changelog", Err: kerr.TopicAuthorizationFailed}, "Create, DescribeConfigs, Read, Write on topic names that begin with app-"},
		"dead letters beside a source":     {&txn.ProduceError{Topic: "in.dlq", Err: kerr.TopicAuthorizationFailed}, "Write on topic in.dlq"},
		"dead letters, looked for first":   {fmt.Errorf("task 0_0: %w", &topics.DescribeError{Topic: "in.dlq", Err: kerr.TopicAuthorizationFailed}), "Write on topic in.dlq"},
		"a sink, looked for first":         {&topics.DescribeError{Topic: "out", Err: kerr.TopicAuthorizationFailed}, "Write on topic out"},
		"a source isn't for writing":       {&txn.ProduceError{Topic: "in", Err: kerr.TopicAuthorizationFailed}, "Write on topic in"},
		"a name within another":            {fmt.Errorf("describe main and out: %w", kerr.TopicAuthorizationFailed), "Write on topic out"},
		"a group":                          {kerr.GroupAuthorizationFailed, "Read on group app"},
		"a transactional id":               {kerr.TransactionalIDAuthorizationFailed, "Write on transactional-id names that begin with app-"},
		"a wrong password needs no rights": {kerr.SaslAuthenticationFailed, ""},
	} {
		var refused *AccessError
		if !errors.As(explainAccess(p.Internal(), ACLOptions{}, c.err), &refused) {
			t.Errorf("%s: not explained", name)
			continue
		}
		var got []string
		for _, a := range refused.Needs {
			got = append(got, a.String())
		}
		if d := cmp.Diff(c.want, strings.Join(got, "; ")); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

func TestFixedBeginning(t *testing.T) {
	for pattern, want := range map[string]string{
		`orders\..*`: "orders.", `^orders-[0-9]+`: "orders-", `orders|payments`: "", `.*`: "", `orders`: "orders", `(`: "",
	} {
		if got := fixedBeginning(pattern); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

func TestACLCommand(t *testing.T) {
	a := ACL{Resource: TopicResource, Name: "it's-", Prefixed: true, Operations: []string{"Read", "Write"}}
	want := `kafka-acls.sh --add --allow-principal 'User:o' --operation Read --operation Write --topic 'it'\''s-' --resource-pattern-type prefixed`
	if got := a.Command("User:o"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Clients introduce themselves by the application and their role, behind the prefix.
func TestClientIDPrefix(t *testing.T) {
	for prefix, want := range map[string]string{"": "named-control", "team.": "team.named-control"} {
		e, err := New(counts("named"), Brokers("nowhere:1"), StateDir(t.TempDir()), ClientIDPrefix(prefix))
		if err != nil {
			t.Fatal(err)
		}
		client, err := kgo.NewClient(e.clientOptions("control")...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if got := client.OptValue(kgo.ClientID); got != want {
			t.Errorf("with prefix %q the client is %v, want %s", prefix, got, want)
		}
	}
}
