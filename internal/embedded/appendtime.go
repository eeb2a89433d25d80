package embedded

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// stampAppendTime makes the cluster honour message.timestamp.type=LogAppendTime: kfake accepts the topic setting and ignores
// it. (A batch whose timestamp attribute is set is stamped by kfake, but then has a wrong checksum.) So the timestamps are
// rewritten on the batch's way in. Clients see the broker's clock; only the batch attribute keeps saying CreateTime.
func stampAppendTime(cluster *kfake.Cluster) {
	s := &appendTimeStamper{cluster: cluster, known: map[topicKey]bool{}}
	cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.stamp(req.(*kmsg.ProduceRequest), time.Now().UnixMilli())
		return nil, nil, false
	})
	for _, key := range []kmsg.Key{kmsg.CreateTopics, kmsg.DeleteTopics, kmsg.AlterConfigs, kmsg.IncrementalAlterConfigs} {
		cluster.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
			s.forget()
			return nil, nil, false
		})
	}
}

// topicKey is a topic by name (produce versions up to 12) or by id.
type topicKey struct {
	name string
	id   [16]byte
}

type appendTimeStamper struct {
	cluster *kfake.Cluster

	mu    sync.Mutex
	known map[topicKey]bool // whether the topic is LogAppendTime
}

func (s *appendTimeStamper) stamp(req *kmsg.ProduceRequest, now int64) {
	for _, topic := range req.Topics {
		if !s.isAppendTime(topicKey{topic.Topic, topic.TopicID}) {
			continue
		}
		for i := range topic.Partitions {
			p := &topic.Partitions[i]
			if stamped, err := restamp(p.Records, now); err == nil {
				p.Records = stamped
			} // otherwise the broker refuses the batch, and says why
		}
	}
}

func (s *appendTimeStamper) isAppendTime(k topicKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, ok := s.known[k]
	if ok {
		return is
	}
	var info *kfake.TopicInfo
	if k.name != "" {
		info = s.cluster.TopicInfo(k.name)
	} else {
		info = s.cluster.TopicIDInfo(k.id)
	}
	if info == nil {
		return false // unknown to the broker too, which answers so; not remembered, the topic may be made
	}
	if v := info.Configs["message.timestamp.type"]; v != nil {
		is = *v == "LogAppendTime"
	}
	s.known[k] = is
	return is
}

func (s *appendTimeStamper) forget() {
	s.mu.Lock()
	clear(s.known)
	s.mu.Unlock()
}
