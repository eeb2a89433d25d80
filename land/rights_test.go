package land

import (
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/tributary-io/tributary/internal/verify"
)

// TestRights lands as a user who may not create topics, and may not write to the dead letters of one of two streams. That stream is parked, with the reason, before any
// record has been refused; the other lands, its dead letters too; and so does the first when the right is given. It is parked again, alone, when the right is taken later on.
func TestRights(t *testing.T) {
	well, deaf := testStream(t, "ods.shop.well", small), testStream(t, "ods.shop.deaf", small)
	allow := func(resource kmsg.ACLResourceType, name string, ops ...kmsg.ACLOperation) (out []kfake.ACL) {
		for _, op := range ops {
			out = append(out, kfake.ACL{Resource: resource, Name: name, Pattern: kmsg.ACLResourcePatternTypePrefixed, Operation: op, Allow: true})
		}
		return out
	}
	rights := append(allow(kmsg.ACLResourceTypeTopic, "ods.", kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs),
		append(allow(kmsg.ACLResourceTypeGroup, "", kmsg.ACLOperationAll), allow(kmsg.ACLResourceTypeTransactionalId, "", kmsg.ACLOperationAll)...)...)
	rights = append(rights, kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: deaf.DeadLetters, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationWrite})
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("PLAIN", "root", "pw"), kfake.User("PLAIN", "lander", "pw", rights...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	as := func(user string) kgo.Opt { return kgo.SASL(plain.Auth{User: user, Pass: "pw"}.AsMechanism()) }
	w := newWorld(t, cluster.ListenAddrs(), "")
	if w.client, err = kgo.NewClient(kgo.SeedBrokers(w.cfg.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1), as("root")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	admin := kadm.NewClient(w.client)
	for _, s := range []Stream{well, deaf} {
		for _, topic := range []string{s.Topic, s.DeadLetters} {
			if _, err := admin.CreateTopic(t.Context(), s.Partitions, 1, nil, topic); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.cfg.Streams, w.cfg.Client = []Stream{well, deaf}, []kgo.Opt{as("lander")}
	sink, _ := w.start(t)
	defer http.DefaultClient.CloseIdleConnections()
	ask := asking(t, sink.Handler())
	id := w.id(t, &well)
	w.emit(t, well.Topic, smallValue(id, 1), []byte("bad"), smallValue(id, 3))
	w.emit(t, deaf.Topic, smallValue(id, 1), []byte("bad"), smallValue(id, 3))
	eventually(t, "the stream with all rights has landed", func() bool { return len(w.rows(t, &well)) == 2 })
	var ready string
	eventually(t, "all who look are told why the other waits", func() bool {
		_, ready = ask("/readyz")
		line := lineWith(ready, deaf.Topic+": parked since ")
		return strings.Contains(line, "Write") && strings.Contains(line, deaf.DeadLetters) && strings.Contains(ready, "1 of 2 streams wait")
	})
	if n := len(w.rows(t, &deaf)); n > 0 {
		t.Errorf("%d rows have landed without a place for what doesn't fit", n)
	}
	b := kadm.NewACLs().Topics(deaf.DeadLetters).ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpWrite).Deny("User:lander").DenyHosts()
	if gone, err := admin.DeleteACLs(t.Context(), b); err != nil || len(gone) != 1 || len(gone[0].Deleted) != 1 {
		t.Fatalf("give the right: %+v, %v", gone, err)
	}
	eventually(t, "the other has landed", func() bool { return len(w.rows(t, &deaf)) == 2 })
	// The right is taken while both land.
	if _, err := admin.CreateACLs(t.Context(), b.DenyHosts("*")); err != nil {
		t.Fatal(err)
	}
	w.emit(t, deaf.Topic, smallValue(id, 4), []byte("bad"), smallValue(id, 6), smallValue(id, 7))
	eventually(t, "all who look are told why it waits", func() bool {
		_, ready = ask("/readyz")
		line := lineWith(ready, deaf.Topic+": ")
		return strings.Contains(line, "needs Write on it") && strings.Contains(line, deaf.DeadLetters)
	})
	w.emit(t, well.Topic, smallValue(id, 4), []byte("bad"), smallValue(id, 6))
	eventually(t, "the stream with all rights lands on", func() bool { return len(w.rows(t, &well)) == 4 })
	if gone, err := admin.DeleteACLs(t.Context(), b); err != nil || len(gone) != 1 || len(gone[0].Deleted) != 1 {
		t.Fatalf("give the right: %+v, %v", gone, err)
	}
	eventually(t, "the other has landed, too", func() bool { return len(w.rows(t, &deaf)) == 5 })
	for _, s := range []*Stream{&well, &deaf} {
		letters := 0 // those of a partition with nothing but them may come after all rows
		eventually(t, "dead letters of "+s.Topic, func() bool {
			letters = 0
			for _, err := range verify.Committed(t.Context(), []kgo.Opt{kgo.SeedBrokers(w.cfg.Brokers...), as("root")}, s.DeadLetters) {
				if err != nil {
					t.Fatal(err)
				}
				letters++
			}
			return letters >= 2
		})
		if letters != 2 {
			t.Errorf("%s has %d dead letters, want 2", s.Topic, letters)
		}
	}
}
