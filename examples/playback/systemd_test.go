package playback_test

import (
	"archive/tar"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUnitsAreAccepted lets systemd look at the units, with programs in place of those that they start.
func TestUnitsAreAccepted(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("SKIPPED: systemd-analyze isn't there, so nobody checks the systemd units: %v", err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	units, err := filepath.Glob("systemd/*.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("units are %v, %v", units, err)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		checked := filepath.Join(dir, filepath.Base(unit))
		text = regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAll(text, []byte("ExecStart="+program))
		if err := os.WriteFile(checked, text, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(analyze, "verify", "--man=no", checked)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}

// TestSetUpScript runs the script on an archive of its own below a folder, twice.
func TestSetUpScript(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "kafka.tgz")
	file, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(file)
	tape := tar.NewWriter(zip)
	if err := tape.WriteHeader(&tar.Header{Name: "kafka_2.13-4.3.1/bin/kafka-server-start.sh", Mode: 0o755, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	tape.Close()
	zip.Close()
	file.Close()
	config := filepath.Join(dir, "root/etc/kafka/server.properties")
	for run := range 2 {
		cmd := exec.Command("sh", "systemd/setup-kafka.sh", archive)
		cmd.Env = append(os.Environ(), "PREFIX="+dir+"/root", "KAFKA_HOST=kafka.example")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "kafka.example:9092") {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(config)
		if err != nil || !strings.Contains(string(text), "advertised.listeners=PLAINTEXT://kafka.example:9092") {
			t.Errorf("%v\n%s", err, text)
		}
		if run == 1 && !strings.HasSuffix(string(text), "# mine\n") {
			t.Error("the second run writes the configuration anew")
		}
		if err := os.WriteFile(config, append(text, "# mine\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir + "/root/opt/kafka/bin/kafka-server-start.sh"); err != nil {
		t.Error(err)
	}
}
