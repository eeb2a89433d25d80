package learning

import (
	"errors"

	"github.com/tributary-io/tributary/lake/jsonl"
	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// Names of the raw landing.
const (
	LandingApplication = "learning-progress-raw-landing"
	RawProgress        = "raw/progress" // below the lake
)

// ReasonHeader is the header of a dead letter that says why the record was rejected.
const ReasonHeader = "reason"

// Landing lands ProgressTopic as it is, repetitions too, by event date. What the validator rejects is counted in the manifests and goes to the
// dead letters with its bytes.
func Landing(lake string) (*topology.Plan, error) {
	b := topology.NewBuilder(LandingApplication)
	b.Stream(ProgressTopic, textKey, serde.Bytes, topology.Timestamps(progressTime)).
		ToLake(jsonl.Sink(lake+"/"+RawProgress, jsonl.Check(validProgress)), topology.Name("raw-progress"))
	return b.Build()
}

func validProgress(key **string, value *[]byte, _ *sink.Meta) error {
	var id *string
	var data []byte
	if key != nil {
		id = *key
	}
	if value != nil {
		data = *value
	}
	_, err := ParseProgress(id, data)
	return err
}

// progressTime is a record's event time. One that is not valid has its partition's: so it comes to where it is rejected in its turn, and moves no
// clock. Its topic's time would be later than that of all events behind it, and would close their windows.
var progressTime processors.TimestampExtractor[*string, []byte] = func(r *processors.Record[*string, []byte], _ *processors.RawRecord, partitionTime int64) (int64, error) {
	p, err := ParseProgress(r.Key, r.Value)
	if err != nil {
		return max(0, partitionTime), nil
	}
	return p.EventTime.UnixMilli(), nil
}

// textKey is the serde of keys that may be null.
var textKey = serde.Ptr(serde.String)

// deadLetters sends what the validator rejects to a topic, with the reason in a header. Any other failure stops the product.
func deadLetters(topic string) processors.Handlers {
	return processors.Handlers{Processing: processors.HandleErrors(func(c *processors.ErrorContext) processors.Verdict {
		var reason Rejection
		if !errors.As(c.Err, &reason) {
			return processors.Verdict{Fail: true}
		}
		return processors.Verdict{DeadLetterTopic: topic, Headers: []processors.Header{{Key: ReasonHeader, Value: []byte(reason)}}}
	})}
}

// skipRejected leaves out what the validator rejects: the landing has it in the dead letters. Any other failure stops the product.
func skipRejected() processors.Handlers {
	return processors.Handlers{Processing: processors.HandleErrors(func(c *processors.ErrorContext) processors.Verdict {
		var reason Rejection
		return processors.Verdict{Fail: !errors.As(c.Err, &reason)}
	})}
}
