package processors

import "github.com/tributary-io/tributary/serde"

// Store names a state store and the serdes that turn its bytes into Go values. What the store is (kind, retention, changelog) is
// said by its state.Spec, which the topology hands to the task.
type Store[K, V any] struct {
	Name  string
	Key   serde.Serde[K]
	Value serde.Serde[V]
}
