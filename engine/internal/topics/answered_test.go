package topics

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker that goes down while a topic is made closes the connection without an answer: another try makes the topic.
func TestTopicsAreMadeWhereABrokerGoesDown(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	asked := 0
	cluster.ControlKey(int16(kmsg.CreateTopics), func(kmsg.Request) (kmsg.Response, error, bool) {
		if asked++; asked == 3 {
			return nil, nil, false
		}
		cluster.KeepControl()
		return nil, errors.New("going down"), true
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	found, _, err := Ensure(t.Context(), client, []Wanted{{Name: "made", Partitions: 2}})
	if err != nil || found["made"].Partitions != 2 || asked != 3 {
		t.Errorf("%v after %d tries: %v", found, asked, err)
	}
}
