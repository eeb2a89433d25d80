package serde

import (
	"encoding/binary"
	"math"
)

// The built-in serdes of numbers: big endian, of fixed length, and they allocate nothing in either direction.
//
// Their bytes sort like the numbers only while these are not negative. Stores scan in the order of bytes, as Kafka Streams' do.
var (
	Int16   Serde[int16]   = int16Serde{}
	Int32   Serde[int32]   = int32Serde{}
	Int64   Serde[int64]   = int64Serde{}
	Int     Serde[int]     = intSerde{}
	Float32 Serde[float32] = float32Serde{}
	Float64 Serde[float64] = float64Serde{}
)

func appendUint64(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }
func readUint64(data []byte) uint64            { return binary.BigEndian.Uint64(data) }

type int16Serde struct{}

func (int16Serde) NonAliasing() {}

func (int16Serde) Append(dst []byte, v int16) ([]byte, error) {
	return binary.BigEndian.AppendUint16(dst, uint16(v)), nil
}

func (int16Serde) Decode(data []byte) (int16, error) {
	if len(data) != 2 {
		return 0, &LengthError{Type: "int16", Want: 2, Got: len(data)}
	}
	return int16(binary.BigEndian.Uint16(data)), nil
}

type int32Serde struct{}

func (int32Serde) NonAliasing() {}

func (int32Serde) Append(dst []byte, v int32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
}

func (int32Serde) Decode(data []byte) (int32, error) {
	if len(data) != 4 {
		return 0, &LengthError{Type: "int32", Want: 4, Got: len(data)}
	}
	return int32(binary.BigEndian.Uint32(data)), nil
}

type int64Serde struct{}

func (int64Serde) NonAliasing() {}

func (int64Serde) Append(dst []byte, v int64) ([]byte, error) {
	return appendUint64(dst, uint64(v)), nil
}

func (int64Serde) Decode(data []byte) (int64, error) {
	if len(data) != 8 {
		return 0, &LengthError{Type: "int64", Want: 8, Got: len(data)}
	}
	return int64(readUint64(data)), nil
}

type intSerde struct{}

func (intSerde) NonAliasing() {}

func (intSerde) Append(dst []byte, v int) ([]byte, error) {
	return appendUint64(dst, uint64(int64(v))), nil
}

// Decode takes 8 bytes on every platform. Where an int has 32 bits, a number beyond them is an error.
func (intSerde) Decode(data []byte) (int, error) {
	v, err := int64Serde{}.Decode(data)
	if err != nil {
		return 0, err
	}
	if int64(int(v)) != v {
		return 0, &RangeError{Type: "int"}
	}
	return int(v), nil
}

type float32Serde struct{}

func (float32Serde) NonAliasing() {}

func (float32Serde) Append(dst []byte, v float32) ([]byte, error) {
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(v)), nil
}

func (float32Serde) Decode(data []byte) (float32, error) {
	if len(data) != 4 {
		return 0, &LengthError{Type: "float32", Want: 4, Got: len(data)}
	}
	return math.Float32frombits(binary.BigEndian.Uint32(data)), nil
}

type float64Serde struct{}

func (float64Serde) NonAliasing() {}

func (float64Serde) Append(dst []byte, v float64) ([]byte, error) {
	return appendUint64(dst, math.Float64bits(v)), nil
}

func (float64Serde) Decode(data []byte) (float64, error) {
	if len(data) != 8 {
		return 0, &LengthError{Type: "float64", Want: 8, Got: len(data)}
	}
	return math.Float64frombits(readUint64(data)), nil
}
