package topicrights

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What MayWrite finds.
var (
	ErrMayNotWrite = errors.New("the brokers don't let this client write to it")
	ErrNoTopic     = errors.New("there is no such topic")
)

// MayWrite asks whether a topic is there and this client may write to it: ErrNoTopic or ErrMayNotWrite says that it isn't so. Brokers that don't tell of
// rights are believed to give them. Any other error means that nothing is known.
func MayWrite(ctx context.Context, client *kgo.Client, topic string) error {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = &topic
	req.Topics = append(req.Topics, asked)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return fmt.Errorf("look at topic %s: %w", topic, err)
	}
	if len(resp.Topics) != 1 {
		return fmt.Errorf("look at topic %s: the answer has %d topics", topic, len(resp.Topics))
	}
	t := resp.Topics[0]
	switch err := kerr.ErrorForCode(t.ErrorCode); {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return ErrNoTopic
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return ErrMayNotWrite
	case err != nil:
		return fmt.Errorf("look at topic %s: %w", topic, err)
	case t.AuthorizedOperations != math.MinInt32 && t.AuthorizedOperations&(1<<kmsg.ACLOperationWrite) == 0:
		return ErrMayNotWrite
	}
	return nil
}
