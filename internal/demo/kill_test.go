package demo

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	app "github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/lake"
)

// instanceRole is what the test binary is as a child: an instance of the application.
const instanceRole = "instance"

type instanceArgs struct {
	State, Lake string
	Brokers     []string
	Registry    string
}

func runInstance(ctx context.Context, args instanceArgs) error {
	return Serve(ctx, Config{Dir: args.State, Lake: args.Lake, Brokers: args.Brokers, Registry: args.Registry, Log: slog.Default()})
}

func startInstance(t *testing.T, dir, lakeDir string, c *Cluster, registry string) *child.Process {
	t.Helper()
	p, err := child.Start(instanceRole, instanceArgs{dir, lakeDir, c.Brokers, registry}, dir+".log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			text := p.Log()
			t.Logf("%s:\n%s", filepath.Base(dir), text[max(0, len(text)-4000):])
		}
	})
	return p
}

// Three instances share the tasks; one is killed in the middle and started again, and another one is stopped for good. Every event counts
// once in the tables, though the day is one of long ago: see docs/semantics/windows.md.
func TestKilledInTheMiddle(t *testing.T) {
	kafka := realkafka.Start(t, 1)
	cfg := testConfig(t)
	cfg.Spec.Orders, cfg.Spec.Seed = 8000, 23
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	c, err := Connect(ctx, cfg.Dir, kafka.Addrs(), "", cfg.Log)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Prepare(ctx); err != nil {
		t.Fatal(err)
	}
	registry := c.registry.URL()
	var all []*child.Process
	for n := range 3 {
		all = append(all, startInstance(t, filepath.Join(t.TempDir(), fmt.Sprint("instance-", n)), cfg.lake(), c, registry))
	}

	if err := Emit(ctx, c.client, cfg.Spec, c.schemaIDs, &Emission{}); err != nil {
		t.Fatal(err)
	}
	untilCommitted(ctx, t, c, 0.2)
	all[0].Kill()
	untilCommitted(ctx, t, c, 0.4)
	if err := all[0].Restart(); err != nil {
		t.Fatal(err)
	}
	untilCommitted(ctx, t, c, 0.6)
	all[1].Kill()
	plan, err := cfg.Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := untilNoLag(ctx, c, app.ApplicationID, inputTopics(plan)); err != nil {
		t.Fatal(err)
	}

	m := shop.NewModel(cfg.Spec)
	m.AddDay(cfg.Spec.Date)
	raw, enriched := cfg.lake()+"/"+app.RawTable, cfg.lake()+"/"+app.EnrichedTable
	if n, distinct := countRows(ctx, t, raw, lake.SourcePartition, lake.SourceOffset); n != m.Raw.Rows || distinct != n {
		t.Errorf("%d rows in %s, %d distinct, want %d", n, raw, distinct, m.Raw.Rows)
	}
	if n, distinct := countRows(ctx, t, enriched, "event_id"); n != m.Enriched.Rows || distinct != n {
		t.Errorf("%d rows in %s, %d distinct, want %d", n, enriched, distinct, m.Enriched.Rows)
	}
	checkWindows(ctx, t, cfg.lake()+"/"+app.RevenueTable, m)
	if dead, err := c.Count(ctx, app.DeadLetters()); err != nil || dead != m.Quarantined {
		t.Errorf("%d dead letters (%v), want %d", dead, err, m.Quarantined)
	}
}

// untilCommitted waits until the group has committed that share of the events.
func untilCommitted(ctx context.Context, t *testing.T, c *Cluster, share float64) {
	t.Helper()
	for {
		ends, err := c.EndOffsets(ctx, app.EventTopic)
		if err != nil {
			t.Fatal(err)
		}
		var total int64
		for _, end := range ends[app.EventTopic] {
			total += end
		}
		lag, err := c.Lag(ctx, app.ApplicationID, app.EventTopic)
		if err != nil && !unsettled(err) {
			t.Fatal(err)
		}
		if err == nil && total > 0 && float64(total-lag) >= share*float64(total) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// untilNoLag waits until nothing is left to be committed for a while.
func untilNoLag(ctx context.Context, c *Cluster, group string, topics []string) error {
	for quiet := 0; quiet < 10; quiet++ {
		lag, err := c.Lag(ctx, group, topics...)
		if err != nil && !unsettled(err) {
			return fmt.Errorf("wait for the end: %w", err)
		}
		if lag > 0 || err != nil {
			quiet = 0
		}
		time.Sleep(300 * time.Millisecond)
	}
	return nil
}

func countRows(ctx context.Context, t *testing.T, place string, key ...string) (n, distinct int64) {
	t.Helper()
	seen := map[string]bool{}
	for row, err := range lake.ReadRows(ctx, place) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		id := ""
		for _, k := range key {
			id += fmt.Sprint(row[k], "/")
		}
		seen[id] = true
	}
	return n, int64(len(seen))
}

// checkWindows checks what holds in whatever order the partitions were read: each window landed once, and with no more than came for it.
func checkWindows(ctx context.Context, t *testing.T, place string, m *shop.Model) {
	t.Helper()
	type window struct {
		region string
		start  int64
	}
	most := map[window]int64{}
	for _, w := range m.Windows.All() {
		most[window{w.Region, w.Start}] = w.Count + w.LateCount
	}
	landed := map[window]bool{}
	for row, err := range lake.ReadRows(ctx, place) {
		if err != nil {
			t.Fatal(err)
		}
		w := window{row["region"].(string), row["window_start"].(time.Time).UnixMilli()}
		if landed[w] {
			t.Errorf("window %v landed twice", w)
		}
		landed[w] = true
		if n := row["events"].(int64); n < 1 || n > most[w] {
			t.Errorf("window %v has %d events, at most %d came", w, n, most[w])
		}
	}
	if len(landed) == 0 {
		t.Error("no window landed")
	}
}
