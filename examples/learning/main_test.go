package learning

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// serving is what a child of the tests is told.
type serving struct {
	Brokers   []string
	Dir, Lake string
	Products  []string
}

func (s serving) setting() Setting {
	return Setting{Brokers: s.Brokers, Dir: s.Dir, Batches: 200 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))}
}

func serveProducts(ctx context.Context, s serving) error {
	all, err := Products(s.Lake)
	if err != nil {
		return err
	}
	picked, err := Pick(all, s.Products...)
	if err != nil {
		return err
	}
	return s.setting().Run(ctx, picked)
}

func TestMain(m *testing.M) {
	child.Main(map[string]child.Role{"serve": child.As(serveProducts)})
	realkafka.Main(m)
}

// quiet is a setting whose log is read by nobody.
func quiet(t *testing.T, brokers []string) Setting {
	return Setting{Brokers: brokers, Dir: t.TempDir(), Batches: 200 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within four minutes: %s", what)
		}
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func keyText(k *string) string {
	if k == nil {
		return "(null)"
	}
	return fmt.Sprintf("%q", *k)
}
