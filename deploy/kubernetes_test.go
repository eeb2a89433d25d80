package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/tributary-io/tributary/land"
)

// manifest is as much of Kubernetes' objects as the tests look at.
type manifest struct {
	Kind string
	Data map[string]string
	Spec struct {
		ServiceName string `yaml:"serviceName"`
		Template    struct {
			Spec struct {
				TerminationGracePeriodSeconds int               `yaml:"terminationGracePeriodSeconds"`
				SecurityContext               map[string]any    `yaml:"securityContext"`
				Containers                    []kubernetesImage `yaml:"containers"`
			}
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

type kubernetesImage struct {
	Args         []string
	Env          []struct{ Name, Value string }
	VolumeMounts []volumeMount `yaml:"volumeMounts"`
}

type volumeMount struct {
	Name      string
	MountPath string `yaml:"mountPath"`
}

// manifests reads the objects of a file by their kinds.
func manifests(t *testing.T, name string) map[string]manifest {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]manifest{}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var m manifest
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[m.Kind] = m
	}
}

// The configuration in the manifest is one that `tributary land` takes, at the place where it looks.
func TestKubernetesConfigurationLoads(t *testing.T) {
	all := manifests(t, "kubernetes/land.yaml")
	dir := t.TempDir()
	for name, text := range all["ConfigMap"].Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := land.Load(filepath.Join(dir, "streams.yaml"))
	if err != nil || len(c.Streams) != 1 || len(c.Brokers) != 1 {
		t.Fatalf("%+v, %v", c, err)
	}
	sink := all["StatefulSet"].Spec.Template.Spec.Containers[0]
	if i := slices.Index(sink.Args, "--config"); i < 0 || !slices.ContainsFunc(sink.VolumeMounts, func(m volumeMount) bool {
		return m.Name == "config" && filepath.Join(m.MountPath, "streams.yaml") == sink.Args[i+1]
	}) {
		t.Errorf("args %q, mounts %v", sink.Args, sink.VolumeMounts)
	}
}

// State and identity are on a volume that a pod finds again; the image's user may write to it; and a pod is given the time to end in order.
func TestKubernetesKeepsState(t *testing.T) {
	set := manifests(t, "kubernetes/land.yaml")["StatefulSet"].Spec
	pod := set.Template.Spec
	state := ""
	for _, e := range pod.Containers[0].Env {
		if e.Name == "ODS_SINK_STATE" {
			state = e.Value
		}
	}
	volume := ""
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.MountPath == state {
			volume = m.Name
		}
	}
	if volume == "" || len(set.VolumeClaimTemplates) != 1 || set.VolumeClaimTemplates[0].Metadata.Name != volume {
		t.Errorf("state %q is on volume %q, claims %v", state, volume, set.VolumeClaimTemplates)
	}
	dockerfile, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if user := pod.SecurityContext["runAsUser"]; user != pod.SecurityContext["fsGroup"] || user != 65532 || !strings.Contains(string(dockerfile), "USER 65532:") {
		t.Errorf("security context %v", pod.SecurityContext)
	}
	if pod.TerminationGracePeriodSeconds < 45 { // engine.CloseTimeout is 30 s
		t.Errorf("%d s to end", pod.TerminationGracePeriodSeconds)
	}
}
