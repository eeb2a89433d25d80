package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// hash digests what two instances must agree on: nodes, stores, topics and what is co-partitioned. Go functions can't be compared.
func (p *Plan) hash() string {
	var b strings.Builder
	fmt.Fprintln(&b, p.ApplicationID)
	b.WriteString(p.Describe())
	for _, name := range slices.Sorted(maps.Keys(p.Stores)) {
		s := p.Stores[name]
		spec := s.Spec
		spec.TopicConfig, spec.ChangelogTopic = nil, "" // printed in key order with its topic
		spec.WrittenOnce = false                        // is about memory only
		spec.Unsent = false                             // follows from the nodes
		// These fields came later: without them in the text, versions of before and after have equal hashes.
		text := strings.NewReplacer(" ChangelogTopic:", "", " Unsent:false", "", " WrittenOnce:false", "").Replace(fmt.Sprintf("%+v", spec))
		fmt.Fprintln(&b, "store", name, s.Global, s.Changelog, text)
	}
	for _, name := range slices.Sorted(maps.Keys(p.InternalTopics)) {
		t := p.InternalTopics[name]
		fmt.Fprintln(&b, "topic", name, t.Kind, t.Partitions, t.Store)
		for _, key := range slices.Sorted(maps.Keys(t.Config)) {
			fmt.Fprintln(&b, " ", key, t.Config[key])
		}
	}
	for _, g := range p.CopartitionGroups {
		fmt.Fprintln(&b, "copartitioned", g)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:12])
}

func itoa(n int) string { return strconv.Itoa(n) }
