package demo

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	app "github.com/tributary-io/tributary/examples/orders"
	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/internal/realregistry"
	"github.com/tributary-io/tributary/lake/readers"
)

func TestMain(m *testing.M) {
	child.Main(map[string]child.Role{instanceRole: child.As(runInstance)})
	realkafka.Main(m)
}

func testConfig(t *testing.T) Config {
	t.Helper()
	date, err := shop.ParseDate("2026-06-01")
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Dir: t.TempDir(), Spec: shop.Spec{Date: date, Orders: 3000, Seed: 11}, Out: &bytes.Buffer{},
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
	}
}

func mustRun(t *testing.T, cfg Config) *Summary {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, err := Run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range s.Books {
		t.Errorf("the books do not close: %s", b)
	}
	return s
}

func TestDayOnTheEmbeddedBroker(t *testing.T) {
	cfg := testConfig(t)
	cfg.HTTP = "127.0.0.1:0"
	first := mustRun(t, cfg)
	if said := cfg.Out.(*bytes.Buffer).String(); strings.Count(said, "console: http://127.0.0.1:") != 1 || !strings.Contains(said, "/console/\n") {
		t.Errorf("it doesn't say where the console is: %s", said)
	}
	if first.Emitted == 0 || first.Duplicates == 0 || first.Late == 0 || first.Quarantined == 0 {
		t.Errorf("the day shows nothing of what it is made for: %+v", first)
	}
	var text strings.Builder
	first.Print(&text)
	if !strings.Contains(text.String(), "The books are closed") {
		t.Errorf("the summary:\n%s", &text)
	}

	again := mustRun(t, cfg)
	if again.Emitted != 0 || again.Processed != 0 {
		t.Errorf("a second run emitted %d and processed %d records", again.Emitted, again.Processed)
	}
	for i, table := range again.Tables {
		if table.Version != first.Tables[i].Version {
			t.Errorf("a second run wrote %s: version %d, then %d", table.Place, first.Tables[i].Version, table.Version)
		}
	}

	cfg.Spec = cfg.Spec.Next()
	mustRun(t, cfg)
	compareWithReaders(t, cfg)

	cfg.Spec.Date = cfg.Spec.Date.AddDate(0, 0, -1)
	if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "2026-06-02") {
		t.Errorf("a day before the last one was not refused by name: %v", err)
	}
}

func TestInterruptedAgainAndAgain(t *testing.T) {
	cfg := testConfig(t)
	random := rand.New(rand.NewPCG(1, 2))
	interrupted := 0
	for range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(200+random.IntN(1500))*time.Millisecond)
		_, err := Run(ctx, cfg)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			interrupted++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if interrupted == 0 {
		t.Error("no run was interrupted: this machine is too quick for the test's times")
	}
	s := mustRun(t, cfg)
	t.Logf("%d of 6 runs were interrupted; %d rows in %s", interrupted, s.Tables[0].Rows, app.RawTable)
}

// The embedded cluster and a real one give the same tables.
func TestDayOnRealKafka(t *testing.T) {
	kafka := realkafka.Shared(t, 1)
	registry := realregistry.Start(t)
	cfg := testConfig(t)
	cfg.Brokers, cfg.Registry = kafka.Addrs(), registry.URL()
	s := mustRun(t, cfg)
	if s.Quarantined == 0 || s.Late == 0 {
		t.Errorf("%+v", s)
	}
	compareWithReaders(t, cfg)
	again := mustRun(t, cfg)
	if again.Emitted != 0 || again.Processed != 0 {
		t.Errorf("a second run emitted %d and processed %d records", again.Emitted, again.Processed)
	}
}

// compareWithReaders compares the tables, as readers that were not written here see them, with the model.
func compareWithReaders(t *testing.T, cfg Config) {
	t.Helper()
	days, err := openDiary(cfg.Dir, cfg.Spec)
	if err != nil {
		t.Fatal(err)
	}
	m, err := days.model()
	if err != nil {
		t.Fatal(err)
	}
	r := readers.Open(t)
	raw, enriched := cfg.lake()+"/"+app.RawTable, cfg.lake()+"/"+app.EnrichedTable
	const totals = `select count(*) as n, cast(sum(amount) * 100 as bigint) as cents, count(*) - count(coupon) as nulls,
		epoch_ms(min(event_time)) as first, epoch_ms(max(event_time)) as last from t`
	for table, want := range map[string]shop.Totals{raw: m.Raw, enriched: m.Enriched} {
		got := r.DuckDB(t, table, totals).Rows[0]
		if got.Int(t, "n") != want.Rows || got.Int(t, "cents") != want.Cents || got.Int(t, "nulls") != want.NullCoupons ||
			got.Int(t, "first") != want.MinTime || got.Int(t, "last") != want.MaxTime {
			t.Errorf("%s: DuckDB says %v, the model %+v", table, got, want)
		}
		if n := r.DeltaRS(t, table).Count; n != want.Rows {
			t.Errorf("%s: delta-rs counts %d rows, the model %d", table, n, want.Rows)
		}
	}
	if n := r.DuckDB(t, enriched, "select count(distinct event_id) as n from t").Rows[0].Int(t, "n"); n != m.Enriched.Rows {
		t.Errorf("%d distinct events in %s, want %d", n, enriched, m.Enriched.Rows)
	}
	table := r.DeltaRS(t, raw)
	if c := table.Field("order_id", "comment"); !strings.Contains(str(c), "It is the record's key") {
		t.Errorf("the comment of order_id is %v", c)
	}
	if tag := table.Field("order_id", "ods.key"); tag != true {
		t.Errorf("the tag ods.key of order_id is %v", tag)
	}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}
