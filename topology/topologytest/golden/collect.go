package golden

import (
	"encoding/base64"
	"strings"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/topology/topologytest"
)

// drain takes what the step has written to all topics into the sections.
func (r *run) drain() error {
	for _, topic := range r.driver.Topics() {
		for _, rec := range r.driver.Read(topic) {
			switch {
			case !strings.HasPrefix(topic, r.cfg.applicationID+"-"):
				r.outputs[topic] = append(r.outputs[topic], r.output(topic, rec))
			case strings.HasSuffix(topic, "-changelog"):
				r.changelogs[topic] = append(r.changelogs[topic], r.rawRecord(topic, rec))
			default:
				r.repartitions[topic] = append(r.repartitions[topic], r.rawRecord(topic, rec))
			}
		}
	}
	return nil
}

// typesOf are the types with which a topic is written or read by the runner.
func (r *run) typesOf(topic string, input bool) topicTypes {
	if t, ok := r.scenario.topics[topic]; ok {
		return t
	}
	if input {
		return r.build.inputTypes(topic)
	}
	return r.build.outputTypes(topic)
}

func (r *run) output(topic string, rec topologytest.Record) any {
	types := r.typesOf(topic, false)
	out := map[string]any{"step": r.step, "timestamp": rec.Timestamp}
	showField(out, "key", types.key, rec.Key)
	showField(out, "value", types.value, rec.Value)
	if len(rec.Headers) > 0 {
		out["headers"] = showHeaders(rec.Headers)
	}
	return out
}

// showField shows bytes decoded or, if they don't decode, in base64.
func showField(out map[string]any, name string, t Type, data []byte) {
	if data == nil {
		out[name] = nil
		return
	}
	v, err := t.Serde().Decode(data)
	if err != nil {
		out[name+"Base64"] = base64.StdEncoding.EncodeToString(data)
		return
	}
	out[name] = show(v)
}

func showHeaders(headers []processors.Header) []any {
	list := make([]any, len(headers))
	for i, h := range headers {
		shown := map[string]any{"key": h.Key, "value": nil}
		switch {
		case h.Value == nil:
		case h.Key == processors.HeaderErrorException, h.Key == processors.HeaderErrorMessage, h.Key == processors.HeaderErrorStacktrace:
			shown["value"] = "*" // Java specific in the expectations
		default:
			shown["value"] = string(h.Value)
		}
		list[i] = shown
	}
	return list
}

func base64OrNull(data []byte) any {
	if data == nil {
		return nil
	}
	return base64.StdEncoding.EncodeToString(data)
}

// rawRecord shows a record of an internal topic, byte by byte. The changelogs of buffers have no timestamps.
func (r *run) rawRecord(topic string, rec topologytest.Record) any {
	out := map[string]any{"step": r.step, "key": base64OrNull(rec.Key), "value": base64OrNull(rec.Value), "timestamp": rec.Timestamp}
	if r.isBufferChangelog(topic) {
		out["timestamp"] = nil
	}
	if len(rec.Headers) > 0 {
		list := make([]any, len(rec.Headers))
		for i, h := range rec.Headers {
			list[i] = map[string]any{"key": h.Key, "value": base64OrNull(h.Value)}
		}
		out["headers"] = list
	}
	return out
}
