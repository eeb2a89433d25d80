package jsonl

import (
	"encoding/base64"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tributary-io/tributary/lake/sink"
)

// Names of a line's members.
const (
	SourceTopic     = "_kafka_topic"     // string
	SourcePartition = "_kafka_partition" // number
	SourceOffset    = "_kafka_offset"    // number
	SourceTimestamp = "_kafka_timestamp" // ISO 8601 in UTC with milliseconds; null for a record without a time
	KeyMember       = "key"              // null for a null key
	ValueMember     = "value"            // null for a tombstone
)

// timestampLayout has milliseconds, as Kafka has them.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// msPerDay is the length of an event date.
const msPerDay = 24 * 60 * 60 * 1000

// The days that have a date of four digits.
const (
	firstDay = -719528 // 0000-01-01
	lastDay  = 2932896 // 9999-12-31
)

// day is the event date of a time in ms, in days since 1970.
func day(ms int64) (int32, error) {
	d := ms / msPerDay
	if ms%msPerDay < 0 {
		d--
	}
	if d < firstDay || d > lastDay {
		return 0, fmt.Errorf("an event time of %d ms since 1970 has no date of four digits", ms)
	}
	return int32(d), nil
}

// dateText is a day as it stands in names.
func dateText(d int32) string {
	return time.Unix(int64(d)*msPerDay/1000, 0).UTC().Format(time.DateOnly)
}

// appendLine appends a record as one line. On an error dst's content behind its length is garbage, and nothing is returned.
func appendLine(dst []byte, key, value any, meta *sink.Meta) ([]byte, error) {
	dst = append(dst, `{"`+SourceTopic+`":"`...)
	dst = append(dst, meta.Topic...) // topic names need no escapes
	dst = append(dst, `","`+SourcePartition+`":`...)
	dst = strconv.AppendInt(dst, int64(meta.Partition), 10)
	dst = append(dst, `,"`+SourceOffset+`":`...)
	dst = strconv.AppendInt(dst, meta.Offset, 10)
	dst = append(dst, `,"`+SourceTimestamp+`":`...)
	dst, err := appendTimestamp(dst, meta.BrokerTimestamp)
	if err != nil {
		return nil, &sink.RowError{Field: SourceTimestamp, Err: err}
	}
	dst = append(dst, `,"`+KeyMember+`":`...)
	if dst, err = appendKey(dst, key); err != nil {
		return nil, &sink.RowError{Field: KeyMember, Err: err}
	}
	dst = append(dst, `,"`+ValueMember+`":`...)
	if dst, err = appendValue(dst, value); err != nil {
		return nil, &sink.RowError{Field: ValueMember, Err: err}
	}
	return append(dst, '}', '\n'), nil
}

func appendTimestamp(dst []byte, ms int64) ([]byte, error) {
	if ms < 0 {
		return append(dst, "null"...), nil
	}
	if _, err := day(ms); err != nil {
		return nil, err
	}
	dst = append(dst, '"')
	dst = time.UnixMilli(ms).UTC().AppendFormat(dst, timestampLayout)
	return append(dst, '"'), nil
}

func appendKey(dst []byte, key any) ([]byte, error) {
	switch k := key.(type) {
	case nil:
		return append(dst, "null"...), nil
	case *string:
		return appendQuoted(dst, *k)
	case **string:
		if *k == nil {
			return append(dst, "null"...), nil
		}
		return appendQuoted(dst, **k)
	case *[]byte:
		if *k == nil {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, *k)
		return append(dst, '"'), nil
	}
	return appendMarshalled(dst, key)
}

func appendQuoted(dst []byte, text string) ([]byte, error) {
	dst, err := jsontext.AppendQuote(dst, text)
	if err != nil {
		return nil, errors.New("the text is not valid UTF-8")
	}
	return dst, nil
}

func appendValue(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...), nil
	case *[]byte:
		return appendText(dst, *v)
	case *json.RawMessage:
		return appendText(dst, *v)
	}
	return appendMarshalled(dst, value)
}

// appendText appends JSON text on one line, otherwise as it is: names twice in an object, numbers and escapes as they were written.
func appendText(dst, text []byte) ([]byte, error) {
	dst, err := jsontext.AppendFormat(dst, text, jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true), jsontext.Multiline(false))
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return dst, nil
}

func appendMarshalled(dst []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("can't be written as JSON: %w", err)
	}
	return append(dst, text...), nil
}
