package ods_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/tributary-io/tributary/land"
)

// composed loads compose.yaml as `docker compose` does: unknown keys, wrong types and references to nothing are errors.
func composed(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	opts, err := cli.NewProjectOptions([]string{"compose.yaml"}, cli.WithProfiles(profiles))
	if err != nil {
		t.Fatal(err)
	}
	p, err := opts.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeIsOffByDefault(t *testing.T) {
	if p := composed(t); len(p.Services) != 0 {
		t.Errorf("without a profile %d services would start", len(p.Services))
	}
	var names []string
	for name := range composed(t, "streaming").Services {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"kafka", "postgres", "registry", "registry-database", "sink-order-events"}; !slices.Equal(names, want) {
		t.Errorf("the profile has %v, want %v", names, want)
	}
}

func TestComposeStaysWithinItsMemory(t *testing.T) {
	p := composed(t, "streaming")
	for name, want := range map[string]int64{"kafka": 1 << 30, "registry": 768 << 20, "sink-order-events": 512 << 20, "postgres": 256 << 20, "registry-database": 128 << 20} {
		if got := int64(p.Services[name].MemLimit); got != want {
			t.Errorf("%s may take %d bytes, want %d", name, got, want)
		}
	}
	if heap := *p.Services["kafka"].Environment["KAFKA_HEAP_OPTS"]; !strings.Contains(heap, "-Xmx512m") {
		t.Errorf("Kafka's heap is %q", heap)
	}
}

func TestComposeIsPrivate(t *testing.T) {
	p := composed(t, "*")
	if n := p.Networks["streaming"]; !bool(n.Internal) {
		t.Error("the network is open")
	}
	for name, s := range p.Services {
		if len(s.Ports) > 0 || len(s.Networks) != 1 || s.NetworkMode != "" {
			t.Errorf("%s: ports %v, networks %v", name, s.Ports, s.Networks)
		} else if _, ok := s.Networks["streaming"]; !ok {
			t.Errorf("%s is in the networks %v", name, s.Networks)
		}
	}
}

// The registry starts once its database is there, and sinks start once the registry answers.
func TestComposeStartsInOrder(t *testing.T) {
	p := composed(t, "streaming")
	for _, c := range []struct{ who, whom, condition string }{
		{"registry-database", "postgres", types.ServiceConditionHealthy},
		{"registry", "registry-database", types.ServiceConditionCompletedSuccessfully},
		{"sink-order-events", "registry", types.ServiceConditionHealthy},
		{"sink-order-events", "kafka", types.ServiceConditionHealthy},
	} {
		if got := p.Services[c.who].DependsOn[c.whom].Condition; got != c.condition {
			t.Errorf("%s waits for %s by %q, want %q", c.who, c.whom, got, c.condition)
		}
	}
	if s := p.Services["registry-database"]; s.Restart != "no" || !slices.Contains(s.Entrypoint, "/init/registry-database.sh") {
		t.Errorf("the database is made by %v, restart %q", s.Entrypoint, s.Restart)
	}
	database, registry := p.Services["registry-database"].Environment, p.Services["registry"].Environment
	if *database["REGISTRY_PASSWORD"] != *registry["APICURIO_DATASOURCE_PASSWORD"] || *database["PGPASSWORD"] != *p.Services["postgres"].Environment["POSTGRES_PASSWORD"] {
		t.Error("the passwords don't agree")
	}
}

// Each sink lands one declared topic, in a group and with a state of its own, and takes its settings as the program reads them.
func TestComposeSinks(t *testing.T) {
	streams, err := land.LoadFolder("streams")
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{}
	for name, s := range composed(t, "streaming").Services {
		if !strings.HasPrefix(name, "sink-") {
			continue
		}
		i := slices.IndexFunc(streams, func(d land.Stream) bool { return len(s.Command) > 1 && d.Topic == s.Command[1] })
		if s.Command[0] != "land" || i < 0 {
			t.Fatalf("%s runs %v", name, s.Command)
		}
		cfg := land.Config{Streams: streams[i : i+1]}
		read := map[string]bool{}
		err := cfg.Environment(func(variable string) string {
			read[variable] = true
			if v := s.Environment[variable]; v != nil {
				return *v
			}
			return ""
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for variable := range s.Environment {
			if !read[variable] {
				t.Errorf("%s: the program doesn't read %s", name, variable)
			}
		}
		if groups[cfg.Group] || cfg.Group == land.DefaultGroup {
			t.Errorf("%s shares the group %s", name, cfg.Group)
		}
		groups[cfg.Group] = true
		want := land.BatchLimits{Every: land.DefaultEvery, Rows: land.DefaultRows, Bytes: land.DefaultBytes, Budget: land.DefaultBudget}
		if cfg.Batch != want || cfg.Notice != land.DefaultNotice || cfg.Observe != time.Minute || cfg.Brokers[0] != "kafka:9092" || !strings.Contains(cfg.Registry, "registry:8080") {
			t.Errorf("%s: %+v", name, cfg)
		}
		mounted := map[string]string{}
		for _, v := range s.Volumes {
			mounted[v.Target] = v.Type
		}
		if mounted[cfg.Lake] != types.VolumeTypeVolume || mounted[cfg.State] != types.VolumeTypeVolume || mounted["/declarations"] != types.VolumeTypeBind || !s.ReadOnly {
			t.Errorf("%s: volumes %v", name, mounted)
		}
	}
	if len(groups) == 0 {
		t.Error("there is no sink")
	}
}
