package serde

// Serde turns values of T into bytes and back.
//
// A Kafka null never reaches a serde: whether a record may carry one is decided by the Go type (see Codec).
//
// Serdes are shared by all tasks of a process and must be safe for concurrent use.
type Serde[T any] interface {
	// Append appends the encoding of v to dst and returns the extended slice, as the append built-in does.
	Append(dst []byte, v T) ([]byte, error)
	// Decode decodes data. The result may alias data: the caller promises never to modify data afterwards.
	// A serde whose results never alias says so by implementing NonAliasing, and callers may then reuse their buffers.
	Decode(data []byte) (T, error)
}

// NonAliasing marks a serde whose decoded values never alias the bytes that they were decoded from.
type NonAliasing interface {
	NonAliasing()
}

// TopicBound is implemented by serdes that depend on the topic, such as Avro with a schema registry, whose subject is
// "<topic>-key" or "<topic>-value". The topology binds them when a task is made; ForTopic must be cheap and do no I/O.
type TopicBound[T any] interface {
	Serde[T]
	ForTopic(topic string, isKey bool) Serde[T]
}

// Bind returns s bound to the topic if it is TopicBound, else s itself.
func Bind[T any](s Serde[T], topic string, isKey bool) Serde[T] {
	if b, ok := s.(TopicBound[T]); ok {
		return b.ForTopic(topic, isKey)
	}
	return s
}

// Aliases reports whether values decoded by s may alias their bytes.
func Aliases[T any](s Serde[T]) bool {
	_, ok := s.(NonAliasing)
	return !ok
}
