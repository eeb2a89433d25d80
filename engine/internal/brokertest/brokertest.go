package brokertest

import (
	"context"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// Cluster is the cluster that a test runs against.
type Cluster struct {
	Addrs    []string
	Embedded *embedded.Broker // nil on real Kafka
	// Dial is used in place of a dialer, for a network in memory.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Each runs f as a subtest against each kind of cluster. Topics and groups on a shared cluster need names that are
// new. The package's TestMain must call realkafka.Main or StopShared.
func Each(t *testing.T, f func(t *testing.T, c *Cluster)) {
	t.Run("embedded", func(t *testing.T) {
		f(t, Embedded(t))
	})
	t.Run("kafka", func(t *testing.T) {
		f(t, &Cluster{Addrs: realkafka.Shared(t, 1).Addrs()})
	})
}

// Embedded starts an embedded broker for one test.
func Embedded(t testing.TB) *Cluster {
	t.Helper()
	b, err := embedded.StartBroker(embedded.BrokerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return &Cluster{Addrs: b.Addrs(), Embedded: b}
}

// Old starts a broker that speaks the protocol of an older Kafka.
func Old(t testing.TB, versions *kversion.Versions) *Cluster {
	t.Helper()
	b, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.MaxVersions(versions))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return &Cluster{Addrs: b.ListenAddrs()}
}

// Client makes a client of the cluster, closed at the end of the test.
func (c *Cluster) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	base := []kgo.Opt{kgo.SeedBrokers(c.Addrs...)}
	if c.Dial != nil {
		base = append(base, kgo.Dialer(c.Dial))
	}
	client, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// CreateTopic creates a topic, with the cluster's default replication, and returns its id.
func (c *Cluster) CreateTopic(t testing.TB, topic string, partitions int32) [16]byte {
	t.Helper()
	resp, err := kadm.NewClient(c.Client(t)).CreateTopic(t.Context(), partitions, -1, nil, topic)
	if err != nil {
		t.Fatalf("create topic %s: %v", topic, err)
	}
	return resp.ID
}
