package engine

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Input that was written in transactions leaves no lag once it is processed, for the engine and for the group's tools: what is committed lies
// behind markers and aborted records, also where nothing but these came. And where nothing is to be written, no transaction is opened.
func TestTransactionalInputLeavesNoLag(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "nolag")
		a.create("in", 2)
		a.create("out", 1)
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.String).Filter(func(_, v string) bool { return strings.HasPrefix(v, "write") }).To(a.topic("out"))
		w := &changelogWriter{t, a, a.topic("in"), c.Client(t, kgo.TransactionalID("nolag-writer"), kgo.RecordPartitioner(kgo.ManualPartitioner()))}
		record := func(v string) *kgo.Record { return &kgo.Record{Key: []byte("k"), Value: []byte(v)} }
		w.write(0, kgo.TryCommit, record("leave out"), record("this, too"))
		w.write(0, kgo.TryAbort, record("write, but aborted"))
		w.write(1, kgo.TryAbort, record("write, but aborted"))
		admin := kadm.NewClient(c.Client(t))
		i := a.start(build(b), "i1")
		noLag := func(what string) {
			t.Helper()
			eventually(t, what, func() bool {
				committed, err := admin.FetchOffsets(t.Context(), a.name)
				if err != nil {
					return false // nobody has committed yet
				}
				for p := range int32(2) {
					if o, ok := committed.Lookup(a.topic("in"), p); !ok || o.At != w.end(p) {
						return false
					}
				}
				return i.Stats().Lag == 0
			})
		}
		noLag("nothing waits of what is left out")
		id := i.identity.TransactionalID(a.name)
		if found, err := admin.DescribeTransactions(t.Context(), id); err != nil || found[id].State != "Empty" {
			t.Errorf("the producer's state is %q, %v; want Empty: there was nothing to write", found[id].State, err)
		}
		w.write(1, kgo.TryCommit, record("write this"))
		noLag("nothing waits of what is written")
		if n := i.Stats().Produced; n != 1 {
			t.Errorf("%d records written, want one", n)
		}
		if found, err := admin.DescribeTransactions(t.Context(), id); c.Embedded == nil && (err != nil || found[id].State != "CompleteCommit") { // the embedded broker calls both empty
			t.Errorf("the producer's state is %q, %v", found[id].State, err)
		}
		w.write(1, kgo.TryAbort, record("write, but aborted"))
		noLag("nothing waits of what is aborted")
		i.stop(t)
	})
}
