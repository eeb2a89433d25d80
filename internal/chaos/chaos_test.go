package chaos

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
)

var (
	duration = flag.Duration("chaos.duration", 30*time.Second, "how long the weather lasts")
	seed     = flag.Uint64("chaos.seed", 0, "the seed; 0 takes one from the clock")
	pace     = flag.Int("chaos.pace", 200, "orders a second")
	keep     = flag.String("chaos.keep", "", "a folder for logs, state and tables, which are kept")
)

func TestMain(m *testing.M) {
	roles := Instance()
	roles[endsWith] = child.As(func(ctx context.Context, words string) error { <-ctx.Done(); return errors.New(words) })
	child.Main(roles)
	realkafka.Main(m)
}

// Instances and brokers are killed, stopped and restarted under load; then every record counts once in every output, store and table. The
// seed is printed; -args -chaos.seed and -chaos.duration repeat and prolong it (make chaos).
func TestEverythingCountsOnce(t *testing.T) {
	report := run(t, Config{})
	t.Log(report)
	if lost, doubled, wrong := report.Sums(); lost+doubled+wrong > 0 {
		t.Errorf("%d lost, %d doubled, %d wrong", lost, doubled, wrong)
	}
	for _, b := range report.Books {
		if b.Want == 0 {
			t.Errorf("%s: nothing to compare", b.Name)
		}
	}
	for _, err := range report.Failures {
		t.Error(err)
	}
}

func run(t *testing.T, cfg Config) *Report {
	t.Helper()
	cfg.Seed, cfg.Duration, cfg.Pace = *seed, *duration, *pace
	if cfg.Seed == 0 {
		cfg.Seed = uint64(time.Now().UnixNano())
	}
	cfg.Settle = 4 * time.Minute
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	t.Logf("seed %d", cfg.Seed)
	cfg.Dir = t.TempDir()
	if *keep != "" {
		cfg.Dir = *keep
	}
	kafka := realkafka.Start(t, brokerCount)
	ctx, cancel := context.WithTimeout(t.Context(), cfg.Duration+12*time.Minute)
	defer cancel()
	report, err := Run(ctx, cfg, kafka)
	if err != nil || len(report.Failures) > 0 || t.Failed() {
		showLogs(t, cfg.Dir)
	}
	if err != nil {
		t.Fatalf("seed %d: %v", cfg.Seed, err)
	}
	return report
}

// showLogs shows the ends of the instances' logs.
func showLogs(t *testing.T, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range logs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%s:\n%s", filepath.Base(name), text[max(0, len(text)-6000):])
	}
}
