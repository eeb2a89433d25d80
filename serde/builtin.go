package serde

import (
	"encoding/hex"
	"fmt"
	"time"
	"unsafe"

	"github.com/google/uuid"
)

// The built-in serdes. They hold no state and never change. See the package documentation for their wire formats.
var (
	// String takes the bytes as they are, valid UTF-8 or not. A decoded string aliases the record's bytes, so a small string
	// that is kept keeps the whole fetched batch in memory: strings.Clone it where it outlives the record.
	String Serde[string] = stringSerde{}
	// Bytes takes the bytes as they are. A decoded slice is the record's own memory.
	Bytes Serde[[]byte] = bytesSerde{}
	// Bool is one byte, 0x01 or 0x00; any other is an error, as in Kafka's BooleanDeserializer.
	Bool Serde[bool] = boolSerde{}
	// UUID is the 36 characters of the text form. Upper case is read as well.
	UUID Serde[uuid.UUID] = uuidSerde{}
	// Time is an Int64 of milliseconds since 1970, which is what Kafka's record timestamps are. Anything finer is cut off
	// (towards the past), and the zone is lost: decoded times are in UTC.
	Time Serde[time.Time] = timeSerde{}
)

type stringSerde struct{}

func (stringSerde) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }

func (stringSerde) Decode(data []byte) (string, error) {
	return unsafe.String(unsafe.SliceData(data), len(data)), nil
}

type bytesSerde struct{}

func (bytesSerde) Append(dst []byte, v []byte) ([]byte, error) { return append(dst, v...), nil }

// Decode cuts the capacity too: an append to the value must not run into the record behind it.
func (bytesSerde) Decode(data []byte) ([]byte, error) { return data[:len(data):len(data)], nil }

type boolSerde struct{}

func (boolSerde) NonAliasing() {}

func (boolSerde) Append(dst []byte, v bool) ([]byte, error) {
	if v {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

func (boolSerde) Decode(data []byte) (bool, error) {
	if len(data) != 1 {
		return false, &LengthError{Type: "bool", Want: 1, Got: len(data)}
	}
	if data[0] > 1 {
		return false, fmt.Errorf("bool is 0x00 or 0x01, got %#02x", data[0])
	}
	return data[0] == 1, nil
}

// uuidLen is the length of a UUID's text form.
const uuidLen = 36

type uuidSerde struct{}

func (uuidSerde) NonAliasing() {}

func (uuidSerde) Append(dst []byte, v uuid.UUID) ([]byte, error) {
	dst = append(hex.AppendEncode(dst, v[:4]), '-')
	dst = append(hex.AppendEncode(dst, v[4:6]), '-')
	dst = append(hex.AppendEncode(dst, v[6:8]), '-')
	dst = append(hex.AppendEncode(dst, v[8:10]), '-')
	return hex.AppendEncode(dst, v[10:]), nil
}

// Decode takes the 36 characters only, though the parser would take other forms too: two spellings of one key would go to two
// partitions.
func (uuidSerde) Decode(data []byte) (uuid.UUID, error) {
	if len(data) != uuidLen {
		return uuid.UUID{}, &LengthError{Type: "uuid.UUID", Want: uuidLen, Got: len(data)}
	}
	u, err := uuid.ParseBytes(data)
	if err != nil {
		return uuid.UUID{}, fmt.Errorf("uuid %q: %w", data, err)
	}
	return u, nil
}

// The seconds since 1970 whose milliseconds an int64 surely holds.
const (
	maxSeconds = 1<<63/1000 - 1
	minSeconds = -maxSeconds
)

type timeSerde struct{}

func (timeSerde) NonAliasing() {}

func (timeSerde) Append(dst []byte, v time.Time) ([]byte, error) {
	if s := v.Unix(); s > maxSeconds || s < minSeconds {
		return dst, fmt.Errorf("time in the year %d doesn't fit into 64 bits of milliseconds", v.Year())
	}
	return appendUint64(dst, uint64(v.UnixMilli())), nil
}

func (timeSerde) Decode(data []byte) (time.Time, error) {
	if len(data) != 8 {
		return time.Time{}, &LengthError{Type: "time.Time", Want: 8, Got: len(data)}
	}
	return time.UnixMilli(int64(readUint64(data))).UTC(), nil
}
