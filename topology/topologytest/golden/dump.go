package golden

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-io/tributary/state"
)

// internalStores are stores whose content Kafka Streams keeps to itself, known by their names as the oracle knows them: those of
// foreign-key subscriptions, and the one that both sides of a left or outer join of streams share.
var internalStores = regexp.MustCompile(`SUBSCRIPTION-STATE-STORE|-subscription-store$|OUTERSHARED|-outer-shared-join|-left-shared-join`)

// dumpStores takes the content of all stores at the end of the run.
func (r *run) dumpStores() error {
	dumps := map[string]any{}
	for _, name := range r.driver.StoreNames() {
		dump, err := r.dumpStore(name)
		if err != nil {
			return fmt.Errorf("store %s: %w", name, err)
		}
		dumps[name] = dump
	}
	r.result["stores"] = dumps
	return nil
}

func (r *run) dumpStore(name string) (any, error) {
	spec := r.plan.Stores[name].Spec
	switch {
	case spec.Kind == state.SuppressBuffer || spec.Kind == state.JoinBuffer:
		n, err := r.driver.Held(name)
		return map[string]any{"kind": "buffer", "numEntries": n}, err
	case spec.Kind == state.JoinList || internalStores.MatchString(name):
		n, err := r.driver.Held(name)
		return map[string]any{"kind": "internal", "numEntries": n}, err
	}
	stores, err := r.driver.Stores(name, 0)
	if err != nil {
		return nil, err
	}
	types, err := r.storeTypes(name)
	if err != nil {
		return nil, err
	}
	v, err := openStore(stores, name, types)
	if err != nil {
		return nil, err
	}
	entries, err := r.entries(name, v)
	if entries == nil {
		entries = []any{}
	}
	return map[string]any{"kind": v.kind.String(), "entries": entries}, err
}

func (r *run) entries(name string, v *storeView) ([]any, error) {
	var entries []any
	add := func(e map[string]any, err error) error {
		if err == nil {
			entries = append(entries, e)
		}
		return err
	}
	switch v.kind {
	case state.KeyValue:
		for e, err := range v.plain.All() {
			if err := add(map[string]any{"key": show(e.Key), "value": show(e.Value)}, err); err != nil {
				return nil, err
			}
		}
	case state.TimestampedKeyValue:
		for e, err := range v.timestamped.All() {
			if err := add(map[string]any{"key": show(e.Key), "value": show(e.Value), "timestamp": e.Timestamp}, err); err != nil {
				return nil, err
			}
		}
	case state.Window:
		for e, err := range v.window.All(state.Forward) {
			shown := windowEntry(e.Key, e.Start, windowEnd(e.Start, v.windowSize), e.Value)
			if r.build.stores[name] == (storeTypes{}) && r.plan.Stores[name].Spec.InMemory {
				shown["timestamp"] = e.Start // Kafka Streams' in-memory stores of joins show the record's time, which is the start
			}
			if err := add(shown, err); err != nil {
				return nil, err
			}
		}
	case state.TimestampedWindow:
		for e, err := range v.stamped.All(state.Forward) {
			shown := windowEntry(e.Key, e.Start, windowEnd(e.Start, v.windowSize), e.Value)
			shown["timestamp"] = e.Timestamp
			if err := add(shown, err); err != nil {
				return nil, err
			}
		}
	case state.Session:
		for e, err := range v.session.FetchRange(nil, nil, state.Forward) {
			if err := add(windowEntry(e.Key, e.Start, e.End, e.Value), err); err != nil {
				return nil, err
			}
		}
	case state.Versioned:
		return r.versions(name, v)
	}
	return entries, nil
}

func windowEntry(key any, start, end int64, value any) map[string]any {
	return map[string]any{"key": show(key), "start": start, "end": end, "value": show(value)}
}

// versions shows every key that was ever written, which the store's own changelog tells.
func (r *run) versions(name string, v *storeView) ([]any, error) {
	var keys []string
	for _, rec := range r.driver.Records(r.cfg.applicationID+"-"+name+"-changelog", 0) {
		if key := string(rec.Key); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	var entries []any
	for _, key := range keys {
		latest, ok, err := v.versioned.Get(key)
		if err != nil {
			return nil, err
		}
		e := map[string]any{"key": key, "latest": nil}
		if ok {
			e["latest"] = map[string]any{"value": show(latest.Value), "timestamp": latest.ValidFrom}
		}
		history := []any{}
		for version, err := range v.versioned.History(key, 0, maxInt64, state.Forward) {
			if err != nil {
				return nil, err
			}
			shown := map[string]any{"value": show(version.Value), "validFrom": version.ValidFrom, "validTo": nil}
			if version.ValidTo != state.LatestVersion {
				shown["validTo"] = version.ValidTo
			}
			history = append(history, shown)
		}
		e["history"] = history
		entries = append(entries, e)
	}
	return entries, nil
}

// joinedStores are the types of the two window stores of a join of streams.
type joinedStores struct {
	base        string // given by the user: of the stores, or of the join; empty if generated
	left, right storeTypes
}

// generatedJoin are the generated names of a join's window stores. The second group is their number in the topology.
var generatedJoin = regexp.MustCompile(`^KSTREAM-(?:JOIN|OUTER)(THIS|OTHER)-(\d+)-store$`)

// storeTypes are the types of a store's keys and values.
func (r *run) storeTypes(name string) (storeTypes, error) {
	if t, ok := r.build.stores[name]; ok {
		return t, nil
	}
	for _, j := range r.build.joins {
		if j.base == "" || !strings.HasPrefix(name, j.base+"-") {
			continue
		}
		if strings.Contains(name, "other-join") {
			return j.right, nil
		}
		return j.left, nil
	}
	if t, ok := r.generatedJoinTypes(name); ok {
		return t, nil
	}
	return storeTypes{}, fmt.Errorf("internal: the runner doesn't know the types of store %s", name)
}

// generatedJoinTypes finds the join that a generated store name belongs to: the joins are in the order of their numbers. A join that
// was optimized to a self join has one store only.
func (r *run) generatedJoinTypes(name string) (storeTypes, bool) {
	var numbers []int
	for _, s := range r.driver.StoreNames() {
		if m := generatedJoin.FindStringSubmatch(s); m != nil && m[1] == "THIS" {
			n, _ := strconv.Atoi(m[2])
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	m := generatedJoin.FindStringSubmatch(name)
	if m == nil {
		return storeTypes{}, false
	}
	number, _ := strconv.Atoi(m[2])
	i := 0
	for _, j := range r.build.joins {
		if j.base != "" {
			continue
		}
		if i+1 == len(numbers) || number < numbers[i+1] {
			if m[1] == "OTHER" {
				return j.right, true
			}
			return j.left, true
		}
		i++
	}
	return storeTypes{}, false
}

// isBufferChangelog reports whether a topic is the changelog of a suppression, or of a join with grace.
func (r *run) isBufferChangelog(topic string) bool {
	for _, s := range r.plan.Stores {
		if s.Changelog == topic {
			return s.Spec.Kind == state.SuppressBuffer || s.Spec.Kind == state.JoinBuffer
		}
	}
	return false
}
