package processors

import "github.com/tributary-io/tributary/serde"

// TopicSource reads a topic: it decodes keys and values and finds each record's event time.
type TopicSource[K, V any] struct {
	Key   serde.Serde[K]
	Value serde.Serde[V]
	// Extractor finds the event time; nil is FailOnInvalid.
	Extractor TimestampExtractor[K, V]
	// Table says that the topic holds a table: a null value is a delete, whatever V is. In a stream topic a null key or value is
	// an error unless its Go type can hold it.
	Table bool
}

// NewSource implements SourceSupplier.
func (s TopicSource[K, V]) NewSource(rt Runtime, children []Child) (Source, error) {
	return nil, errUnbuilt
}
