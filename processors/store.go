package processors

import (
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/state"
)

// Store names a state store and the serdes that turn its bytes into Go values. What the store is (kind, retention, changelog) is
// said by its state.Spec, which the topology hands to the task.
type Store[K, V any] struct {
	Name  string
	Key   serde.Serde[K]
	Value serde.Serde[V]
}

// StoreHandle is what a processor opens a store by: a declaration of package topology, or a Store.
type StoreHandle[K, V any] interface{ handle() Store[K, V] }

func (s Store[K, V]) handle() Store[K, V] { return s }

// place is what serdes and errors are bound to: a Runtime or a BaseContext.
type place interface {
	ApplicationID() string
	NodeName() string
	Stores() state.Stores
}

// specOf finds a connected store.
func specOf(at place, name string) (state.Spec, error) {
	spec, ok := at.Stores().Spec(name)
	if !ok {
		return spec, &StoreAccessError{Node: at.NodeName(), Store: name}
	}
	return spec, nil
}

// boundSerdes binds a store's serdes to the topic that backs it up: the subjects of a schema registry are named after topics.
func boundSerdes[K, V any](at place, s Store[K, V], spec state.Spec) (serde.Codec[K], serde.Codec[V]) {
	topic := spec.SourceTopic
	if topic == "" {
		topic = spec.ChangelogTopic
	}
	if topic == "" {
		topic = at.ApplicationID() + "-" + s.Name + "-changelog"
	}
	return serde.NewCodec(bindToWrite(at, s.Key, topic, true)), serde.NewCodec(bindToWrite(at, s.Value, topic, false))
}

// openTyped opens a store through one of state's typed facades.
func openTyped[K, V, S any](at place, s Store[K, V], open func(state.Stores, string, serde.Codec[K], serde.Codec[V]) (S, error)) (S, error) {
	spec, err := specOf(at, s.Name)
	if err != nil {
		var none S
		return none, err
	}
	keys, values := boundSerdes(at, s, spec)
	return open(at.Stores(), s.Name, keys, values)
}
