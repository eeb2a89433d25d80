package serde

import (
	"encoding/binary"
	"fmt"
)

// Confluent's wire format puts five bytes in front of a value: a zero ("magic") byte and the schema's id in the registry, four
// bytes big endian. What follows is the value in the encoding of the schema.
const (
	frameMagic = 0x00
	frameLen   = 5
)

// AppendFrame appends the five bytes that stand in front of a value written with the schema id.
func AppendFrame(dst []byte, id int32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, frameMagic), uint32(id))
}

// ParseFrame takes the five bytes off: id is the writer's schema, body the value behind them (it aliases data).
// The error is a *FrameError.
func ParseFrame(data []byte) (id int32, body []byte, err error) {
	if len(data) < frameLen || data[0] != frameMagic {
		return 0, nil, &FrameError{Len: len(data), First: firstByte(data)}
	}
	return int32(binary.BigEndian.Uint32(data[1:])), data[frameLen:], nil
}

func firstByte(data []byte) byte {
	if len(data) == 0 {
		return 0
	}
	return data[0]
}

// FrameError says that a value isn't in Confluent's wire format.
type FrameError struct {
	Len   int  // of the value, in bytes
	First byte // the value's first byte; 0 if it has none
}

func (e *FrameError) Error() string {
	if e.First == frameMagic {
		return fmt.Sprintf("%d bytes are too few for Confluent's wire format, which starts with a zero byte and a schema id of four", e.Len)
	}
	return fmt.Sprintf("not in Confluent's wire format: the first byte is %#02x instead of 0x00: the producer doesn't use a schema registry", e.First)
}
