package engine

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/tributary-io/tributary/internal/promtool"
)

// ownMetrics are the names that an instance's registry describes, with their help, whether or not there is anything to measure yet.
func ownMetrics(t *testing.T) map[string]string {
	t.Helper()
	e, err := New(counts("metrics"), Brokers("nowhere:1"), StateDir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		e.reg.Describe(descs)
		close(descs)
	}()
	described := regexp.MustCompile(`fqName: "(tributary_[^"]*)", help: "([^"]*)"`)
	names := map[string]string{}
	for d := range descs {
		if m := described.FindStringSubmatch(d.String()); m != nil {
			names[m[1]] = m[2]
		}
	}
	return names
}

// exposed is a metric with one value as it is served, for linters: they look only at what has a value.
func exposed(name, help, kind string) string {
	head := fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	if kind == "histogram" {
		return head + fmt.Sprintf("%[1]s_bucket{le=\"1\"} 1\n%[1]s_bucket{le=\"+Inf\"} 1\n%[1]s_sum 1\n%[1]s_count 1\n", name)
	}
	return head + name + " 1\n"
}

// catalogued reads docs/operations/metrics.md: the kind of each metric by its name.
func catalogued(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/operations/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(tributary_[a-z_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(text), -1) {
		kinds[m[1]] = m[2]
	}
	return kinds
}

func TestMetricsCatalogueIsComplete(t *testing.T) {
	have, written := ownMetrics(t), catalogued(t)
	if len(have) < 20 {
		t.Fatalf("the registry describes %d metrics only", len(have))
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if written[name] == "" {
			t.Errorf("%s isn't in docs/operations/metrics.md", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if have[name] == "" {
			t.Errorf("docs/operations/metrics.md has %s, which doesn't exist", name)
		}
	}
}

// Names, units, types and help follow Prometheus' conventions, for all metrics, also those of which a fresh instance has no value.
func TestMetricsFollowConventions(t *testing.T) {
	kinds := catalogued(t)
	var exposition bytes.Buffer
	have := ownMetrics(t)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		exposition.WriteString(exposed(name, have[name], kinds[name]))
	}
	problems, err := promlint.New(bytes.NewReader(exposition.Bytes())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	t.Run("promtool", func(t *testing.T) { // the program beside the library that it is made of
		if said := promtool.Check(t, &exposition, "check", "metrics"); strings.TrimSpace(said) != "" {
			t.Errorf("promtool check metrics: %s", said)
		}
	})
}

// What an instance really serves has the types that the catalogue says.
func TestMetricsHaveTheirTypes(t *testing.T) {
	e, err := New(counts("metrics"), Brokers("nowhere:1"), StateDir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	families, err := e.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds, seen := catalogued(t), 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "tributary_") {
			continue
		}
		seen++
		if got, want := strings.ToLower(fmt.Sprint(f.GetType())), kinds[f.GetName()]; got != want {
			t.Errorf("%s is a %s, the catalogue has %s", f.GetName(), got, want)
		}
	}
	if seen < 5 {
		t.Errorf("a fresh instance serves %d metrics only", seen)
	}
}
