package learning

import (
	"errors"
	"time"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Names of the auditor.
const (
	QualityApplication = "learning-progress-quality"
	QualityStore       = "quality" // Quality by hour
)

// Quality is what the auditor knows of an hour of the broker's append time.
type Quality struct {
	Records    int64            `json:"records"`
	Valid      int64            `json:"valid"`
	Distinct   int64            `json:"distinct"`   // valid records whose event_id had not been seen for 14 days
	Duplicates int64            `json:"duplicates"` // the other valid ones
	Mismatches int64            `json:"key_payload_mismatches"`
	Rejected   map[string]int64 `json:"rejected,omitempty"` // by reason
}

// observation is what one record adds to its hour.
type observation struct {
	Hour     string `json:"hour"`
	EventID  string `json:"event_id,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Distinct bool   `json:"distinct,omitempty"` // said once of each event id
}

// Auditor counts what goes through ProgressTopic, good and bad, by hour. It has a group of its own: it sees everything, also what nobody
// else has taken up yet.
func Auditor() (*topology.Plan, error) {
	b := topology.NewBuilder(QualityApplication)
	all := b.Stream(ProgressTopic, textKey, serde.Bytes, topology.Timestamps(topicTime)).
		Process(func() processors.Processor[*string, []byte, *string, observation] { return &observer{} }, topology.Name("observe"))
	firsts := all.
		Filter(func(_ *string, o observation) bool { return o.Reason == "" }, topology.Name("valid")).
		DedupBy(func(o observation) string { return o.EventID }, retention, topology.Store("seen-events"), topology.RepartitionByID(), topology.Name("by-event"), topology.KeySerde(textKey), topology.ValueSerde(serde.JSON[observation]())).
		MapValues(func(o observation) observation { o.Distinct = true; return o }, topology.Name("first"))
	all.Merge(firsts, topology.Name("all-and-firsts")).
		GroupBy(func(_ *string, o observation) string { return o.Hour }, topology.Name("by-hour"), topology.KeySerde(serde.String), topology.ValueSerde(serde.JSON[observation]())).
		Aggregate(func() Quality { return Quality{} }, addObservation, topology.Store(QualityStore), topology.ValueSerde(serde.JSON[Quality]())).
		ToStream().To(QualityTopic)
	return b.Build()
}

// topicTime is the record's time in its topic: the broker's, since the topic says so.
var topicTime processors.TimestampExtractor[*string, []byte] = func(r *processors.Record[*string, []byte], _ *processors.RawRecord, _ int64) (int64, error) {
	return max(0, r.Timestamp), nil
}

func addObservation(_ string, o observation, q Quality) Quality {
	switch {
	case o.Distinct:
		q.Distinct++
	case o.Reason == "":
		q.Records++
		q.Valid++
	default:
		q.Records++
		if Rejection(o.Reason) == KeyMismatch {
			q.Mismatches++
		}
		rejected := map[string]int64{o.Reason: 1}
		for reason, n := range q.Rejected {
			rejected[reason] += n
		}
		q.Rejected = rejected
	}
	q.Duplicates = q.Valid - q.Distinct
	return q
}

// observer makes an observation of each record.
type observer struct {
	ctx processors.ProcessorContext[*string, observation]
}

func (v *observer) Init(ctx processors.ProcessorContext[*string, observation]) error {
	v.ctx = ctx
	return nil
}

func (v *observer) Process(r *processors.Record[*string, []byte]) error {
	o := observation{Hour: time.UnixMilli(r.Timestamp).UTC().Format("2006-01-02T15:00:00Z")}
	p, err := ParseProgress(r.Key, r.Value)
	var reason Rejection
	if errors.As(err, &reason) {
		o.Reason = string(reason)
	} else {
		o.EventID = p.EventID
	}
	out := processors.WithValue(r, o)
	return v.ctx.Forward(&out)
}

func (v *observer) Close() error { return nil }
