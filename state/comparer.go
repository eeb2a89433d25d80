package state

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"
)

// comparerName is written into every database: it can never change. An order or a Split that differs from this one needs another
// name, and databases that carry the old one are restored from their changelogs.
const comparerName = "tributary.state.v1"

// comparer orders keys by their bytes, with a Split that ends after the user key (see keys.go).
//
// Byte order agrees with comparing split prefixes first: no prefix that ends in a terminator is a proper prefix of another one of
// its class.
func comparer() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = comparerName
	c.Split = splitKey
	c.Separator = separator
	c.Successor = func(dst, a []byte) []byte { return append(dst, a...) }
	c.ImmediateSuccessor = immediateSuccessor
	c.Compare = bytes.Compare
	c.Equal = bytes.Equal
	return &c
}

// separator shortens index keys within plain keys only: a shortened escaped key would split elsewhere.
func separator(dst, a, b []byte) []byte {
	if len(a) > prefixLen && len(b) > prefixLen && a[2] == classPlain && bytes.Equal(a[:prefixLen], b[:prefixLen]) {
		return pebble.DefaultComparer.Separator(dst, a, b)
	}
	return append(dst, a...)
}

// immediateSuccessor gives the smallest prefix key after the prefix key a.
func immediateSuccessor(dst, a []byte) []byte {
	dst = append(dst, a...)
	if len(a) > segmentEnd && a[2] == classByKey && a[len(a)-1] == terminator && a[len(a)-2] == escape {
		dst[len(dst)-1] = afterTerminator
		return dst
	}
	return append(dst, 0)
}
