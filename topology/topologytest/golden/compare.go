package golden

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Group is what sections are judged as.
type Group string

// The groups of sections, as FORMAT.md of the scenarios tells them apart.
const (
	Semantics Group = "semantics" // error, outputs, observed, queries, droppedRecords
	Stores    Group = "stores"
	Wire      Group = "wire"  // changelogs, repartitions
	Names     Group = "names" // subtopologies, globalStores, describe
)

// Groups lists them in the order of the report.
var Groups = []Group{Semantics, Stores, Wire, Names}

// section is one section of a scenario's expect part. norm brings both sides into a form that can be compared in order.
type section struct {
	name  string
	group Group
	norm  func(v any) any
}

var sections = []section{
	{"error", Semantics, normError},
	{"outputs", Semantics, nil},
	{"observed", Semantics, nil},
	{"queries", Semantics, nil},
	{"droppedRecords", Semantics, nil},
	{"stores", Stores, normStores},
	{"changelogs", Wire, nil},
	{"repartitions", Wire, nil},
	{"subtopologies", Names, normSubtopologies},
	{"globalStores", Names, normSet},
	{"describe", Names, normDescribe},
}

// Difference is the first difference of a section.
type Difference struct {
	Section string `json:"section"`
	Group   Group  `json:"group"`
	// Path leads to the place within the section, such as "out[2].value".
	Path string `json:"path"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

func (d Difference) String() string {
	where := d.Section
	if d.Path != "" {
		where += " " + d.Path
	}
	return fmt.Sprintf("%s: want %s, got %s", where, clip(d.Want), clip(d.Got))
}

func clip(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}

// Compare returns the first difference of each section in which got is not what the scenario expects.
//
// A run that stopped at an error has no stores section; one that should have stopped and did not differs in error.
func Compare(s *Scenario, got Result) []Difference {
	var diffs []Difference
	for _, sec := range sections {
		want, have := s.expect[sec.name], got[sec.name]
		if sec.name == "describe" {
			// Where optimization rewrites the topology at start, describeBeforeStart is what a user sees after Build.
			if v, ok := s.expect["describeBeforeStart"]; ok && v == have {
				want = v
			}
		}
		if sec.norm != nil {
			want, have = sec.norm(want), sec.norm(have)
		}
		if path, w, h, ok := firstDifference("", want, have); !ok {
			diffs = append(diffs, Difference{sec.name, sec.group, path, w, h})
		}
	}
	return diffs
}

// missing stands for "not there" in messages.
const missing = "nothing"

func firstDifference(path string, want, got any) (where, w, g string, ok bool) {
	switch want := want.(type) {
	case map[string]any:
		if got, isMap := got.(map[string]any); isMap {
			return mapDifference(path, want, got)
		}
	case []any:
		if got, isList := got.([]any); isList {
			return listDifference(path, want, got)
		}
	}
	w, g = string(appendTree(nil, want)), string(appendTree(nil, got))
	return path, w, g, w == g
}

func mapDifference(path string, want, got map[string]any) (where, w, g string, ok bool) {
	keys := map[string]bool{}
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	for _, k := range sortedKeys(keys) {
		sub := k
		if path != "" {
			sub = path + "." + k
		}
		a, inWant := want[k]
		b, inGot := got[k]
		switch {
		case !inWant:
			return sub, missing, string(appendTree(nil, b)), false
		case !inGot:
			return sub, string(appendTree(nil, a)), missing, false
		}
		if where, w, g, ok := firstDifference(sub, a, b); !ok {
			return where, w, g, false
		}
	}
	return "", "", "", true
}

func listDifference(path string, want, got []any) (where, w, g string, ok bool) {
	for i := range max(len(want), len(got)) {
		sub := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= len(want):
			return sub, missing, string(appendTree(nil, got[i])), false
		case i >= len(got):
			return sub, string(appendTree(nil, want[i])), missing, false
		}
		if where, w, g, ok := firstDifference(sub, want[i], got[i]); !ok {
			return where, w, g, false
		}
	}
	return "", "", "", true
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// normError keeps what is to be compared of an error: where it happened and of what kind it is.
func normError(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	return map[string]any{"at": m["at"], "kind": m["kind"]}
}

// normSet sorts a list by its elements' text.
func normSet(v any) any {
	l, ok := v.([]any)
	if !ok {
		return v
	}
	l = slices.Clone(l)
	slices.SortFunc(l, func(a, b any) int { return strings.Compare(string(appendTree(nil, a)), string(appendTree(nil, b))) })
	return l
}

// normStores sorts the entries of every store. Headers, which only Kafka Streams' in-memory stores of stream joins show, are left out: the
// format has none in stores.
func normStores(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for name, store := range m {
		s, _ := store.(map[string]any)
		entries, _ := s["entries"].([]any)
		for i, e := range entries {
			if e, ok := e.(map[string]any); ok && e["headers"] != nil {
				e = maps.Clone(e)
				delete(e, "headers")
				entries[i] = e
			}
		}
		out[name] = normFields(store, "entries")
	}
	return out
}

// normSubtopologies sorts the inner lists of every sub-topology, and the sub-topologies by id.
func normSubtopologies(v any) any {
	l, ok := v.([]any)
	if !ok {
		return v
	}
	out := make([]any, len(l))
	for i, sub := range l {
		sub = normFields(sub, "sources", "sinks", "stores", "internalRepartitionTopics", "changelogTopics")
		m := sub.(map[string]any)
		nodes, _ := m["nodes"].([]any)
		sorted := make([]any, len(nodes))
		for j, n := range nodes {
			sorted[j] = normFields(n, "topics", "stores", "predecessors", "successors")
		}
		m["nodes"] = normSet(sorted)
		out[i] = m
	}
	slices.SortStableFunc(out, func(a, b any) int {
		return strings.Compare(text64(a.(map[string]any)["id"]), text64(b.(map[string]any)["id"]))
	})
	return out
}

// text64 pads a number so that texts sort as numbers do.
func text64(v any) string { return fmt.Sprintf("%20s", appendTree(nil, v)) }

// normFields returns a copy of an object in which the named lists are sorted.
func normFields(v any, fields ...string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(m))
	for k, x := range m {
		out[k] = x
		if slices.Contains(fields, k) {
			out[k] = normSet(x)
		}
	}
	return out
}

// normDescribe cuts the text of a description into sub-topologies and these into nodes, whose order is not significant, nor is
// that of stores within brackets or the class of a topic name extractor.
func normDescribe(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	var out, nodes []any
	var node []string
	endNode := func() {
		if node != nil {
			nodes = append(nodes, strings.Join(node, "\n"))
		}
		node = nil
	}
	endSub := func() {
		endNode()
		out = append(out, normSet(nodes))
		nodes = nil
	}
	for line := range strings.Lines(s) {
		line = normLine(strings.TrimRight(line, "\n"))
		switch {
		case line == "":
			endNode()
		case strings.HasPrefix(strings.TrimLeft(line, " "), "Sub-topology:"), line == "Topologies:":
			endSub()
			nodes = append(nodes, line)
		case strings.HasPrefix(line, "      "):
			node = append(node, line)
		default:
			endNode()
			node = []string{line}
		}
	}
	endSub()
	return out
}

func normLine(line string) string {
	if before, _, ok := strings.Cut(line, "extractor class: "); ok {
		return before + "extractor class: …)"
	}
	before, inside, ok := strings.Cut(line, "[")
	inside, after, closed := strings.Cut(inside, "]")
	if !ok || !closed {
		return line
	}
	names := strings.Split(inside, ", ")
	sort.Strings(names)
	return before + "[" + strings.Join(names, ", ") + "]" + after
}
