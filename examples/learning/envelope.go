package learning

import (
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"strings"
	"time"
)

// Rejection says why a record is not taken. Its text is the reason as it stands in the dead letter's header.
type Rejection string

func (r Rejection) Error() string { return string(r) }

// The reasons, in the order in which they are looked for: the first that fits is the record's. Missing has the missing fields behind it.
const (
	Unparseable      Rejection = "unparseable"
	NotAnObject      Rejection = "not_an_object"
	missing                    = "missing:" // and the fields, in the order of the envelope, separated by commas
	UnsupportedType  Rejection = "unsupported_type_or_version"
	KeyMismatch      Rejection = "key_payload_mismatch"
	BadEventTime     Rejection = "bad_event_time"
	TimeWithoutZone  Rejection = "event_time_without_zone"
	BadProgress      Rejection = "bad_progress_pct"
	BadOp            Rejection = "bad_op"
	MissingLSN       Rejection = "missing_lsn"
	BadLSN           Rejection = "bad_lsn"
	DeleteWithStatus Rejection = "delete_with_status"
	NoStatus         Rejection = "upsert_without_status"
)

// envelopeVersion is the literal that event_version must be.
const envelopeVersion = "1"

// envelope is a record's JSON object, field by field as it was written. Unknown fields are in it, and nobody looks at them.
type envelope map[string]json.RawMessage

// open takes the record apart. Of a name that is there twice the last one counts.
func open(value []byte) (envelope, error) {
	text := jsontext.Value(value)
	if !text.IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, Unparseable
	}
	if text.Kind() != '{' {
		return nil, NotAnObject
	}
	e := envelope{}
	if err := json.Unmarshal(value, &e); err != nil {
		return nil, Unparseable
	}
	return e, nil
}

// lacks names the fields that are absent or null.
func (e envelope) lacks(fields []string) error {
	var none []string
	for _, f := range fields {
		if e.null(f) {
			none = append(none, f)
		}
	}
	if none != nil {
		return Rejection(missing + strings.Join(none, ","))
	}
	return nil
}

func (e envelope) null(field string) bool {
	v, ok := e[field]
	return !ok || string(v) == "null"
}

// text is a field that is a JSON string; ok is false for any other.
func (e envelope) text(field string) (s string, ok bool) {
	v := e[field]
	ok = len(v) > 0 && v[0] == '"' && json.Unmarshal(v, &s) == nil
	return s, ok
}

// id is a field that names something. One that is no string names by its JSON text, and is never equal to a key.
func (e envelope) id(field string) string {
	if s, ok := e.text(field); ok {
		return s
	}
	return string(e[field])
}

// is tells whether the record is of an event type, in the version that this program knows: the integer 1, written so.
func (e envelope) is(eventType string) bool {
	t, ok := e.text("event_type")
	return ok && t == eventType && string(e["event_version"]) == envelopeVersion
}

// Layouts of times: a date, a T or a space, a time to the minute or finer, and a zone.
var (
	localLayouts = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"}
	zoneLayouts  = []string{"Z07:00", "Z0700", "Z07", " Z07:00", " Z0700"}
)

// eventTime reads event_time. Any zone that is written out is taken; the result is in UTC. Kafka has no times before 1970.
func (e envelope) eventTime() (time.Time, error) {
	s, ok := e.text("event_time")
	if !ok {
		return time.Time{}, BadEventTime
	}
	for _, local := range localLayouts {
		for _, zone := range zoneLayouts {
			if t, err := time.Parse(local+zone, s); err == nil {
				if t.Unix() < 0 {
					return time.Time{}, BadEventTime
				}
				return t.UTC(), nil
			}
		}
		if _, err := time.Parse(local, s); err == nil {
			return time.Time{}, TimeWithoutZone
		}
	}
	return time.Time{}, BadEventTime
}

// percent reads an integer literal from 0 to 100.
func (e envelope) percent(field string) (int, error) {
	literal := string(e[field])
	for p := range 101 {
		if literal == fmt.Sprint(p) {
			return p, nil
		}
	}
	return 0, BadProgress
}
