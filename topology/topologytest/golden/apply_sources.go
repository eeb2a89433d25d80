package golden

import (
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// applySource adds sources and stores.
func (b *build) applySource(op string, o *object) (known bool, err error) {
	switch op {
	case "stream":
		return true, b.addStream(o)
	case "table":
		return true, b.addTable(o)
	case "globalTable":
		return true, b.addGlobalTable(o)
	case "addStateStore":
		b.b.AddStateStore(b.storeDecl(o.obj("store")))
		return true, nil
	case "addGlobalStore":
		return true, b.addGlobalStore(o)
	}
	return false, nil
}

// consumed are the options of a source that reads values of the Go type.
func consumed[K, V any](o *object, value goType[V]) (options, error) {
	opts := named(o)
	if o.has("timestampExtractor") {
		e, err := extractor[K](o.str("timestampExtractor"), value)
		if err != nil {
			return nil, err
		}
		opts = append(opts, topology.Timestamps(e))
	}
	if o.has("offsetReset") {
		reset, ok := map[string]topology.OffsetReset{"earliest": topology.Earliest, "latest": topology.Latest, "none": topology.Fail}[o.str("offsetReset")]
		if !ok {
			return nil, unsupported("offset reset %q", o.str("offsetReset"))
		}
		opts = append(opts, topology.Reset(reset))
	}
	return opts, nil
}

func (b *build) addStream(o *object) error {
	types := topicTypes{o.typ("key"), o.typ("value")}
	if types.key.isWindowed() && !b.nullKeys {
		return addStreamBy(b, o, types, windowType)
	}
	return addStreamBy(b, o, types, anyType)
}

func addStreamBy[K any](b *build, o *object, types topicTypes, key goType[K]) error {
	if types.value == typeInt64 {
		return addStreamOf(b, o, types, key, nullableInt64)
	}
	return addStreamOf(b, o, types, key, anyType)
}

func addStreamOf[K, V any](b *build, o *object, types topicTypes, k goType[K], value goType[V]) error {
	opts, err := consumed[K](o, value)
	if err != nil {
		return err
	}
	key, val := k.serde(types.key), value.serde(types.value)
	var s *topology.Stream[K, V]
	switch {
	case o.has("pattern"):
		b.notePattern(o.str("pattern"), types)
		s = b.b.StreamPattern(o.str("pattern"), key, val, opts...)
	case o.has("topics"):
		b.noteInput(types, o.strs("topics")...)
		s = b.b.Streams(o.strs("topics"), key, val, opts...)
	default:
		b.noteInput(types, o.str("topic"))
		s = b.b.Stream(o.str("topic"), key, val, opts...)
	}
	b.put(o, &stream[K, V]{s, k, value, types.key, types.value})
	return nil
}

func (b *build) addTable(o *object) error {
	types := topicTypes{o.typ("key"), o.typ("value")}
	if types.key.isWindowed() {
		return addTableBy(b, o, types, windowType)
	}
	return addTableBy(b, o, types, anyType)
}

func addTableBy[K any](b *build, o *object, types topicTypes, key goType[K]) error {
	if types.value == typeInt64 {
		return addTableOf(b, o, types, key, nullableInt64)
	}
	return addTableOf(b, o, types, key, anyType)
}

func addTableOf[K, V any](b *build, o *object, types topicTypes, key goType[K], value goType[V]) error {
	opts, err := consumed[K](o, value)
	if err != nil {
		return err
	}
	if o.has("materialized") {
		opts = append(opts, b.materialized(o, state.TimestampedKeyValue)...)
	}
	b.noteInput(types, o.str("topic"))
	t := b.b.Table(o.str("topic"), key.serde(types.key), value.serde(types.value), opts...)
	b.put(o, newTable(b, t, key, value, types))
	return nil
}

// globalNode is a global table.
type globalNode struct {
	t    *topology.GlobalTable[any, any]
	both topicTypes
}

func (g *globalNode) types() topicTypes { return g.both }

func (b *build) addGlobalTable(o *object) error {
	types := topicTypes{o.typ("key"), o.typ("value")}
	opts, err := consumed[any](o, anyType)
	if err != nil {
		return err
	}
	if o.has("materialized") {
		opts = append(opts, b.unlogged(o, state.TimestampedKeyValue)...)
	}
	b.noteInput(types, o.str("topic"))
	t := b.b.GlobalTable(o.str("topic"), types.key.Serde(), types.value.Serde(), opts...)
	b.stores[t.StoreName()] = storeTypes{types.key, types.value, b.untimed[t.StoreName()]}
	b.put(o, &globalNode{t, types})
	return nil
}

func (b *build) addGlobalStore(o *object) error {
	types := topicTypes{o.typ("key"), o.typ("value")}
	opts, err := consumed[any](o, anyType)
	if err != nil {
		return err
	}
	store := b.storeDecl(o.obj("store"))
	k, err := parseKind(o.obj("processor"), types.key, types.value, b.stores)
	if err != nil {
		return err
	}
	b.noteInput(types, o.str("topic"))
	newProcessor := asProcessor(k, anyType, anyType, anyType, anyType)
	b.b.AddGlobalStore(store, o.str("topic"), types.key.Serde(), types.value.Serde(), newProcessor, opts...)
	return nil
}
