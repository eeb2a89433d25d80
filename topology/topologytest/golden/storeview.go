package golden

import (
	"fmt"
	"strconv"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// storeTypes are the types of a store's keys and values. untimed is whether a table lies in a plain store, which Kafka Streams shows as a timestamped
// one whose times aren't known.
type storeTypes struct {
	key, value Type
	untimed    bool
}

func typesOfStore(t topicTypes) storeTypes { return storeTypes{key: t.key, value: t.value} }

// storeView opens a store of any kind with the scenario's types. Exactly one of the typed stores is set.
type storeView struct {
	kind        state.Kind
	windowSize  int64 // ms
	history     int64 // ms, of a versioned store
	plain       *state.KeyValueStore[any, any]
	timestamped *state.TimestampedKeyValueStore[any, any]
	window      *state.WindowStore[any, any]
	stamped     *state.TimestampedWindowStore[any, any]
	session     *state.SessionStore[any, any]
	versioned   *state.VersionedStore[any, any]
}

// openStore opens a store by name. An error that it can't be found comes from stores, and says why.
func openStore(stores state.Stores, name string, types storeTypes) (*storeView, error) {
	key, val := serde.NewCodec(types.key.Serde()), serde.NewCodec(types.value.Serde())
	spec, ok := stores.Spec(name)
	if !ok {
		_, err := stores.KeyValueBytes(name)
		return nil, err
	}
	if types.untimed && spec.Kind == state.KeyValue {
		spec.Kind = state.TimestampedKeyValue
	}
	if types.untimed && spec.Kind == state.Window {
		spec.Kind = state.TimestampedWindow
	}
	v := &storeView{kind: spec.Kind, windowSize: spec.WindowSizeMs, history: spec.HistoryMs}
	var err error
	switch spec.Kind {
	case state.KeyValue:
		v.plain, err = state.NewKeyValue(stores, name, key, val)
	case state.TimestampedKeyValue:
		v.timestamped, err = state.NewTimestampedKeyValue(stores, name, key, val)
	case state.Window:
		v.window, err = state.NewWindow(stores, name, key, val)
	case state.TimestampedWindow:
		v.stamped, err = state.NewTimestampedWindow(stores, name, key, val)
	case state.Session:
		v.session, err = state.NewSession(stores, name, key, val)
	case state.Versioned:
		v.versioned, err = state.NewVersioned(stores, name, key, val)
	default:
		err = unsupported("access to the %s store %s", spec.Kind, name)
	}
	return v, err
}

// get is the value of key in a key-value store and, in a timestamped one, its timestamp.
func (v *storeView) get(key any) (value any, ts int64, ok bool, err error) {
	switch v.kind {
	case state.KeyValue:
		value, ok, err = v.plain.Get(key)
	case state.TimestampedKeyValue:
		value, ts, ok, err = v.timestamped.Get(key)
	case state.Versioned:
		var version state.Version[any]
		version, ok, err = v.versioned.Get(key)
		value, ts = version.Value, version.ValidFrom
	default:
		err = fmt.Errorf("store of kind %s has no Get by key", v.kind)
	}
	return value, ts, ok, err
}

// put sets the value of a key in a plain key-value store; nil deletes.
func (v *storeView) put(key, value any) error {
	if v.plain == nil {
		return fmt.Errorf("store of kind %s can't be put to without a time", v.kind)
	}
	return v.plain.Put(key, value)
}

// stampedText shows a value with its timestamp, as store commands do.
func stampedText(v any, ts int64) string { return text(v) + "@" + strconv.FormatInt(ts, 10) }

// versionText shows a version as store commands do. Until when it was valid is lost in the facade of Kafka Streams that the
// expectations were made with.
func versionText(v state.Version[any]) string { return stampedText(v.Value, v.ValidFrom) }
