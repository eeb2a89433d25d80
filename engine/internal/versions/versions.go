package versions

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// Version is the version of the topology that this instance runs, as others are told of it. Meet and Differs may be called from any goroutine, and what
// its fields have isn't changed.
type Version struct {
	Saved  *plansafety.Plan
	Shapes map[int32]uint64 // by sub-topology: see shapeOf
	Packed []byte           // Saved, as other members are told of it; nil if it is too large for that

	mu    sync.Mutex
	told  map[string]bool    // hashes of other versions that were logged
	other map[Place][]string // what differs from the other versions that are in the group
}

// Place is how another version is met: it leads the group, or this instance leads it.
type Place bool

// The places.
const (
	ItLeads   Place = true
	ThisLeads Place = false
)

// maxPackedPlan bounds what a member tells of its plan. Without it others say that theirs differs, but not how.
const maxPackedPlan = 64 << 10

// New makes the version of a built plan. saved is the same plan as it is saved.
func New(p *plan.Plan, saved *plansafety.Plan) *Version {
	v := &Version{Saved: saved, Shapes: map[int32]uint64{}, told: map[string]bool{}, other: map[Place][]string{}}
	for _, sub := range p.Subtopologies {
		v.Shapes[int32(sub.ID)] = shapeOf(p, sub, saved)
	}
	if data, err := packPlan(saved); err == nil && len(data) <= maxPackedPlan {
		v.Packed = data
	}
	return v
}

// Signature digests the names that make a sub-topology: nodes, topics and stores.
func Signature(p *plan.Plan, sub *plan.Subtopology) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, sub.ID, sub.Lake, sub.SourceTopics)
	for _, n := range sub.Nodes {
		fmt.Fprintln(h, n.Name, n.Kind, n.Topics, n.Pattern, n.Topic, n.Stores)
	}
	for _, name := range sub.Stores {
		s := p.Stores[name]
		fmt.Fprintln(h, name, s.Spec.Kind, s.Changelog, s.SourceAsChangelog)
	}
	return h.Sum64()
}

// shapeOf digests all that two instances must agree on about a sub-topology before one may take over a task of it from the other: besides the
// signature what is declared of its stores, tables and internal topics, such as serdes, sizes of windows, and grace.
func shapeOf(p *plan.Plan, sub *plan.Subtopology, saved *plansafety.Plan) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, Signature(p, sub))
	note := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // plain data
		}
		_, _ = h.Write(append(text, '\n')) // never fails
	}
	for _, s := range saved.Stores {
		if !s.Global && s.Subtopology == sub.ID {
			note(s)
		}
	}
	for _, t := range saved.Topics {
		t.Config = nil // a setting of the broker's
		if slices.ContainsFunc(sub.Nodes, func(n *plan.Node) bool { return n.Topic == t.Name || slices.Contains(n.Topics, t.Name) }) {
			note(t)
		}
	}
	for _, l := range saved.Lakes {
		if slices.ContainsFunc(sub.Nodes, func(n *plan.Node) bool { return n.Kind == plan.LakeNode && n.Lake.Name == l.Name }) {
			note(l)
		}
	}
	return h.Sum64()
}

// packPlan makes a saved plan small enough to be sent with each join.
func packPlan(p *plansafety.Plan) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unpackPlan reads what packPlan wrote, up to a size that no plan has.
func unpackPlan(data []byte) (*plansafety.Plan, error) {
	r := flate.NewReader(bytes.NewReader(data))
	defer r.Close()
	return plansafety.Read(io.LimitReader(r, 64<<20))
}

// Shared keeps of an assignment what is meant as this instance understands it. After a static member's restart the broker hands out what was
// decided for the former process, whose sub-topologies may have been others under the same numbers.
func (v *Version) Shared(a *assign.Assignment) assign.Placement {
	same := func(id assign.TaskID) bool {
		shape, ok := a.Shapes[id.Subtopology]
		return a.Shapes == nil && a.TopologyHash == v.Saved.Hash || ok && shape == v.Shapes[id.Subtopology]
	}
	only := func(ids []assign.TaskID) []assign.TaskID {
		return slices.DeleteFunc(slices.Clone(ids), func(id assign.TaskID) bool { return !same(id) })
	}
	return assign.Placement{Active: only(a.Active), Standbys: only(a.Standbys), Warmups: only(a.Warmups)}
}

// Meet notes which other versions are met, instead of those before, and says in the log, once for each, how they differ from this one.
func (v *Version) Meet(log *slog.Logger, at Place, met ...Other) {
	var all []string
	for _, o := range met {
		lines := v.differences(o.Plan)
		v.tell(log, o, lines)
		all = append(all, lines...)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.other[at] = all
	if len(v.other[ItLeads])+len(v.other[ThisLeads]) == 0 {
		clear(v.told)
	}
}

// Other is what was told of another version.
type Other struct {
	Who, Hash string // the member, and its topology
	Shapes    map[int32]uint64
	Plan      []byte // packed; may be empty
}

func (v *Version) tell(log *slog.Logger, o Other, lines []string) {
	v.mu.Lock()
	told := v.told[o.Hash]
	v.told[o.Hash] = true
	v.mu.Unlock()
	if told {
		return
	}
	equal, unequal := v.compareShapes(o.Shapes)
	log.Warn("another version of the topology is in the group: only tasks of sub-topologies that both declare equally are shared, the others run "+
		"where the version of the member runs that leads the group", "other", o.Who, "its_hash", o.Hash, "hash_here", v.Saved.Hash, "shared", equal, "not_shared", unequal)
	for _, line := range lines {
		log.Warn("the versions differ", "other", o.Who, "there_and_here", line)
	}
}

// Differs says in lines how the other versions in the group differ from this one.
func (v *Version) Differs() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Concat(v.other[ItLeads], v.other[ThisLeads])
}

// compareShapes lists this version's sub-topologies by whether another one declares them equally.
func (v *Version) compareShapes(others map[int32]uint64) (equal, unequal []int32) {
	equal, unequal = []int32{}, []int32{}
	for _, sub := range slices.Sorted(maps.Keys(v.Shapes)) {
		if shape, ok := others[sub]; ok && shape == v.Shapes[sub] {
			equal = append(equal, sub)
		} else {
			unequal = append(unequal, sub)
		}
	}
	return equal, unequal
}

// Declares says in words what brokers don't know of a streams group's topology, and its members must agree on: what the records of stores, internal
// topics and tables are. Operators aren't in it: with the same topics and records, versions replace each other as by Kafka Streams.
func (v *Version) Declares() map[string]string {
	all := map[string]string{}
	records := func(key, value string) string {
		return fmt.Sprintf("%s to %s", cmp.Or(key, "bytes"), cmp.Or(value, "bytes"))
	}
	for _, s := range v.Saved.Stores {
		if s.Global {
			continue
		}
		text := s.Kind + " of " + records(s.Key, s.Value)
		if s.WindowSizeMs > 0 {
			text += fmt.Sprintf(", windows of %d ms", s.WindowSizeMs)
		}
		if s.GraceMs > 0 {
			text += fmt.Sprintf(", grace %d ms", s.GraceMs)
		}
		all["store "+s.Name] = text
	}
	for _, t := range v.Saved.Topics {
		all["topic "+t.Name] = records(t.Key, t.Value)
	}
	for _, l := range v.Saved.Lakes {
		all["lake sink "+l.Name] = l.Table
	}
	return all
}

// differences says in lines what differs from another version, the other one first, as tributary diff does.
func (v *Version) differences(packed []byte) []string {
	if len(packed) == 0 {
		return []string{"the other one doesn't tell what it declares"}
	}
	other, err := unpackPlan(packed)
	if err != nil {
		return []string{"what the other one declares can't be read: " + err.Error()}
	}
	var lines []string
	for _, c := range plansafety.Compare(other, v.Saved).Changes {
		if c.Status == plansafety.Kept && len(c.Differences) == 0 {
			continue
		}
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s %s: %s; %s", c.Thing, c.Names(), c.Status, strings.Join(c.Differences, "; ")), "; "))
	}
	return append(lines, operatorsDiffer(other, v.Saved)...)
}

// operatorsDiffer says which sub-topologies have other operators.
func operatorsDiffer(other, own *plansafety.Plan) (lines []string) {
	nodes := func(p *plansafety.Plan) map[int][]string {
		all := map[int][]string{}
		for _, s := range p.Subtopologies {
			all[s.ID] = s.Nodes
		}
		return all
	}
	there, here := nodes(other), nodes(own)
	for _, id := range slices.Sorted(maps.Keys(here)) {
		if _, ok := there[id]; !ok {
			lines = append(lines, fmt.Sprintf("sub-topology %d: only here, with %s", id, strings.Join(here[id], ", ")))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(there)) {
		a, b := there[id], here[id]
		switch gone, fresh := without(a, b), without(b, a); {
		case b == nil:
			lines = append(lines, fmt.Sprintf("sub-topology %d: only there, with %s", id, strings.Join(a, ", ")))
		case len(gone)+len(fresh) > 0:
			lines = append(lines, fmt.Sprintf("sub-topology %d: only there %s; only here %s", id, listed(gone), listed(fresh)))
		}
	}
	return lines
}

func without(all, those []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(those, s) })
}

func listed(all []string) string {
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}
