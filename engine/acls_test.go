package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
