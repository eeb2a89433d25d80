package learning

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"
)

// with is a valid record with some fields set otherwise; a nil json.RawMessage takes the field away.
func with(base map[string]any, changes map[string]any) []byte {
	m := maps.Clone(base)
	for k, v := range changes {
		if raw, ok := v.(json.RawMessage); ok && raw == nil {
			delete(m, k)
			continue
		}
		m[k] = v
	}
	return text(m)
}

var (
	gone      = json.RawMessage(nil)
	validBase = map[string]any{"event_id": "e1", "event_type": ProgressEvent, "event_version": 1, "event_time": "2026-06-01T12:00:00Z",
		"learner_id": "anna", "course_id": "go", "lesson_id": "l1", "progress_pct": 40, "producer": "p"}
	validChange = map[string]any{"event_id": "e1", "event_type": EnrollmentEvent, "event_version": 1, "event_time": "2026-06-01T12:00:00Z",
		"learner_id": "anna", "course_id": "go", "op": Upsert, "status": "active", "source_lsn": "0/16B3748"}
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestProgressReasonsInTheirOrder(t *testing.T) {
	anna, other := "anna", "ben"
	type fields = map[string]any
	for name, c := range map[string]struct {
		key   *string
		value []byte
		want  string
	}{
		"valid":                                {&anna, with(validBase, nil), ""},
		"unknown fields are ignored":           {&anna, with(validBase, fields{"device": fields{"os": "x"}}), ""},
		"a null key is no mismatch":            {nil, with(validBase, nil), ""},
		"null":                                 {&anna, nil, "unparseable"},
		"empty":                                {&anna, []byte{}, "unparseable"},
		"cut off":                              {&anna, []byte(`{"event_id":`), "unparseable"},
		"two values":                           {&anna, []byte(`{} {}`), "unparseable"},
		"not UTF-8":                            {&anna, []byte("{\"event_id\":\"\xff\"}"), "unparseable"},
		"a list":                               {&anna, []byte(`[1]`), "not_an_object"},
		"JSON null":                            {&anna, []byte(`null`), "not_an_object"},
		"all missing":                          {&anna, []byte(`{}`), "missing:event_id,event_type,event_version,event_time,learner_id,course_id,lesson_id,progress_pct,producer"},
		"null is missing, in fixed order":      {&other, with(validBase, fields{"producer": nil, "event_id": gone, "event_version": 7}), "missing:event_id,producer"},
		"type":                                 {&other, with(validBase, fields{"event_type": "quiz"}), "unsupported_type_or_version"},
		"type that is no text":                 {&anna, with(validBase, fields{"event_type": 1}), "unsupported_type_or_version"},
		"version 2":                            {&anna, with(validBase, fields{"event_version": 2}), "unsupported_type_or_version"},
		"version as text":                      {&anna, with(validBase, fields{"event_version": "1"}), "unsupported_type_or_version"},
		"version 1.0":                          {&anna, with(validBase, fields{"event_version": raw("1.0")}), "unsupported_type_or_version"},
		"version true":                         {&anna, with(validBase, fields{"event_version": true}), "unsupported_type_or_version"},
		"another learner's key":                {&other, with(validBase, fields{"event_time": "x", "progress_pct": 400}), "key_payload_mismatch"},
		"a number as learner":                  {&anna, with(validBase, fields{"learner_id": 1}), "key_payload_mismatch"},
		"bad time":                             {&anna, with(validBase, fields{"event_time": "yesterday", "progress_pct": 400}), "bad_event_time"},
		"time that is no text":                 {&anna, with(validBase, fields{"event_time": 1780315200}), "bad_event_time"},
		"no such day":                          {&anna, with(validBase, fields{"event_time": "2026-02-30T00:00:00Z"}), "bad_event_time"},
		"before 1970":                          {&anna, with(validBase, fields{"event_time": "1969-12-31T23:59:59Z"}), "bad_event_time"},
		"no zone":                              {&anna, with(validBase, fields{"event_time": "2026-06-01T12:00:00.5", "progress_pct": true}), "event_time_without_zone"},
		"progress true":                        {&anna, with(validBase, fields{"progress_pct": true}), "bad_progress_pct"},
		"progress as text":                     {&anna, with(validBase, fields{"progress_pct": "40"}), "bad_progress_pct"},
		"progress 40.0":                        {&anna, with(validBase, fields{"progress_pct": raw("40.0")}), "bad_progress_pct"},
		"progress 4e1":                         {&anna, with(validBase, fields{"progress_pct": raw("4e1")}), "bad_progress_pct"},
		"progress -0":                          {&anna, with(validBase, fields{"progress_pct": raw("-0")}), "bad_progress_pct"},
		"progress 101":                         {&anna, with(validBase, fields{"progress_pct": 101}), "bad_progress_pct"},
		"progress 0":                           {&anna, with(validBase, fields{"progress_pct": 0}), ""},
		"progress 100":                         {&anna, with(validBase, fields{"progress_pct": 100}), ""},
		"the last of two names is what counts": {&anna, []byte(strings.Replace(string(with(validBase, nil)), "{", `{"progress_pct":400,`, 1)), ""},
	} {
		_, err := ParseProgress(c.key, c.value)
		if got := reasonOf(err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAnyExplicitZone(t *testing.T) {
	want := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for _, s := range []string{
		"2026-06-01T12:00:00Z", "2026-06-01T14:00:00+02:00", "2026-06-01T14:00:00+0200", "2026-06-01T14:00:00+02", "2026-06-01 07:00:00-05:00",
		"2026-06-01T12:00:00.000Z", "2026-06-01T12:00Z", "2026-06-01T17:30:00+05:30",
	} {
		p, err := ParseProgress(nil, with(validBase, map[string]any{"event_time": s}))
		if err != nil || !p.EventTime.Equal(want) || p.EventTime.Location() != time.UTC {
			t.Errorf("%s: %v, %v", s, p.EventTime, err)
		}
	}
}

func TestEnrollmentReasons(t *testing.T) {
	type fields = map[string]any
	key, other := EnrollmentKey("anna", "go"), "anna/go"
	for name, c := range map[string]struct {
		key   *string
		value []byte
		want  string
	}{
		"valid upsert":              {&key, with(validChange, nil), ""},
		"valid delete":              {&key, with(validChange, fields{"op": Delete, "status": nil}), ""},
		"delete without the member": {&key, with(validChange, fields{"op": Delete, "status": gone}), ""},
		"missing":                   {&key, with(validChange, fields{"op": nil, "course_id": gone, "source_lsn": gone}), "missing:course_id,op"},
		"version":                   {&key, with(validChange, fields{"event_version": raw("1e0")}), "unsupported_type_or_version"},
		"key":                       {&other, with(validChange, nil), "key_payload_mismatch"},
		"time":                      {&key, with(validChange, fields{"event_time": "2026-06-01T12:00:00"}), "event_time_without_zone"},
		"op":                        {&key, with(validChange, fields{"op": "UPSERT", "source_lsn": gone}), "bad_op"},
		"no LSN":                    {&key, with(validChange, fields{"source_lsn": nil, "status": nil}), "missing_lsn"},
		"bad LSN":                   {&key, with(validChange, fields{"source_lsn": "16B3748"}), "bad_lsn"},
		"LSN as number":             {&key, with(validChange, fields{"source_lsn": 5}), "bad_lsn"},
		"delete with a status":      {&key, with(validChange, fields{"op": Delete}), "delete_with_status"},
		"upsert without one":        {&key, with(validChange, fields{"status": nil}), "upsert_without_status"},
	} {
		_, err := ParseEnrollment(c.key, c.value)
		if got := reasonOf(err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestLSNsAreNumbers(t *testing.T) {
	for s, want := range map[string]LSN{"0/16B3748": 0x16B3748, "1/0": 1 << 32, "FFFFFFFF/FFFFFFFF": 1<<64 - 1, "a/b": 0xA0000000B} {
		got, err := ParseLSN(s)
		if err != nil || got != want {
			t.Errorf("%s: %d, %v", s, got, err)
		}
		if back, err := ParseLSN(got.String()); err != nil || back != got {
			t.Errorf("%s is written as %s", s, got)
		}
	}
	for _, s := range []string{"", "/", "1", "1/", "/1", "100000000/0", "0/100000000", "-1/0", "0x1/0", "g/0", "1/2/3"} {
		if l, err := ParseLSN(s); err == nil {
			t.Errorf("%q is taken as %s", s, l)
		}
	}
	if a, b := mustLSN("0/FFFFFFFF"), mustLSN("1/0"); a >= b {
		t.Error("compared as text")
	}
}

func mustLSN(s string) LSN {
	l, err := ParseLSN(s)
	if err != nil {
		panic(err)
	}
	return l
}
