package state

import (
	"bytes"
	"encoding/binary"
	"math"
)

// This file holds the layout of keys in the base and in the write buffer. It is durable: see docs/format/state-pebble.md.
//
// A key starts with the store's number (2 bytes) and a class byte:
//
//	meta     store | 0 | ...                                  what the DB keeps about itself and its stores
//	plain    store | 1 | user key                             key-value rows, latest versions
//	by key   store | 2 | segment | user key, escaped | ...    rows and indexes that are found by user key
//	by time  store | 3 | segment | time | ...                 rows that are scanned in time order
//
// The escaped user key delimits itself and keeps its order, so that Pebble's bloom filters can hold "store | segment | user key"
// (the comparer's Split ends there) and one probe tells whether a segment has anything of a key.

const (
	classMeta   byte = 0
	classPlain  byte = 1
	classByKey  byte = 2
	classByTime byte = 3

	prefixLen  = 3              // store and class
	segmentEnd = prefixLen + 8  // prefix and segment
	metaStore  = math.MaxUint16 // the DB's own entries
	minStoreID = 1
	maxStoreID = metaStore - 1
)

const (
	escape     byte = 0x00 // 0x00 in a user key becomes 0x00 0xff
	escapedNul byte = 0xff
	terminator byte = 0x01 // 0x00 0x01 ends a user key
	// afterTerminator follows escape in bounds that come after all rows of a user key.
	afterTerminator byte = 0x02
)

func appendPrefix(dst []byte, store uint16, class byte) []byte {
	return append(dst, byte(store>>8), byte(store), class)
}

// appendOrdered appends v so that byte order is numeric order.
func appendOrdered(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^1<<63)
}

func ordered(b []byte) int64 { return int64(binary.BigEndian.Uint64(b) ^ 1<<63) }

// appendOrderedDesc appends v so that byte order is descending numeric order.
func appendOrderedDesc(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, ^(uint64(v) ^ 1<<63))
}

func orderedDesc(b []byte) int64 { return int64(^binary.BigEndian.Uint64(b) ^ 1<<63) }

// appendEscaped appends the user key and its terminator.
func appendEscaped(dst, key []byte) []byte {
	return append(appendEscapedOpen(dst, key), escape, terminator)
}

// appendEscapedOpen appends the user key without its terminator.
func appendEscapedOpen(dst, key []byte) []byte {
	for {
		i := bytes.IndexByte(key, escape)
		if i < 0 {
			return append(dst, key...)
		}
		dst = append(dst, key[:i]...)
		dst = append(dst, escape, escapedNul)
		key = key[i+1:]
	}
}

// cutEscaped splits an escaped user key off b. The key is in b itself where nothing was escaped, else in scratch.
func cutEscaped(b []byte, scratch *[]byte) (key, rest []byte, ok bool) {
	i := bytes.IndexByte(b, escape)
	if i < 0 || i+1 >= len(b) {
		return nil, nil, false
	}
	if b[i+1] == terminator {
		return b[:i:i], b[i+2:], true
	}
	out := (*scratch)[:0]
	for {
		out = append(out, b[:i]...)
		switch b[i+1] {
		case terminator:
			*scratch = out
			return out, b[i+2:], true
		case escapedNul:
			out = append(out, escape)
		default:
			return nil, nil, false
		}
		b = b[i+2:]
		if i = bytes.IndexByte(b, escape); i < 0 || i+1 >= len(b) {
			return nil, nil, false
		}
	}
}

// splitKey gives the length of the part of a key that bloom filters hold.
func splitKey(key []byte) int {
	if len(key) < segmentEnd || key[2] != classByKey {
		return len(key)
	}
	for i := segmentEnd; ; {
		n := bytes.IndexByte(key[i:], escape)
		if n < 0 || i+n+1 >= len(key) {
			return len(key)
		}
		i += n + 2
		if key[i-1] == terminator {
			return i
		}
	}
}

// successor appends the smallest key that does not start with prefix; ok is false if there is none.
func successor(dst, prefix []byte) (_ []byte, ok bool) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			dst = append(dst, prefix[:i+1]...)
			dst[len(dst)-1]++
			return dst, true
		}
	}
	return dst, false
}

// The keys of changelog records, as Kafka Streams lays them out.

const (
	windowKeySuffix  = 12 // window start, sequence number
	sessionKeySuffix = 16 // session end, session start
)

// AppendWindowKey appends the changelog key of a window: key, start (8 bytes), sequence number (4 bytes).
func AppendWindowKey(dst, key []byte, start int64, seq uint32) []byte {
	dst = append(dst, key...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(start))
	return binary.BigEndian.AppendUint32(dst, seq)
}

// CutWindowKey takes a window's changelog key apart. ok is false if it is too short.
func CutWindowKey(b []byte) (key []byte, start int64, seq uint32, ok bool) {
	n := len(b) - windowKeySuffix
	if n < 0 {
		return nil, 0, 0, false
	}
	return b[:n:n], int64(binary.BigEndian.Uint64(b[n:])), binary.BigEndian.Uint32(b[n+8:]), true
}

// AppendSessionKey appends the changelog key of a session: key, end (8 bytes), start (8 bytes).
func AppendSessionKey(dst, key []byte, start, end int64) []byte {
	dst = append(dst, key...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(end))
	return binary.BigEndian.AppendUint64(dst, uint64(start))
}

// CutSessionKey takes a session's changelog key apart. ok is false if it is too short.
func CutSessionKey(b []byte) (key []byte, start, end int64, ok bool) {
	n := len(b) - sessionKeySuffix
	if n < 0 {
		return nil, 0, 0, false
	}
	return b[:n:n], int64(binary.BigEndian.Uint64(b[n+8:])), int64(binary.BigEndian.Uint64(b[n:])), true
}
