package offsetset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Set is a set of offsets. The zero value is empty.
type Set struct {
	Below  int64  // all offsets below it are in the set
	Ranges []Span // from Below on, in order, apart from one another
}

// Span is a range of offsets, both included.
type Span struct{ First, Last int64 }

// Has reports whether the offset is in the set.
func (s *Set) Has(offset int64) bool {
	if offset < s.Below {
		return true
	}
	_, found := s.find(offset)
	return found
}

// find gives the range with the offset, or the place where one would be.
func (s *Set) find(offset int64) (int, bool) {
	return slices.BinarySearchFunc(s.Ranges, offset, func(r Span, o int64) int {
		switch {
		case r.Last < o:
			return -1
		case r.First > o:
			return 1
		}
		return 0
	})
}

// Add puts an offset into the set.
func (s *Set) Add(offset int64) {
	if s.Has(offset) {
		return
	}
	if offset == s.Below {
		s.Below++
		s.absorb()
		return
	}
	at, _ := s.find(offset)
	left := at > 0 && s.Ranges[at-1].Last == offset-1
	right := at < len(s.Ranges) && s.Ranges[at].First == offset+1
	switch {
	case left && right:
		s.Ranges[at-1].Last = s.Ranges[at].Last
		s.Ranges = slices.Delete(s.Ranges, at, at+1)
	case left:
		s.Ranges[at-1].Last = offset
	case right:
		s.Ranges[at].First = offset
	default:
		s.Ranges = slices.Insert(s.Ranges, at, Span{offset, offset})
	}
}

// absorb takes ranges that begin at Below into it.
func (s *Set) absorb() {
	for len(s.Ranges) > 0 && s.Ranges[0].First <= s.Below {
		s.Below = max(s.Below, s.Ranges[0].Last+1)
		s.Ranges = s.Ranges[1:]
	}
}

// Fit makes the set's text no longer than size bytes, by putting the gaps before the lowest ranges into the set. It reports whether it had to.
func (s *Set) Fit(size int) bool {
	cut := false
	for len(s.Ranges) > 0 && len(s.Text()) > size {
		n := len(s.Ranges)/16 + 1
		s.Below = s.Ranges[n-1].Last + 1
		s.Ranges = s.Ranges[n:]
		cut = true
	}
	return cut
}

// Text writes the ranges, as differences in base 36, so that many fit. It is empty if there are none.
func (s *Set) Text() string {
	var b strings.Builder
	at := s.Below
	for i, r := range s.Ranges {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(r.First-at, 36))
		if r.Last > r.First {
			b.WriteByte('-')
			b.WriteString(strconv.FormatInt(r.Last-r.First, 36))
		}
		at = r.Last
	}
	return b.String()
}

// Parse makes a set of what its Below and Text were. A negative below is an empty set.
func Parse(below int64, text string) (Set, error) {
	out := Set{Below: max(0, below)}
	if below < 0 || text == "" {
		return out, nil
	}
	at := out.Below
	for part := range strings.SplitSeq(text, ",") {
		gap, length, _ := strings.Cut(part, "-")
		first, err1 := strconv.ParseInt(gap, 36, 64)
		more, err2 := strconv.ParseInt(cmp.Or(length, "0"), 36, 64)
		if err1 != nil || err2 != nil || first < 0 || more < 0 || at+first < at || at+first+more < at {
			return out, fmt.Errorf("the set of offsets %q is damaged", text)
		}
		s := Span{at + first, at + first + more}
		out.Ranges = append(out.Ranges, s)
		at = s.Last
	}
	return out, nil
}
