package delta

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/lake/object"
)

// lastCheckpointFile is the content of _last_checkpoint (PROTOCOL.md, "Last Checkpoint File Schema"). Old readers look for the
// first keys in this order.
type lastCheckpointFile struct {
	Version       int64  `json:"version"`
	Size          int64  `json:"size"` // actions
	Parts         int    `json:"parts,omitempty"`
	SizeInBytes   int64  `json:"sizeInBytes,omitempty"`
	NumOfAddFiles int64  `json:"numOfAddFiles"`
	Checksum      string `json:"checksum,omitempty"`
}

// readLastCheckpoint returns the version that _last_checkpoint points to, -1 if there is none. It is a hint only: what is
// unreadable or fails its checksum counts as absent.
func (t *Table) readLastCheckpoint(ctx context.Context) int64 {
	data, err := t.store.Get(ctx, lastCheckpoint)
	if errors.Is(err, object.ErrNotFound) {
		return -1
	}
	var version int64
	if err == nil {
		version, err = parseLastCheckpoint(data)
	}
	if err != nil {
		t.opts.Logger.Warn("can't use _last_checkpoint; listing the whole log", "table", t.store.String(), "error", err)
		return -1
	}
	return version
}

func parseLastCheckpoint(data []byte) (int64, error) {
	var f struct {
		Version  *int64  `json:"version"`
		Checksum *string `json:"checksum"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return 0, err
	}
	if f.Version == nil || *f.Version < 0 {
		return 0, fmt.Errorf("no version in %q", data)
	}
	if f.Checksum != nil {
		want, err := jsonChecksum(data)
		if err != nil {
			return 0, err
		}
		if !strings.EqualFold(want, *f.Checksum) {
			return 0, fmt.Errorf("its checksum is %s, but its content gives %s", *f.Checksum, want)
		}
	}
	return *f.Version, nil
}

func (f lastCheckpointFile) marshal() ([]byte, error) {
	raw, err := marshalPlain(f)
	if err != nil {
		return nil, err
	}
	if f.Checksum, err = jsonChecksum(raw); err != nil {
		return nil, err
	}
	return marshalPlain(f)
}

// jsonChecksum is the MD5 of a JSON object's canonical form, without its top-level key "checksum" (PROTOCOL.md, "JSON checksum").
func jsonChecksum(data []byte) (string, error) {
	canonical, err := canonicalJSON(data)
	if err != nil {
		return "", err
	}
	sum := md5.Sum([]byte(canonical))
	return hex.EncodeToString(sum[:]), nil
}

// canonicalJSON writes every scalar with its path, sorted by path.
func canonicalJSON(data []byte) (string, error) {
	entries, err := readObject(data)
	if err != nil {
		return "", err
	}
	entries = slices.DeleteFunc(entries, func(e rawEntry) bool { return e.key == "checksum" })
	var pairs [][2]string
	for _, e := range entries {
		if pairs, err = canonicalPairs(pairs, quoteURL(e.key), e.value, 0); err != nil {
			return "", err
		}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	var out strings.Builder
	for i, p := range pairs {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(p[0] + "=" + p[1])
	}
	return out.String(), nil
}

func canonicalPairs(out [][2]string, path string, value json.RawMessage, depth int) (_ [][2]string, err error) {
	value = bytes.TrimSpace(value)
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxSchemaDepth)
	}
	switch value[0] {
	case '{':
		entries, err := readObject(value)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if out, err = canonicalPairs(out, path+"+"+quoteURL(e.key), e.value, depth+1); err != nil {
				return nil, err
			}
		}
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(value, &items); err != nil {
			return nil, err
		}
		for i, item := range items {
			if out, err = canonicalPairs(out, path+"+"+itoa(int64(i)), item, depth+1); err != nil {
				return nil, err
			}
		}
	case '"':
		var s string
		if err := json.Unmarshal(value, &s); err != nil {
			return nil, err
		}
		out = append(out, [2]string{path, quoteURL(s)})
	default:
		out = append(out, [2]string{path, string(value)})
	}
	return out, nil
}

// quoteURL percent-encodes all but the unreserved characters and puts quotes around.
func quoteURL(s string) string {
	const hexDigits = "0123456789ABCDEF"
	out := []byte{'"'}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~':
			out = append(out, c)
		default:
			out = append(out, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(append(out, '"'))
}
