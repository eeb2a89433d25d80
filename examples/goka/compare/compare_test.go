package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/tributary-io/tributary/engine"
	loyalty "github.com/tributary-io/tributary/examples/goka"
	"github.com/tributary-io/tributary/examples/goka/after"
	"github.com/tributary-io/tributary/examples/goka/before"
	"github.com/tributary-io/tributary/gokacompat"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) {
	child.Main(map[string]child.Role{"before": child.As(beInstanceOf(starterBefore)), "after": child.As(beInstanceOf(starterAfter))})
	// What goka's own clients leave: the one of its topic manager is never closed.
	realkafka.Main(m, goleak.IgnoreAnyFunction("github.com/IBM/sarama.(*client).backgroundMetadataUpdater"),
		goleak.IgnoreAnyFunction("github.com/IBM/sarama.(*Broker).responseReceiver"), goleak.IgnoreAnyFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
}

// instance is what a child is told.
type instance struct {
	Brokers []string
	Group   goka.Group
	Dir     string
}

func starterBefore(c *cluster) starter { return c.startBefore }
func starterAfter(c *cluster) starter  { return c.startAfter }

func beInstanceOf(start func(*cluster) starter) func(context.Context, instance) error {
	return func(ctx context.Context, i instance) error {
		c, err := connect(i.Brokers)
		if err != nil {
			return err
		}
		defer c.client.Close()
		_, stop, err := start(c)(context.Background(), i.Group, i.Dir)
		if err != nil {
			return err
		}
		<-ctx.Done()
		return stop()
	}
}

// onBoth runs a test on the embedded broker and on real Kafka.
func onBoth(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Run("embedded", func(t *testing.T) {
		b, err := embedded.StartBroker(embedded.BrokerConfig{Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		test(t, reach(t, b.Addrs()))
	})
	t.Run("kafka", func(t *testing.T) { test(t, reach(t, realkafka.Start(t, 1).Addrs())) })
}

func reach(t *testing.T, addrs []string) *cluster {
	t.Helper()
	c, err := connect(addrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.client.Close)
	return c
}

// The command's result, with goka and Tributary on the same input and broker.
func TestBothHaveTheSameResults(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		var out bytes.Buffer
		if err := run(ctx, &out, strings.Join(c.addrs, ","), loyalty.NewWorld(1, 100, 2000)); err != nil {
			t.Fatal(err)
		}
		const want = `                  accounts    points  purchases  rewards  statements
goka                   100    200722       2000     1956         100
tributary              100    200722       2000     1956         100
as it should be        100    200722       2000     1956         100
both tables, all rewards and all statements are the same
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		readme, err := os.ReadFile("../README.md")
		must(t, err)
		if !strings.Contains(string(readme), want) {
			t.Error("README.md shows another result")
		}
	})
}

// One group is run by goka, then by Tributary, then by goka again with the state that it had, then by goka without any, whose storage is
// Tributary's.
func TestStateGoesOverAndBack(t *testing.T) {
	onBoth(t, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		const group goka.Group = "loyalty"
		w := loyalty.NewWorld(2, 50, 1200)
		must(t, c.prepare(ctx, w))
		must(t, c.create(ctx, "delete", string(loyalty.Rewards(group))))
		dirs := t.TempDir()
		stages := []struct {
			name    string
			storage storage.Builder
			ours    bool
		}{
			{name: "goka"},
			{name: "tributary", ours: true},
			{name: "goka"},
			{name: "pebble", storage: gokacompat.Storage(filepath.Join(dirs, "pebble"))},
			{name: "tributary", ours: true},
		}
		const sealed = 1 // the stage of ours that goka follows
		bought := 0
		for i, stage := range stages {
			next := len(w.Purchases) * (i + 1) / len(stages)
			must(t, c.buy(ctx, w.Purchases[bought:next]))
			bought = next
			var stop func() error
			if stage.ours {
				app, e, err := after.New(after.Config{Brokers: c.addrs, Group: group, StateDir: filepath.Join(dirs, stage.name),
					Options: []engine.Option{engine.Logger(quiet)}})
				must(t, err)
				must(t, app.Check(ctx, kgo.SeedBrokers(c.addrs...)))
				stop = background(ctx, e.Run)
			} else {
				p, err := before.New(before.Config{Brokers: c.addrs, Group: group, StateDir: filepath.Join(dirs, stage.name), Storage: stage.storage})
				must(t, err)
				stop = background(ctx, p.Run)
				if i == sealed+1 { // it was handed back in a way that goka can't take
					mustWait(t, p)
					must(t, gokacompat.SealTable(ctx, string(goka.GroupTable(group)), kgo.SeedBrokers(c.addrs...)))
					must(t, p.WaitForReadyContext(ctx))
				}
			}
			if err := c.through(ctx, group); err != nil {
				t.Fatalf("stage %d, %s: %v", i, stage.name, err)
			}
			if i == 0 {
				mustRefuse(ctx, t, c, group)
			}
			must(t, stop())
			so := w
			so.Purchases = w.Purchases[:bought]
			got, err := c.outcome(ctx, group)
			must(t, err)
			if diff := cmp.Diff(expected(so, false), got); diff != "" {
				t.Fatalf("stage %d, %s (-want +got):\n%s", i, stage.name, diff)
			}
		}
	})
}

// mustRefuse checks that an application doesn't take over from a goka processor that runs.
func mustRefuse(ctx context.Context, t *testing.T, c *cluster, group goka.Group) {
	t.Helper()
	app, _, err := after.New(after.Config{Brokers: c.addrs, Group: group, StateDir: t.TempDir()})
	must(t, err)
	var found *gokacompat.CheckError
	if err := app.Check(ctx, kgo.SeedBrokers(c.addrs...)); !errors.As(err, &found) || !strings.Contains(err.Error(), "stop them first") {
		t.Errorf("Check beside goka: %v", err)
	}
}

// mustWait checks that goka waits for the end of a table that ends with a transaction's marker.
func mustWait(t *testing.T, p *goka.Processor) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := p.WaitForReadyContext(ctx); err == nil {
		t.Error("goka takes a table as it is: SealTable, and what is written about it, isn't needed any more")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Both are killed in the middle, more than once. Tributary's results are those of the input; goka, which promises that each purchase counts at
// least once, may have more.
func TestKilledInTheMiddle(t *testing.T) {
	c := reach(t, realkafka.Start(t, 1).Addrs())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	w := loyalty.NewWorld(3, 200, 40_000)
	must(t, c.prepare(ctx, w))
	results := map[string]outcome{}
	for _, role := range []string{"before", "after"} {
		group := goka.Group("killed-" + role)
		must(t, c.create(ctx, "delete", string(loyalty.Rewards(group))))
	}
	must(t, c.buy(ctx, w.Purchases[:1000]))
	children := map[string]*child.Process{}
	for _, role := range []string{"before", "after"} {
		dir := t.TempDir()
		p, err := child.Start(role, instance{c.addrs, goka.Group("killed-" + role), dir}, filepath.Join(dir, "log"))
		must(t, err)
		children[role] = p
		t.Cleanup(func() {
			p.Kill()
			if t.Failed() {
				fmt.Fprintf(os.Stderr, "%s:\n%s\n", role, last(p.Log(), 4000))
			}
		})
	}
	bought, rounds := 1000, 4
	for round := range rounds {
		for role := range children { // each is in the middle when it is killed: some is processed, and more is there
			must(t, c.some(ctx, goka.Group("killed-"+role), bought))
		}
		next := len(w.Purchases) * (round + 1) / rounds
		must(t, c.buy(ctx, w.Purchases[bought:next]))
		bought = next
		if round == rounds-1 {
			break
		}
		for role, p := range children {
			must(t, c.some(ctx, goka.Group("killed-"+role), bought-len(w.Purchases)/rounds/2))
			p.Kill()
			must(t, p.Restart())
		}
	}
	for role := range children {
		group := goka.Group("killed-" + role)
		must(t, c.through(ctx, group))
		got, err := c.outcome(ctx, group)
		must(t, err)
		results[role] = got
	}
	want := expected(w, false)
	if diff := cmp.Diff(want, results["after"]); diff != "" {
		t.Errorf("tributary (-want +got):\n%s", diff)
	}
	_, points, purchases, rewards, _ := want.totals()
	_, gokaPoints, gokaPurchases, gokaRewards, _ := results["before"].totals()
	t.Logf("goka: %d purchases of %d, %d points of %d, %d rewards of %d", gokaPurchases, purchases, gokaPoints, points, gokaRewards, rewards)
	if gokaPurchases < purchases {
		t.Errorf("goka lost purchases: the test is wrong")
	}
}

// some waits until a group has processed so many purchases.
func (c *cluster) some(ctx context.Context, group goka.Group, n int) error {
	for {
		committed, err := c.admin.FetchOffsets(ctx, string(group))
		if err == nil {
			var sum int64
			for _, o := range committed[string(loyalty.Purchases)] {
				sum += max(o.At, 0)
			}
			if sum >= int64(n) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("group %s has not processed %d purchases: %w", group, n, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func last(text []byte, n int) []byte { return text[max(0, len(text)-n):] }
