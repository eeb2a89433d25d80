package differential

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/topology/topologytest/golden"
)

var (
	folder   = flag.String("scenarios", "", "folder of scenarios; default: a few of the golden ones")
	parallel = flag.Int("at-once", 4, "scenarios that run at once")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if err := realkafka.StopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stop Kafka:", err)
		code = 1
	}
	os.Exit(code)
}

// few are scenarios of many kinds for every day.
var few = []string{
	"agg-table-groupby-concat", "cogroup-tumbling", "emit-close-sliding", "err-processing-dlq", "fkjoin-fan-out-order", "gjoin-two-joins", "real-dlq-and-quarantine",
	"session-merge-tombstone", "ssjoin-left-emit-after-close", "stjoin-versioned", "suppress-grace-late", "ttjoin-chained",
}

func scenarios(t *testing.T) (paths []string) {
	if *folder == "" {
		for _, name := range few {
			paths = append(paths, filepath.Join("..", "..", "topology", "topologytest", "testdata", "golden", name+".json"))
		}
		return paths
	}
	paths, err := filepath.Glob(filepath.Join(*folder, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios in %s: %v", *folder, err)
	}
	return paths
}

// TestEngineAgreesWithHarness runs the scenarios in the harness, on the embedded broker and on a real Kafka.
func TestEngineAgreesWithHarness(t *testing.T) {
	paths := scenarios(t)
	t.Run("embedded", func(t *testing.T) {
		b, err := embedded.StartBroker(embedded.BrokerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		compareAll(t, paths, b.Addrs())
	})
	t.Run("kafka", func(t *testing.T) { compareAll(t, paths, realkafka.Shared(t, 1).Addrs()) })
}

func compareAll(t *testing.T, paths []string, brokers []string) {
	var (
		g                        errgroup.Group
		mu                       sync.Mutex
		same, differ, unfit, out int
	)
	g.SetLimit(*parallel)
	for i, path := range paths {
		g.Go(func() error {
			n, err := compare(t, path, fmt.Sprintf("s%d-%d", time.Now().UnixNano(), i), brokers)
			mu.Lock()
			defer mu.Unlock()
			out += n
			switch {
			case errors.Is(err, golden.ErrUnsupported), errors.Is(err, errFailsInHarness):
				unfit++
			case err != nil:
				differ++
				t.Errorf("%s: %v", filepath.Base(path), err)
			default:
				same++
			}
			return nil
		})
	}
	g.Wait()
	t.Logf("%d scenarios agree, with %d output records; %d differ; %d can't be run outside the harness", same, out, differ, unfit)
	if same == 0 || *folder == "" && unfit > 0 {
		t.Error("scenarios were not compared")
	}
}

// errFailsInHarness says that the scenario provokes an error.
var errFailsInHarness = errors.New("it fails in the harness")

func compare(t *testing.T, path, prefix string, brokers []string) (records int, err error) {
	s, err := Load(path, prefix)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", golden.ErrUnsupported, err)
	}
	want, err := InHarness(s)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errFailsInHarness, err)
	}
	got, err := OnCluster(t.Context(), s, brokers, filepath.Join(t.TempDir(), prefix))
	if err != nil {
		return 0, err
	}
	if d := want.Difference(got); d != "" {
		return 0, errors.New(strings.ReplaceAll(d, prefix+"-", ""))
	}
	for _, recs := range want {
		records += len(recs)
	}
	return records, nil
}
