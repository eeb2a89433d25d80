package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// BufferValue is what a time-ordered buffer holds of a record, in Kafka Streams' format 3:
//
//	timestamp (8) offset (8) topic (4+n) partition (4) headers (4, each key 4+n, value 4+n)
//	prior value (4+n) old value (4+n) new value (4+n)
//
// Lengths are big endian; -1 is null, and -2 says that the old value equals the prior one.
type BufferValue struct {
	Context Context
	// Prior is the value that was last passed on, Old and New are those of the change. Nil is null.
	Prior, Old, New []byte
}

const (
	nullLength      int32 = -1
	sameAsPrior     int32 = -2
	bufferTimeBytes       = 8 // the buffer time at the end of a changelog value
)

// ErrBufferValue marks bytes that are no buffer value.
var ErrBufferValue = errors.New("state: malformed buffer value")

// AppendBufferValue appends the encoding of v.
func AppendBufferValue(dst []byte, v *BufferValue) []byte {
	dst = appendContext(dst, &v.Context)
	dst = appendNullable(dst, v.Prior)
	if v.Old != nil && v.Prior != nil && bytes.Equal(v.Old, v.Prior) {
		dst = appendInt32(dst, sameAsPrior)
	} else {
		dst = appendNullable(dst, v.Old)
	}
	return appendNullable(dst, v.New)
}

func appendContext(dst []byte, c *Context) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Timestamp))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Offset))
	dst = append(appendInt32(dst, int32(len(c.Topic))), c.Topic...)
	dst = appendInt32(dst, c.Partition)
	dst = appendInt32(dst, int32(len(c.Headers)))
	for _, h := range c.Headers {
		dst = append(appendInt32(dst, int32(len(h.Key))), h.Key...)
		dst = appendNullable(dst, h.Value)
	}
	return dst
}

func appendInt32(dst []byte, n int32) []byte { return binary.BigEndian.AppendUint32(dst, uint32(n)) }

func appendNullable(dst, b []byte) []byte {
	if b == nil {
		return appendInt32(dst, nullLength)
	}
	return append(appendInt32(dst, int32(len(b))), b...)
}

// DecodeBufferValue decodes a buffer value and gives what follows it. The result's bytes lie in b.
func DecodeBufferValue(b []byte) (v BufferValue, rest []byte, err error) {
	d := decoder{b: b}
	d.context(&v.Context)
	v.Prior = d.nullable()
	if n := d.int32(); n == sameAsPrior {
		v.Old = v.Prior
	} else {
		v.Old = d.bytes(n)
	}
	v.New = d.nullable()
	if d.failed {
		return BufferValue{}, nil, fmt.Errorf("%d bytes: %w", len(b), ErrBufferValue)
	}
	return v, d.b, nil
}

// decoder takes a buffer value apart. After a failure it gives zeros.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) take(n int) []byte {
	if d.failed || n < 0 || n > len(d.b) {
		d.failed = true
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) bytes(n int32) []byte {
	if n == nullLength {
		return nil
	}
	return d.take(int(n))
}

func (d *decoder) nullable() []byte { return d.bytes(d.int32()) }

func (d *decoder) context(c *Context) {
	c.Timestamp = d.int64()
	c.Offset = d.int64()
	c.Topic = string(d.take(int(d.int32())))
	c.Partition = d.int32()
	n := d.int32()
	const minHeader = 8
	if n == -1 || n == 0 { // -1: no headers, in values written by old versions
		return
	}
	if n < 0 || int64(n)*minHeader > int64(len(d.b)) {
		d.failed = true
		return
	}
	c.Headers = make([]Header, n)
	for i := range c.Headers {
		c.Headers[i] = Header{Key: string(d.take(int(d.int32()))), Value: d.nullable()}
	}
}

// residentBytes is the size of a buffered record by which suppression limits are measured, as Kafka Streams estimates it.
func (v *BufferValue) residentBytes(keyLen int) int64 {
	n := keyLen + len(v.Prior) + len(v.New) + 8 + 8 + 4 + len(v.Context.Topic)
	if !bytes.Equal(v.Old, v.Prior) {
		n += len(v.Old)
	}
	for _, h := range v.Context.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}
