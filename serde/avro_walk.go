package serde

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// avroWalk steps over one value in Avro's binary encoding (Avro 1.12, "Binary Encoding") and returns what is behind it. It makes
// nothing of the value, but trusts no length, count or index in it.
type avroWalk func(data []byte, depth int) (rest []byte, err error)

// maxAvroDepth is how deep values may be nested.
const maxAvroDepth = 1000

var (
	errAvroDepth  = fmt.Errorf("corrupt: values nested deeper than %d", maxAvroDepth)
	errAvroVarint = errors.New("corrupt: a number of more than ten bytes")
	errAvroCutOff = fmt.Errorf("cut off: %w", io.ErrUnexpectedEOF)
)

// whole checks that data is exactly one value.
func (w avroWalk) whole(data []byte) error {
	rest, err := w(data, 0)
	if err == nil && len(rest) > 0 {
		return errTrailing
	}
	return err
}

func walkRecord(fields []avroWalk) avroWalk {
	return func(data []byte, depth int) (_ []byte, err error) {
		if depth++; depth > maxAvroDepth {
			return nil, errAvroDepth
		}
		for _, f := range fields {
			if data, err = f(data, depth); err != nil {
				return nil, err
			}
		}
		return data, nil
	}
}

func walkUnion(branches []avroWalk) avroWalk {
	return func(data []byte, depth int) ([]byte, error) {
		i, data, err := avroLong(data)
		if err != nil {
			return nil, err
		}
		if i < 0 || i >= int64(len(branches)) {
			return nil, fmt.Errorf("corrupt: branch %d of a union of %d", i, len(branches))
		}
		return branches[i](data, depth)
	}
}

func walkEnum(symbols int) avroWalk {
	return func(data []byte, _ int) ([]byte, error) {
		i, data, err := avroLong(data)
		if err == nil && (i < 0 || i >= int64(symbols)) {
			return nil, fmt.Errorf("corrupt: symbol %d of an enum of %d", i, symbols)
		}
		return data, err
	}
}

// walkBlocks steps over the blocks of an array or a map. A negative count is followed by the block's size in bytes.
func walkBlocks(item avroWalk) avroWalk {
	return func(data []byte, depth int) ([]byte, error) {
		if depth++; depth > maxAvroDepth {
			return nil, errAvroDepth
		}
		left := int64(maxAvroElements)
		for {
			count, rest, err := avroLong(data)
			if err != nil || count == 0 {
				return rest, err
			}
			size := int64(-1)
			if count < 0 {
				if size, rest, err = avroLong(rest); err != nil {
					return nil, err
				}
				if size < 0 || size > int64(len(rest)) || count == math.MinInt64 {
					return nil, fmt.Errorf("corrupt: a block of %d bytes where %d are left", size, len(rest))
				}
				count = -count
			}
			if left -= count; left < 0 {
				return nil, fmt.Errorf("corrupt, or more than %d elements in an array or map", maxAvroElements)
			}
			start := len(rest)
			for range count {
				if rest, err = item(rest, depth); err != nil {
					return nil, err
				}
			}
			if size >= 0 && size != int64(start-len(rest)) {
				return nil, fmt.Errorf("corrupt: a block of %d bytes says that it has %d", start-len(rest), size)
			}
			data = rest
		}
	}
}

func walkFixed(size int) avroWalk {
	return func(data []byte, _ int) ([]byte, error) {
		if len(data) < size {
			return nil, errAvroCutOff
		}
		return data[size:], nil
	}
}

func walkPrimitive(typ string) avroWalk {
	switch typ {
	case "null":
		return walkFixed(0)
	case "boolean":
		return walkBool
	case "float":
		return walkFixed(4)
	case "double":
		return walkFixed(8)
	case "bytes", "string":
		return walkBytes
	}
	return walkLong // int and long
}

func walkLong(data []byte, _ int) ([]byte, error) {
	_, rest, err := avroLong(data)
	return rest, err
}

func walkBool(data []byte, _ int) ([]byte, error) {
	if len(data) == 0 {
		return nil, errAvroCutOff
	}
	if data[0] > 1 {
		return nil, fmt.Errorf("corrupt: %#02x for a boolean", data[0])
	}
	return data[1:], nil
}

func walkBytes(data []byte, _ int) ([]byte, error) {
	n, data, err := avroLong(data)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("corrupt: a string of %d bytes", n)
	}
	if n > int64(len(data)) {
		return nil, errAvroCutOff
	}
	return data[n:], nil
}

// avroLong reads a long: zigzag, in groups of seven bits, which is Go's varint.
func avroLong(data []byte) (v int64, rest []byte, err error) {
	v, n := binary.Varint(data)
	switch {
	case n > 0:
		return v, data[n:], nil
	case n == 0:
		return 0, nil, errAvroCutOff
	}
	return 0, nil, errAvroVarint
}
