package delta

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// NewDataFileName returns a new unique name for a Parquet data file: flat, so that no partition value ever becomes part of a
// path, and of ASCII letters, digits, dots and dashes only, so that it needs no percent-encoding.
// codec is the compression's short name ("zstd", "snappy").
func NewDataFileName(codec string) string {
	return "part-" + uuid.NewString() + "." + codec + ".parquet"
}

// EncodePath turns an object name relative to the table into a path for an add action: a URI reference (RFC 2396) whose reserved
// characters are percent-encoded, and colons, since "a:b" would be a URI of the scheme a.
func EncodePath(name string) string {
	return strings.ReplaceAll((&url.URL{Path: name}).EscapedPath(), ":", "%3A")
}

// Name returns the object's name relative to the table. Absolute paths, which other engines write for shallow clones, are an
// error: this package doesn't know how to reach them.
func (a *Add) Name() (string, error) {
	if isAbsolute(a.Path) {
		return "", fmt.Errorf("data file %s lies outside of the table", a.Path)
	}
	name, err := url.PathUnescape(a.Path)
	if err != nil {
		return "", fmt.Errorf("data file path %s: %w", a.Path, err)
	}
	return name, nil
}

func isAbsolute(path string) bool {
	if strings.HasPrefix(path, "/") {
		return true
	}
	scheme, _, found := strings.Cut(path, ":")
	return found && isScheme(scheme)
}

// isScheme follows RFC 2396: a letter, then letters, digits, "+", "-" and ".".
func isScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return false
		}
	}
	return s != ""
}

// fileKey identifies a logical file in the log: its path in one spelling, with its deletion vector.
func fileKey(path string, dv *DeletionVector) string {
	key := canonicalPath(path)
	if dv != nil {
		key += "\x00" + dv.UniqueID()
	}
	return key
}

// canonicalPath makes the spellings of one path equal: percent-encoding undone, and file:/p, file:///p and /p the same.
func canonicalPath(path string) string {
	if !strings.ContainsAny(path, "%:") {
		return path
	}
	if p, err := url.PathUnescape(path); err == nil {
		path = p
	}
	if rest, ok := strings.CutPrefix(path, "file:"); ok && strings.HasPrefix(rest, "/") {
		return "/" + strings.TrimLeft(rest, "/")
	}
	return path
}
