package dlq

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// What has been replayed of a partition stands in one committed offset: all letters below it have been, and of those from it on the
// ranges that the offset's metadata lists.

// maxMetadata is what brokers take as an offset's metadata (offset.metadata.max.bytes is 4096 by default).
const maxMetadata = 4000

// metadataVersion begins the metadata; other texts are none of ours.
const metadataVersion = "replayed:"

// replayed tells which letters of a partition have been replayed.
type replayed struct {
	below  int64
	ranges []span // from below on, in order, apart from one another
}

// span is a range of offsets, both included.
type span struct{ first, last int64 }

func (r *replayed) has(offset int64) bool {
	if offset < r.below {
		return true
	}
	_, found := slices.BinarySearchFunc(r.ranges, offset, func(s span, o int64) int {
		switch {
		case s.last < o:
			return -1
		case s.first > o:
			return 1
		}
		return 0
	})
	return found
}

// note makes the shortest statement of what has been replayed, given the offsets of all letters in order. Offsets that hold no letter
// count as whatever is shortest. end is the partition's end.
func note(letters []int64, done func(int64) bool, end int64) replayed {
	out := replayed{below: end}
	first := slices.IndexFunc(letters, func(o int64) bool { return !done(o) })
	if first < 0 {
		return out
	}
	out.below = letters[first]
	for i := first; i < len(letters); i++ {
		if !done(letters[i]) {
			continue
		}
		if done(letters[i-1]) { // there is one before it, since letters[first] isn't done
			out.ranges[len(out.ranges)-1].last = letters[i]
			continue
		}
		out.ranges = append(out.ranges, span{letters[i], letters[i]})
	}
	return out
}

// metadata writes the ranges, as differences in base 36, so that many fit.
func (r *replayed) metadata() (string, error) {
	if len(r.ranges) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString(metadataVersion)
	at := r.below
	for i, s := range r.ranges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(s.first-at, 36))
		if s.last > s.first {
			b.WriteByte('-')
			b.WriteString(strconv.FormatInt(s.last-s.first, 36))
		}
		at = s.last
	}
	if b.Len() > maxMetadata {
		return "", fmt.Errorf("the letters that are left lie in too many pieces (%d) between replayed ones for a note of them: replay with a wider filter", len(r.ranges))
	}
	return b.String(), nil
}

// parseReplayed reads a committed offset. A negative one says that nothing has been replayed.
func parseReplayed(offset int64, metadata string) (replayed, error) {
	out := replayed{below: max(0, offset)}
	if offset < 0 || metadata == "" {
		return out, nil
	}
	text, ok := strings.CutPrefix(metadata, metadataVersion)
	if !ok {
		return out, fmt.Errorf("the offset's metadata %q is not a note of replays: another application uses the group", metadata)
	}
	at := out.below
	for part := range strings.SplitSeq(text, ",") {
		gap, length, _ := strings.Cut(part, "-")
		first, err1 := strconv.ParseInt(gap, 36, 64)
		more, err2 := strconv.ParseInt(cmp.Or(length, "0"), 36, 64)
		if err1 != nil || err2 != nil || first < 0 || more < 0 || at+first < at || at+first+more < at {
			return out, fmt.Errorf("the note of replays %q is damaged", metadata)
		}
		s := span{at + first, at + first + more}
		out.ranges = append(out.ranges, s)
		at = s.last
	}
	return out, nil
}
