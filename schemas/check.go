package schemas

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// Kafka's rule for the names of topics (org.apache.kafka.common.internals.Topic).
var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// check returns what is wrong with a declaration by itself.
func check(s Stream) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !topicName.MatchString(s.Topic) || s.Topic == "." || s.Topic == ".." {
		wrong("topic %q isn't a name that Kafka takes", s.Topic)
	}
	for _, field := range [][2]string{{"description", s.Description}, {"domain", s.Domain}, {"owner", s.Owner}} {
		if field[1] == "" {
			wrong("%s is missing", field[0])
		}
	}
	if !s.Sensitivity.Valid() {
		wrong("sensitivity is %q, not one of %v", s.Sensitivity, sensitivities)
	}
	if s.Key.Format != "string" {
		wrong("key.format is %q, not string", s.Key.Format)
	}
	if s.Value.Format != "avro" {
		wrong("value.format is %q, not avro", s.Value.Format)
	}
	if s.Partitions < 1 {
		wrong("partitions is %d", s.Partitions)
	}
	if s.Cleanup != Delete && s.Cleanup != Compact {
		wrong("cleanup is %q, not delete or compact", s.Cleanup)
	}
	if s.Retention < 0 || s.Retention > 0 && s.Cleanup == Compact {
		wrong("retention is %v, which doesn't go with cleanup %s", s.Retention, s.Cleanup)
	}
	if s.Timestamps != CreateTime && s.Timestamps != AppendTime {
		wrong("timestamps is %q, not create or append", s.Timestamps)
	}
	if s.DeadLetters != "" && (!topicName.MatchString(s.DeadLetters) || s.DeadLetters == s.Topic) {
		wrong("dead_letters %q isn't the name of another topic", s.DeadLetters)
	}
	return errs
}

// record is what is checked of an Avro schema. Whether it is a valid one, the registry and the serde say.
type record struct {
	Type   string  `json:"type"`
	Doc    string  `json:"doc"`
	Fields []field `json:"fields"`
}

type field struct {
	Name        string      `json:"name"`
	Doc         string      `json:"doc"`
	Sensitivity Sensitivity `json:"ods.sensitivity"`
	PII         *bool       `json:"ods.pii"`
	Key         bool        `json:"ods.key"`
}

// checkSchema returns what a catalogue would miss in the stream's schema.
func checkSchema(s Stream) (errs []error) {
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(s.Value.Schema+": "+format, args...)) }
	var r record
	if err := json.Unmarshal([]byte(s.Schema), &r); err != nil {
		wrong("%w", err)
		return errs
	}
	if r.Type != "record" || r.Doc == "" {
		wrong("it is no record with a doc")
	}
	keys := 0
	for _, f := range r.Fields {
		if f.Doc == "" {
			wrong("field %s has no doc", f.Name)
		}
		if !f.Sensitivity.Valid() {
			wrong("field %s: ods.sensitivity is %q, not one of %v", f.Name, f.Sensitivity, sensitivities)
		}
		if f.Sensitivity.Exceeds(s.Sensitivity) {
			wrong("field %s is %s, but the stream is declared %s only", f.Name, f.Sensitivity, s.Sensitivity)
		}
		if f.PII == nil {
			wrong("field %s doesn't say whether it is about a person (ods.pii)", f.Name)
		} else if *f.PII && !f.Sensitivity.Exceeds(Internal) {
			wrong("field %s is about a person (ods.pii), but only %s", f.Name, f.Sensitivity)
		}
		if f.Key {
			keys++
			if f.Name != s.Key.Field {
				wrong("field %s is marked ods.key, but key.field is %q", f.Name, s.Key.Field)
			}
		}
	}
	if keys != 1 {
		wrong("%d fields are marked ods.key, not one", keys)
	}
	return errs
}
