package processors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"
)

// CoordinatesHeader is the header that carries Coordinates on internal topics before a lake sink.
const CoordinatesHeader = "__tributary.source"

// Coordinates say where a record entered the topology. See docs/format/lake-headers.md for their bytes.
type Coordinates struct {
	Topic           string
	Partition       int32
	Offset          int64
	BrokerTimestamp int64 // ms: the record's timestamp in its topic
}

const coordinatesVersion = 1

// ErrCoordinates is wrapped by errors of DecodeCoordinates.
var ErrCoordinates = errors.New("malformed source coordinates")

// CoordinatesOf gives those of the record that is being processed.
func CoordinatesOf(ctx *Context) Coordinates {
	return Coordinates{Topic: ctx.Topic, Partition: ctx.Partition, Offset: ctx.Offset, BrokerTimestamp: ctx.BrokerTimestamp}
}

// Append appends the encoding of c to dst.
func (c Coordinates) Append(dst []byte) []byte {
	dst = append(dst, coordinatesVersion)
	dst = binary.AppendUvarint(dst, uint64(len(c.Topic)))
	dst = append(dst, c.Topic...)
	dst = binary.AppendVarint(dst, int64(c.Partition))
	dst = binary.AppendVarint(dst, c.Offset)
	return binary.AppendVarint(dst, c.BrokerTimestamp)
}

// DecodeCoordinates decodes what Append wrote. The topic aliases data.
func DecodeCoordinates(data []byte) (c Coordinates, err error) {
	if len(data) == 0 || data[0] != coordinatesVersion {
		return c, fmt.Errorf("%w: %d bytes, no version 1: written by a newer release?", ErrCoordinates, len(data))
	}
	rest := data[1:]
	size, n := binary.Uvarint(rest)
	if n <= 0 || size > uint64(len(rest)-n) {
		return c, fmt.Errorf("%w: the topic's length", ErrCoordinates)
	}
	topic := rest[n : n+int(size)]
	c.Topic = unsafe.String(unsafe.SliceData(topic), len(topic))
	rest = rest[n+int(size):]
	numbers := [3]int64{}
	for i := range numbers {
		numbers[i], n = binary.Varint(rest)
		if n <= 0 {
			return Coordinates{}, fmt.Errorf("%w: number %d", ErrCoordinates, i)
		}
		rest = rest[n:]
	}
	c.Partition, c.Offset, c.BrokerTimestamp = int32(numbers[0]), numbers[1], numbers[2]
	if len(rest) > 0 || int64(c.Partition) != numbers[0] {
		return Coordinates{}, fmt.Errorf("%w: %d bytes too many, or a partition out of range", ErrCoordinates, len(rest))
	}
	return c, nil
}

func findCoordinates(headers []Header) ([]byte, bool) {
	for i := len(headers) - 1; i >= 0; i-- {
		if headers[i].Key == CoordinatesHeader {
			return headers[i].Value, true
		}
	}
	return nil, false
}
