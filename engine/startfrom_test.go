package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// A source that starts by duration begins at the first record that is young enough, and at the end where none is; a restart goes on from the
// committed offset, whatever the time is then. The source's own policy goes before the engine's.
func TestStartByDuration(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		now := time.Now()
		for name, setting := range map[string]struct {
			source []topology.Option
			engine []Option
			want   []string
		}{
			"source": {[]topology.Option{topology.Reset(topology.ByDuration(time.Hour))}, []Option{StartFrom(Fail)}, []string{"10m", "1m", "new"}},
			"engine": {nil, []Option{StartFrom(ByDuration(90 * time.Minute))}, []string{"10m", "1m", "new"}},
			"end":    {nil, []Option{StartFrom(ByDuration(0))}, []string{"new"}},
		} {
			a := newApp(t, c, "since-"+name)
			a.create("in", 1)
			a.create("out", 1)
			client, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs...))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			put := func(value string, at time.Time) {
				t.Helper()
				r := &kgo.Record{Topic: a.topic("in"), Value: []byte(value), Timestamp: at}
				if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			for _, ago := range []time.Duration{3 * time.Hour, 2 * time.Hour, 10 * time.Minute, time.Minute} {
				put(fmt.Sprint(ago)[:len(fmt.Sprint(ago))-len("0s")], now.Add(-ago))
			}
			b := topology.NewBuilder(a.name)
			b.Stream(a.topic("in"), serde.Bytes, serde.String, setting.source...).To(a.topic("out"))
			plan := build(b)
			out := a.read("out")
			i := a.start(plan, "i1", setting.engine...)
			i.await(t, "running", func(s Stats) bool { return s.State == Running })
			put("new", now)
			values := func() (all []string) {
				for _, r := range out.all() {
					all = append(all, string(r.Value))
				}
				return all
			}
			eventually(t, "the newest record", func() bool { return slices.Contains(values(), "new") })
			i.stop(t)
			i = a.start(plan, "i1", setting.engine...)
			i.await(t, "running again", func(s Stats) bool { return s.State == Running })
			put("last", now.Add(-5*time.Hour))
			eventually(t, "the last record", func() bool { return slices.Contains(values(), "last") })
			i.stop(t)
			if got, want := values(), append(setting.want, "last"); !slices.Equal(got, want) {
				t.Errorf("%s: read %v, want %v", name, got, want)
			}
		}
	})
}
