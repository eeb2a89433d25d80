package txn

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
)

// A transaction after one that was committed doesn't count as committed where brokers don't tell how it ended: what they left open of it would be
// committed, work that is taken back and done again.
func TestFateThatBrokersDontTell(t *testing.T) {
	for _, ownEpoch := range []bool{false, true} {
		f := newFixture(t, brokertest.Embedded(t), "untold")
		untold := f.c.Embedded.Cluster().Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeTransactions}, Err: kerr.TransactionalIDAuthorizationFailed, Count: -1})
		defer untold.Remove()
		p := f.producer()
		f.produce(p, "committed")
		f.commit(p, 1)
		if !p.fates.last {
			t.Fatal("a commit isn't remembered")
		}
		p.implicit = ownEpoch
		f.produce(p, "taken back")
		if err := p.client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		last := p.fates.commits
		if err := p.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p.fates.last {
			t.Error("what wasn't committed counts as committed")
		}
		if (len(last) > 0) != ownEpoch {
			t.Errorf("commits %v are remembered; transactions have epochs of their own: %v", last, ownEpoch)
		}
		if untold.Hits() == 0 {
			t.Error("nobody asked")
		}
	}
}
