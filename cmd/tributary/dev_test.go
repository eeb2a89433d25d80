package main

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// startDev runs the command until the test's end, and gives what it printed first.
func startDev(t *testing.T, args ...string) (text string, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		root := newRoot()
		root.SetOut(write)
		root.SetArgs(append([]string{"dev", "--port", "0", "--registry-port", "0"}, args...))
		err := root.ExecuteContext(ctx)
		write.Close()
		ended <- err
	}()
	end = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	buf := make([]byte, 4096)
	for !strings.Contains(text, "Interrupt to end") {
		n, err := read.Read(buf)
		text += string(buf[:n])
		if err != nil {
			t.Fatalf("%v, after %q: %v", err, text, <-ended)
		}
	}
	go io.Copy(io.Discard, read)
	return text, end
}

func TestDev(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dev")
	text, end := startDev(t, "--dir", dir, "--topic", "plays:3", "--topic", "users")
	address, url := regexp.MustCompile(`broker +(\S+)`).FindStringSubmatch(text), regexp.MustCompile(`registry +(\S+)`).FindStringSubmatch(text)
	if address == nil || url == nil || !strings.Contains(text, "plays, 3 partitions") {
		t.Fatal(text)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(address[1]))
	if err != nil {
		t.Fatal(err)
	}
	topics, err := kadm.NewClient(client).ListTopics(t.Context())
	client.Close()
	if err != nil || len(topics["plays"].Partitions) != 3 || len(topics["users"].Partitions) != 1 {
		t.Errorf("topics %v: %v", topics, err)
	}
	reply, err := http.Get(url[1] + "/subjects")
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("the registry: %v, %v", reply, err)
	}
	reply.Body.Close()
	end()
	_, end = startDev(t, "--dir", dir, "--topic", "plays:3")
	end()
}

func TestDevRefuses(t *testing.T) {
	for _, topic := range []string{"plays:none", "plays:0", ":3"} {
		if _, err := output(t, "dev", "--port", "0", "--registry-port", "0", "--topic", topic); err == nil || !strings.Contains(err.Error(), "topic "+topic) {
			t.Errorf("%s: %v", topic, err)
		}
	}
}
