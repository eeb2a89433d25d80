package embedded

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// keepCompacted keeps compacted topics from losing old records: kfake deletes by retention.ms, which is a week by default, whatever
// the cleanup policy is, and at once; Kafka does so only where the policy says delete, and by whole segments. With input of last month
// the changelogs would vanish as they are written. So topics that are made with a policy that only compacts get no retention.
func keepCompacted(cluster *kfake.Cluster) {
	cluster.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		topics := req.(*kmsg.CreateTopicsRequest).Topics
		for i := range topics {
			dropRetention(&topics[i])
		}
		return nil, nil, false
	})
}

func dropRetention(t *kmsg.CreateTopicsRequestTopic) {
	compacted, retention := false, -1
	for i, c := range t.Configs {
		switch {
		case c.Name == "cleanup.policy" && c.Value != nil:
			compacted = !strings.Contains(*c.Value, "delete")
		case c.Name == "retention.ms":
			retention = i
		}
	}
	if !compacted {
		return
	}
	if retention < 0 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name = "retention.ms"
		t.Configs = append(t.Configs, c)
		retention = len(t.Configs) - 1
	}
	t.Configs[retention].Value = kmsg.StringPtr("-1")
}
