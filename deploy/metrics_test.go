package deploy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/tributary-io/tributary/internal/promtool"
)

const (
	alertsFile    = "prometheus/alerts.yml"
	dashboardFile = "grafana/dashboards/tributary.json"
)

// catalogue reads which metrics there are. That it is complete is tested with the engine.
func catalogue(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../docs/operations/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(tributary_[a-z_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(text), -1) {
		names[m[1]] = true
		if m[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[m[1]+suffix] = true
			}
		}
	}
	return names
}

// checkNames looks at the metrics that queries use.
func checkNames(t *testing.T, file string, queries []string) {
	t.Helper()
	known, used := catalogue(t), 0
	for _, q := range queries {
		for _, name := range regexp.MustCompile(`\btributary_[a-z_]+`).FindAllString(q, -1) {
			used++
			if !known[name] {
				t.Errorf("%s uses %s, which docs/operations/metrics.md doesn't have: %s", file, name, q)
			}
		}
	}
	if used == 0 {
		t.Errorf("%s uses no metrics", file)
	}
}

func TestAlertsUseMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var queries []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			queries = append(queries, r.Expr)
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("alert %q lacks a name, a severity or a summary", r.Alert)
			}
		}
	}
	checkNames(t, alertsFile, queries)
}

func TestPromtoolAcceptsTheConfiguration(t *testing.T) {
	promtool.Check(t, nil, "check", "rules", alertsFile)
	promtool.Check(t, nil, "check", "config", "prometheus/prometheus.yml")
	promtool.Check(t, nil, "test", "rules", "prometheus/alerts_test.yml")
}

// Whoever is alarmed finds the same on the dashboard.
func TestDashboardShowsWhatAlerts(t *testing.T) {
	dashboard, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(dashboard), "tributary_heartbeat_age_seconds") {
		t.Error("the dashboard doesn't show tributary_heartbeat_age_seconds, of which there is an alert")
	}
}

func TestDashboardUsesMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID         int
			Title      string
			Datasource struct{ UID string }
			Targets    []struct{ Expr string }
		}
		Templating struct{ List []struct{ Query string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	sources, err := os.ReadFile("grafana/provisioning/datasources/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	var queries []string
	ids := map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q has no title, no query, or another's id", p.ID, p.Title)
		}
		ids[p.ID] = true
		if !strings.Contains(string(sources), "uid: "+p.Datasource.UID+"\n") {
			t.Errorf("panel %q asks data source %q, which isn't provisioned", p.Title, p.Datasource.UID)
		}
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	for _, v := range dashboard.Templating.List {
		queries = append(queries, v.Query)
	}
	checkNames(t, dashboardFile, queries)
}
