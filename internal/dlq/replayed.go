package dlq

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/internal/offsetset"
)

// What has been replayed of a partition stands in one committed offset and its metadata: see package offsetset.

// maxMetadata is what brokers take as an offset's metadata (offset.metadata.max.bytes is 4096 by default).
const maxMetadata = 4000

// metadataVersion begins the metadata; other texts are none of ours.
const metadataVersion = "replayed:"

// replayed tells which letters of a partition have been replayed.
type replayed struct{ offsetset.Set }

// note makes the shortest statement of what has been replayed, given the offsets of all letters in order. Offsets that hold no letter
// count as whatever is shortest. end is the partition's end.
func note(letters []int64, done func(int64) bool, end int64) replayed {
	out := replayed{offsetset.Set{Below: end}}
	first := slices.IndexFunc(letters, func(o int64) bool { return !done(o) })
	if first < 0 {
		return out
	}
	out.Below = letters[first]
	for i := first; i < len(letters); i++ {
		if !done(letters[i]) {
			continue
		}
		if done(letters[i-1]) { // there is one before it, since letters[first] isn't done
			out.Ranges[len(out.Ranges)-1].Last = letters[i]
			continue
		}
		out.Ranges = append(out.Ranges, offsetset.Span{First: letters[i], Last: letters[i]})
	}
	return out
}

// metadata is what stands beside the offset.
func (r *replayed) metadata() (string, error) {
	if len(r.Ranges) == 0 {
		return "", nil
	}
	text := metadataVersion + r.Text()
	if len(text) > maxMetadata {
		return "", fmt.Errorf("the letters that are left lie in too many pieces (%d) between replayed ones for a note of them: replay with a wider filter", len(r.Ranges))
	}
	return text, nil
}

// parseReplayed reads a committed offset. A negative one says that nothing has been replayed.
func parseReplayed(offset int64, metadata string) (replayed, error) {
	text, ok := strings.CutPrefix(metadata, metadataVersion)
	if offset < 0 || metadata == "" {
		text, ok = "", true
	} else if text == "" {
		ok = false
	}
	if !ok {
		return replayed{}, fmt.Errorf("the offset's metadata %q is not a note of replays: another application uses the group", metadata)
	}
	set, err := offsetset.Parse(offset, text)
	if err != nil {
		return replayed{}, fmt.Errorf("note of replays: %w", err)
	}
	return replayed{set}, nil
}
