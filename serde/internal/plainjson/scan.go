package plainjson

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unicode/utf8"
)

// scanner is a place in a text.
type scanner struct {
	data []byte
	at   int
}

// peek gives the byte at the place, 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

// take goes past c, if it is there.
func (s *scanner) take(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\n', '\r', '\t':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) literal(word string) bool {
	if len(s.data)-s.at < len(word) || string(s.data[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

// name goes past the name of a member, up to its value.
func (s *scanner) name() ([]byte, bool) {
	from, end, ok := s.plainString()
	if !ok {
		return nil, false
	}
	s.space()
	if !s.take(':') {
		return nil, false
	}
	s.space()
	return s.data[from:end], true
}

const (
	each = 0x0101010101010101
	high = 0x80 * each
)

// plainString goes past a string without escapes, and gives where it lies.
func (s *scanner) plainString() (from, end int, ok bool) {
	if !s.take('"') {
		return 0, 0, false
	}
	data, i := s.data, s.at
	var outside byte // some byte that isn't ASCII
	for {
		// Eight bytes at a time, up to the first that is a quote, a backslash, a control character or not ASCII.
		for ; i+8 <= len(data); i += 8 {
			x := binary.LittleEndian.Uint64(data[i:])
			if found := (x | (x - ' '*each) | ((x ^ '"'*each) - each) | ((x ^ '\\'*each) - each)) & high; found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
		}
		for ; i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' && data[i] < utf8.RuneSelf; i++ {
		}
		if i == len(data) {
			return 0, 0, false
		}
		c := data[i]
		if c == '"' {
			from, s.at = s.at, i+1
			return from, i, outside == 0 || utf8.Valid(data[from:i])
		}
		if c < utf8.RuneSelf {
			return 0, 0, false
		}
		outside = c
		for ; i < len(data) && data[i] >= utf8.RuneSelf; i++ {
		}
	}
}

// digits goes past a whole number that isn't negative.
func (s *scanner) digits() (n uint64, ok bool) {
	from := s.at
	for ; s.at < len(s.data); s.at++ {
		d := uint64(s.data[s.at] - '0')
		if d > 9 {
			break
		}
		if n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if s.at == from || s.data[from] == '0' && s.at > from+1 {
		return 0, false
	}
	switch s.peek() {
	case '.', 'e', 'E':
		return 0, false
	}
	return n, true
}

// number goes past a number.
func (s *scanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.some() {
		return false
	}
	if s.take('.') && !s.some() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.some()
	}
	return true
}

// some goes past digits, of which there has to be one.
func (s *scanner) some() bool {
	from := s.at
	for s.at < len(s.data) && s.data[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at > from
}

// deepest is how deep what is skipped may be nested.
const deepest = 32

// skip goes past a value.
func (s *scanner) skip(depth int) bool {
	switch s.peek() {
	case '"':
		_, _, ok := s.plainString()
		return ok
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	case '{':
		return depth < deepest && s.skipAll('}', depth)
	case '[':
		return depth < deepest && s.skipAll(']', depth)
	}
	return s.number()
}

// skipAll goes past an object or an array that ends with end.
func (s *scanner) skipAll(end byte, depth int) bool {
	s.at++
	s.space()
	if s.take(end) {
		return true
	}
	for {
		if end == '}' {
			if _, ok := s.name(); !ok {
				return false
			}
		}
		if !s.skip(depth + 1) {
			return false
		}
		s.space()
		if s.take(end) {
			return true
		}
		if !s.take(',') {
			return false
		}
		s.space()
	}
}
