package devbroker_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/devbroker"
)

// What was acknowledged is there after a restart in the same directory.
func TestKeepsWhatItAcknowledged(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for restart := range 2 {
		b, err := devbroker.Start(devbroker.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := devbroker.Start(devbroker.Config{Dir: dir}); err == nil {
			t.Error("two brokers use one directory")
		}
		client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.DefaultProduceTopic("t"))
		if err != nil {
			t.Fatal(err)
		}
		admin := kadm.NewClient(client)
		if restart == 0 {
			if _, err := admin.CreateTopic(ctx, 1, 1, nil, "t"); err != nil {
				t.Fatal(err)
			}
			if err := client.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		ends, err := admin.ListEndOffsets(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := ends.Lookup("t", 0); !ok || o.Offset != 1 {
			t.Errorf("start %d: the topic ends at %d, want 1", restart, o.Offset)
		}
		client.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A registry keeps what was registered, and refuses what its level forbids.
func TestRegistryKeepsSchemas(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []int{200, 200, 409} {
		r, err := devbroker.StartRegistry(devbroker.RegistryConfig{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		text := `{"schema":"\"long\""}`
		if want == 409 {
			text = `{"schema":"\"string\""}`
		}
		resp, err := http.Post(r.URL()+"/subjects/t-value/versions", "application/json", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want || want == 200 && !strings.Contains(string(body), `"id":1`) {
			t.Errorf("%d %s, want %d", resp.StatusCode, body, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
