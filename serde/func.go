package serde

// Func makes a serde of two functions. Both must be safe for concurrent use and keep the rules of Serde; decode may alias.
func Func[T any](appendTo func(dst []byte, v T) ([]byte, error), decode func(data []byte) (T, error)) Serde[T] {
	return funcSerde[T]{appendTo, decode}
}

type funcSerde[T any] struct {
	appendTo func([]byte, T) ([]byte, error)
	decode   func([]byte) (T, error)
}

func (f funcSerde[T]) Append(dst []byte, v T) ([]byte, error) { return f.appendTo(dst, v) }
func (f funcSerde[T]) Decode(data []byte) (T, error)          { return f.decode(data) }
