package golden

import (
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// materialized turns an op's materialized object into options. kind is that of a store that a supplier would make.
func (b *build) materialized(o *object, kind state.Kind) options {
	opts := b.unlogged(o, kind)
	if !o.obj("materialized").boolOr("logging", true) {
		opts = append(opts, topology.NoLogging())
	}
	return opts
}

// unlogged is materialized for a store that has no changelog anyway.
func (b *build) unlogged(o *object, kind state.Kind) options {
	m := o.obj("materialized")
	name := m.str("store")
	var opts options
	if name == "" {
		opts = append(opts, topology.Materialized()) // the serdes are always given, which Kafka Streams has only in Materialized
	} else {
		opts = append(opts, topology.Store(name))
	}
	switch {
	case m.has("versionedHistoryMs") && m.has("segmentMs"):
		opts = append(opts, topology.VersionedSegments(ms(m.int("versionedHistoryMs")), ms(m.int("segmentMs"))))
	case m.has("versionedHistoryMs"):
		opts = append(opts, topology.Versioned(ms(m.int("versionedHistoryMs"))))
	case m.int("lru") > 0:
		opts = append(opts, topology.LRU(int(m.int("lru"))))
	case m.boolOr("supplier", false):
		spec := supplied(m, name, kind)
		b.untimed[name] = spec.Kind == state.KeyValue || spec.Kind == state.Window
		opts = append(opts, topology.StoreAs(spec))
	default:
		opts = append(opts, storeType(m)...)
		if m.has("retentionMs") {
			opts = append(opts, topology.Retention(ms(m.int("retentionMs"))))
		}
	}
	m.boolOr("logging", true) // the caller's
	if m.has("caching") && b.cfg.cacheMaxBytes > 0 {
		opts = append(opts, caching(m.boolOr("caching", true)))
	}
	m.finish()
	return opts
}

func caching(on bool) topology.Option {
	if on {
		return topology.EmitOnCommit()
	}
	return topology.EmitOnUpdate()
}

func storeType(m *object) options {
	if !m.has("storeType") {
		return nil
	}
	if m.str("storeType") == "inMemory" {
		return options{topology.InMemory()}
	}
	return options{topology.OnDisk()}
}

// supplied is the store that a supplier of Kafka Streams makes.
func supplied(m *object, name string, kind state.Kind) state.Spec {
	inMemory := m.str("storeType") == "inMemory"
	if m.boolOr("plain", false) && !inMemory {
		switch kind {
		case state.TimestampedKeyValue:
			kind = state.KeyValue
		case state.TimestampedWindow:
			kind = state.Window
		}
	}
	return state.Spec{Name: name, Kind: kind, InMemory: inMemory, RetentionMs: m.int("retentionMs"), WindowSizeMs: m.int("windowMs")}
}

// storeDecl turns a STORE of the format into a declaration, and notes its types.
func (b *build) storeDecl(m *object) topology.StoreDecl {
	name, kind := m.str("name"), m.str("kind")
	types := storeTypes{key: m.typ("key"), value: m.typ("value")}
	key, value := types.key.Serde(), types.value.Serde()
	b.stores[name] = types
	var opts options
	switch m.strOr("type", "rocksDB") {
	case "inMemory":
		opts = append(opts, topology.InMemory())
	case "lru":
		opts = append(opts, topology.LRU(int(m.int("maxEntries"))))
	}
	if !m.boolOr("logging", true) {
		opts = append(opts, topology.NoLogging())
	}
	if m.boolOr("caching", false) && b.cfg.cacheMaxBytes > 0 {
		opts = append(opts, topology.EmitOnCommit())
	}
	retention, size := ms(m.int("retentionMs")), ms(m.int("windowMs"))
	defer m.finish()
	switch kind {
	case "keyValue":
		return topology.KeyValueStore(name, key, value, opts...)
	case "timestampedKeyValue":
		return topology.TimestampedKeyValueStore(name, key, value, opts...)
	case "window":
		if m.boolOr("retainDuplicates", false) {
			return topology.DuplicatesStore(name, key, value, retention, size, opts...)
		}
		return topology.WindowStore(name, key, value, retention, size, opts...)
	case "timestampedWindow":
		m.boolOr("retainDuplicates", false) // the oracle makes these without
		return topology.TimestampedWindowStore(name, key, value, retention, size, opts...)
	case "session":
		return topology.SessionStore(name, key, value, retention, opts...)
	case "versioned":
		segment := ms(m.int("segmentMs"))
		if m.has("segmentMs") && segment == 0 {
			segment = ms(-1) // 0 says here that none is given
		}
		return topology.VersionedStore(name, key, value, ms(m.int("historyMs")), segment, opts...)
	}
	m.unsupported("store kind %q", kind)
	return topology.KeyValueStore(name, key, value)
}

// storeDecls turns a list of STOREs into the option that provides them.
func (b *build) storeDecls(o *object, name string) options {
	var decls []topology.StoreDecl
	for _, m := range o.objs(name) {
		decls = append(decls, b.storeDecl(m))
	}
	if len(decls) == 0 {
		return nil
	}
	return options{topology.Provide(decls...)}
}
