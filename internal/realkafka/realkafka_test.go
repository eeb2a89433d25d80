package realkafka

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMain(m *testing.M) { Main(m) }

// A record written before a kill -9 of the only broker is there after its restart.
func TestKillAndRestart(t *testing.T) {
	c := Start(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*startLimit)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.DefaultProduceTopic("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "a"); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill9(1); err != nil {
		t.Fatal(err)
	}
	if answers(c.Addrs()[0]) {
		t.Fatal("the broker answers after Kill9")
	}
	if err := c.Restart(1); err != nil {
		t.Fatal(err)
	}
	ends, err := admin.ListEndOffsets(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := ends.Lookup("a", 0); o.Offset != 1 {
		t.Fatalf("end offset %d after the restart, want 1", o.Offset)
	}
}

func TestSharedIsOneCluster(t *testing.T) {
	if a, b := Shared(t, 1), Shared(t, 1); a != b {
		t.Fatal("two clusters for one number of nodes")
	}
}
