package deploy_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"gopkg.in/yaml.v3"
)

var (
	brokers = []string{"kafka-1", "kafka-2", "kafka-3"}
	engines = []string{"engine-1", "engine-2", "engine-3"}
)

// project loads compose.yaml as `docker compose` does: unknown keys, wrong types and references to nothing are errors.
func project(t *testing.T) *types.Project {
	t.Helper()
	opts, err := cli.NewProjectOptions([]string{"../compose.yaml"}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := opts.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeHasTheWholeCluster(t *testing.T) {
	p := project(t)
	var names []string
	for name := range p.Services {
		names = append(names, name)
	}
	slices.Sort(names)
	want := slices.Sorted(slices.Values(slices.Concat(brokers, engines, []string{"registry", "s3", "prometheus", "grafana", "emit"})))
	if !slices.Equal(names, want) {
		t.Errorf("services %v, want %v", names, want)
	}
}

func TestComposeImagesArePinned(t *testing.T) {
	tag := regexp.MustCompile(`^[a-z0-9./-]+:v?[0-9]+\.[0-9]+\.[0-9]+$`)
	for name, s := range project(t).Services {
		if s.Image == "tributary:local" {
			continue // built here
		}
		if !tag.MatchString(s.Image) {
			t.Errorf("%s: image %q isn't pinned to a release", name, s.Image)
		}
	}
}

func TestComposeListensOnThisMachineOnly(t *testing.T) {
	taken := map[string]string{}
	for name, s := range project(t).Services {
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to the network", name, port.Published)
			}
			if other, ok := taken[port.Published]; ok {
				t.Errorf("%s and %s both publish port %s", name, other, port.Published)
			}
			taken[port.Published] = name
		}
	}
}

func TestComposeBrokersFormOneCluster(t *testing.T) {
	p := project(t)
	env := func(service, key string) string {
		v := p.Services[service].Environment[key]
		if v == nil {
			t.Errorf("%s: %s isn't set", service, key)
			return ""
		}
		return *v
	}
	ids := map[string]bool{}
	for _, b := range brokers {
		id := env(b, "KAFKA_NODE_ID")
		ids[id] = true
		if voters := env(b, "KAFKA_CONTROLLER_QUORUM_VOTERS"); !strings.Contains(voters, id+"@"+b+":9093") || voters != env(brokers[0], "KAFKA_CONTROLLER_QUORUM_VOTERS") {
			t.Errorf("%s: voters %s", b, voters)
		}
		if env(b, "CLUSTER_ID") != env(brokers[0], "CLUSTER_ID") || len(env(b, "CLUSTER_ID")) != 22 {
			t.Errorf("%s: cluster id %s", b, env(b, "CLUSTER_ID"))
		}
		if !strings.Contains(env(b, "KAFKA_ADVERTISED_LISTENERS"), "INTERNAL://"+b+":9092") {
			t.Errorf("%s: advertised %s", b, env(b, "KAFKA_ADVERTISED_LISTENERS"))
		}
		for key, want := range map[string]string{
			"KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false", "KAFKA_MIN_INSYNC_REPLICAS": "2", "KAFKA_DEFAULT_REPLICATION_FACTOR": "3",
			"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "3", "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "2",
			"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "3",
		} {
			if got := env(b, key); got != want {
				t.Errorf("%s: %s is %s, want %s", b, key, got, want)
			}
		}
		if ownVolume(p.Services[b], "/var/lib/kafka/data") != b {
			t.Errorf("%s: its data isn't in a volume of its own", b)
		}
	}
	if len(ids) != len(brokers) {
		t.Errorf("node ids %v", ids)
	}
}

// ownVolume returns the volume that is mounted at a path.
func ownVolume(s types.ServiceConfig, target string) string {
	for _, v := range s.Volumes {
		if v.Target == target && v.Type == types.VolumeTypeVolume {
			return v.Source
		}
	}
	return ""
}

func TestComposeEnginesShareTheLakeAndNothingElse(t *testing.T) {
	p := project(t)
	states := map[string]bool{}
	for _, e := range engines {
		s := p.Services[e]
		if !slices.Equal(s.Command, p.Services[engines[0]].Command) {
			t.Errorf("%s runs %v, unlike %s", e, s.Command, engines[0])
		}
		if state := ownVolume(s, "/var/lib/tributary"); state == "" || states[state] {
			t.Errorf("%s: its state isn't in a volume of its own", e)
		} else {
			states[state] = true
		}
		if ownVolume(s, "/data/lake") != "lake" {
			t.Errorf("%s: it doesn't write to the lake's volume", e)
		}
		for _, dep := range append([]string{"registry"}, brokers...) {
			if s.DependsOn[dep].Condition != types.ServiceConditionHealthy {
				t.Errorf("%s doesn't wait for %s", e, dep)
			}
		}
		if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || s.StopGracePeriod == nil {
			t.Errorf("%s: it may write to its image, keeps capabilities, or has no time to drain", e)
		}
		flags := strings.Join(s.Command, " ")
		for _, b := range brokers {
			if !strings.Contains(flags, b+":9092") {
				t.Errorf("%s isn't told of %s", e, b)
			}
		}
	}
	if ownVolume(p.Services["s3"], "/data/lake") != "lake" {
		t.Error("the S3 gateway doesn't serve the lake's volume")
	}
}

func TestPrometheusScrapesEveryEngine(t *testing.T) {
	text, err := os.ReadFile("prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Scrape []struct {
			Static []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, job := range config.Scrape {
		for _, static := range job.Static {
			targets = append(targets, static.Targets...)
		}
	}
	var want []string
	for name, s := range project(t).Services {
		if !strings.HasPrefix(name, "engine-") {
			continue
		}
		for _, port := range s.Ports {
			want = append(want, name+":"+fmt.Sprint(port.Target))
		}
	}
	slices.Sort(targets)
	slices.Sort(want)
	if !slices.Equal(targets, want) {
		t.Errorf("scraped %v, want %v", targets, want)
	}
}

// The Go version is written down in four places; they must agree.
func TestGoVersionIsTheSameEverywhere(t *testing.T) {
	find := func(path, pattern string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s names no Go version", path)
		}
		return string(m[1])
	}
	want := find("../Makefile", `GOTOOLCHAIN := go([0-9.]+)`)
	if got := find("../.ci/run", `GOTOOLCHAIN=go([0-9.]+)`); got != want {
		t.Errorf(".ci/run has Go %s, the Makefile %s", got, want)
	}
	if got := find("../Dockerfile", `FROM golang:([0-9.]+)-`); got != want {
		t.Errorf("the Dockerfile has Go %s, the Makefile %s", got, want)
	}
	if got := find("../go.mod", `(?m)^go ([0-9.]+)`); got != want && !strings.HasPrefix(want, got+".") {
		t.Errorf("go.mod has Go %s, the Makefile %s", got, want)
	}
}

func TestImageRunsWithoutRights(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nUSER 65532:65532\n", "distroless/static", "CGO_ENABLED=0", "--chown=65532:65532"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
}
