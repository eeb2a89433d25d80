package plan

import (
	"cmp"
	"slices"
	"unicode/utf16"
)

// HashOrder gives names, each once, in the order in which Java iterates over a HashMap or HashSet with these strings: Kafka Streams' text of a topology has
// it, and its test driver gives a topic that several patterns match to the first of them.
func HashOrder(names []string) []string {
	seen, unique := map[string]bool{}, []string(nil)
	for _, name := range names {
		if !seen[name] {
			seen[name], unique = true, append(unique, name)
		}
	}
	buckets := uint32(16)
	for len(unique)*4 > int(buckets)*3 {
		buckets *= 2
	}
	bucket := func(name string) uint32 {
		var h uint32
		for _, unit := range utf16.Encode([]rune(name)) {
			h = 31*h + uint32(unit)
		}
		return (h ^ h>>16) & (buckets - 1)
	}
	slices.SortStableFunc(unique, func(a, b string) int { return cmp.Compare(bucket(a), bucket(b)) })
	return unique
}
