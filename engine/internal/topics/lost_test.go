package topics

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestLostIsOnlyWhatBrokersSayIsGone(t *testing.T) {
	answer := func(code *kerr.Error, id byte) kmsg.MetadataResponseTopic {
		a := kmsg.NewMetadataResponseTopic()
		a.Topic = kmsg.StringPtr("log")
		a.TopicID[0] = id
		if code != nil {
			a.ErrorCode = code.Code
		}
		return a
	}
	noReplicas := answer(nil, 1)
	partition := kmsg.NewMetadataResponseTopicPartition()
	partition.Leader, partition.ErrorCode = -1, kerr.LeaderNotAvailable.Code
	noReplicas.Partitions = append(noReplicas.Partitions, partition)
	for name, c := range map[string]struct {
		answers []kmsg.MetadataResponseTopic
		lost    bool
	}{
		"there":                {[]kmsg.MetadataResponseTopic{answer(nil, 1)}, false},
		"unknown":              {[]kmsg.MetadataResponseTopic{answer(kerr.UnknownTopicOrPartition, 0)}, true},
		"made anew":            {[]kmsg.MetadataResponseTopic{answer(nil, 2)}, true},
		"no leader":            {[]kmsg.MetadataResponseTopic{answer(kerr.LeaderNotAvailable, 0)}, false},
		"no replicas":          {[]kmsg.MetadataResponseTopic{noReplicas}, false},
		"not to be looked at":  {[]kmsg.MetadataResponseTopic{answer(kerr.TopicAuthorizationFailed, 0)}, false},
		"a broker without ids": {[]kmsg.MetadataResponseTopic{answer(nil, 0)}, false},
		"not in the answer":    {nil, false},
	} {
		before := Topic{Name: "log", Partitions: 1}
		before.ID[0] = 1
		if bad := lost([]Topic{before}, c.answers); (len(bad) > 0) != c.lost {
			t.Errorf("%s: %v", name, bad)
		}
	}
}
