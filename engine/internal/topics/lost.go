package topics

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Gone is a topic that was deleted.
type Gone struct {
	Topic Topic
	Now   Topic // that has its name now; without a name if there is none
}

// Anew tells whether somebody has made a topic of that name anew.
func (g Gone) Anew() bool { return g.Now.Name != "" }

// Problem is what there is to say of an internal topic.
func (g Gone) Problem() Problem {
	if g.Anew() {
		return Problem{g.Topic.Name, "it was deleted and made anew while the application ran", "reset the application to begin anew"}
	}
	return Problem{g.Topic.Name, "it was deleted while the application ran", "restore the topic, or reset the application to begin anew"}
}

// Lost asks a broker once which of the topics it says to be deleted, or made anew, and gives those by name. A topic whose leaders aren't known, or
// that may not be looked at, isn't lost. An error means that nothing is known.
func Lost(ctx context.Context, client *kgo.Client, before []Topic) ([]Gone, error) {
	if len(before) == 0 {
		return nil, nil
	}
	names := make([]string, len(before))
	for i, t := range before {
		names[i] = t.Name
	}
	answers, err := ask(ctx, client, names)
	if err != nil {
		return nil, err
	}
	return lost(before, answers), nil
}

func lost(before []Topic, answers []kmsg.MetadataResponseTopic) (gone []Gone) {
	now := map[string]kmsg.MetadataResponseTopic{}
	for _, t := range answers {
		if t.Topic != nil {
			now[*t.Topic] = t
		}
	}
	for _, was := range before {
		is, answered := now[was.Name]
		switch {
		case !answered:
		case errors.Is(kerr.ErrorForCode(is.ErrorCode), kerr.UnknownTopicOrPartition):
			gone = append(gone, Gone{Topic: was})
		case was.ID != is.TopicID && was.ID != [16]byte{} && is.TopicID != [16]byte{}:
			gone = append(gone, Gone{was, Topic{Name: was.Name, ID: is.TopicID, Partitions: int32(len(is.Partitions))}})
		}
	}
	slices.SortFunc(gone, func(a, b Gone) int { return strings.Compare(a.Topic.Name, b.Topic.Name) })
	return gone
}
