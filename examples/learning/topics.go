package learning

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Topics.
const (
	ProgressTopic   = "learning.progress"   // append log, keyed by learner_id
	EnrollmentTopic = "learning.enrollment" // change log, keyed by EnrollmentKey

	ProgressDeadLetters   = "learning.progress.dlq"   // written by the raw landing
	EnrollmentDeadLetters = "learning.enrollment.dlq" // written by the cohort

	ActivityTopic       = "learning.course_activity"          // ActivityWindow by course: one record for each closed window
	ActivityLateTopic   = "learning.course_activity.late"     // LateEvent by course: what came after its window had closed
	DistinctTopic       = "learning.course_activity_distinct" // the same without duplicates
	DistinctLateTopic   = "learning.course_activity_distinct.late"
	CurrentTopic        = "learning.enrollment.current" // Enrollment by EnrollmentKey; null for a deleted one. Compacted
	SeatsTopic          = "learning.course_seats"       // active enrollments by course. Compacted
	QualityTopic        = "learning.progress.quality"   // Quality by hour. Compacted
	retention           = 14 * 24 * time.Hour
	partitionsOfTopics  = 3
	replicas, minInSync = 3, "2"
	reachLimit          = 2 * time.Minute
)

// Topic is a topic that the platform needs.
type Topic struct {
	Name   string
	Config map[string]string
}

// Topics are all topics that must be there before a product starts. The brokers stamp records with the time of their arrival: by that completeness
// is asked for, and by that they are kept for 14 days, however old the events are.
func Topics() []Topic {
	kept := map[string]string{"cleanup.policy": "delete", "retention.ms": fmt.Sprint(retention.Milliseconds()), "message.timestamp.type": "LogAppendTime"}
	compacted := map[string]string{"cleanup.policy": "compact"}
	return []Topic{
		{ProgressTopic, kept}, {EnrollmentTopic, kept},
		{ProgressDeadLetters, kept}, {EnrollmentDeadLetters, kept},
		{ActivityTopic, kept}, {ActivityLateTopic, kept}, {DistinctTopic, kept}, {DistinctLateTopic, kept},
		{CurrentTopic, compacted}, {SeatsTopic, compacted}, {QualityTopic, compacted},
	}
}

// CreateTopics makes the topics that are missing: with three replicas of which two must have a record before it is acknowledged, or with
// fewer on a cluster of fewer brokers.
func CreateTopics(ctx context.Context, client *kgo.Client) error {
	admin := kadm.NewClient(client)
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		return fmt.Errorf("no broker answers: %w", err)
	}
	factor := int16(min(len(brokers), replicas))
	var names []string
	for _, t := range Topics() {
		config := map[string]*string{}
		for k, v := range t.Config {
			config[k] = &v
		}
		if factor == replicas {
			config["min.insync.replicas"] = kadm.StringPtr(minInSync)
		}
		_, err := admin.CreateTopic(ctx, partitionsOfTopics, factor, config, t.Name)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", t.Name, err)
		}
		names = append(names, t.Name)
	}
	return awaitTopics(ctx, admin, names)
}

// awaitTopics waits until the brokers serve the topics: a cluster takes a moment to tell all of them.
func awaitTopics(ctx context.Context, admin *kadm.Client, names []string) error {
	for {
		listed, err := admin.ListEndOffsets(ctx, names...)
		if err == nil {
			err = listed.Error()
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the topics were made, but the brokers don't serve them: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// clientOptions are those of all clients of the example.
func clientOptions(brokers []string, more []kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{kgo.SeedBrokers(brokers...)}, more...)
}
