package golden

import (
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// goType ties a Go type that keys or values have in the topology to the values of the vocabulary.
//
// Values of type int64 are *int64 in streams, so that they can be null; the count of a table is an int64, which can't. Everything else
// is an any that holds a value of the vocabulary.
type goType[T any] struct {
	out   func(T) any
	in    func(any) T
	serde func(Type) serde.Serde[T]
}

var anyType = goType[any]{
	out:   func(v any) any { return v },
	in:    func(v any) any { return v },
	serde: func(t Type) serde.Serde[any] { return t.Serde() },
}

var int64Type = goType[int64]{
	out:   func(v int64) any { return v },
	in:    func(v any) int64 { return num(v) },
	serde: func(Type) serde.Serde[int64] { return serde.Int64 },
}

var nullableInt64 = goType[*int64]{
	out: func(v *int64) any {
		if v == nil {
			return nil
		}
		return *v
	},
	in: func(v any) *int64 {
		if v == nil {
			return nil
		}
		n := v.(int64)
		return &n
	},
	serde: func(Type) serde.Serde[*int64] { return serde.Ptr(serde.Int64) },
}

// pointed is the value behind a pointer that a join passes: nil for a side that is missing.
func (t goType[T]) pointed(v *T) any {
	if v == nil {
		return nil
	}
	return t.out(*v)
}

// windowType is that of keys in windows.
var windowType = inWindows(anyType)

// inWindows is the type of keys in windows.
func inWindows[K any](key goType[K]) goType[topology.Window[K]] {
	return goType[topology.Window[K]]{
		out: func(w topology.Window[K]) any { return Windowed{key.out(w.Key), w.Window.Start, w.Window.End} },
		in: func(v any) topology.Window[K] {
			w := windowOf(v)
			return topology.Window[K]{Key: key.in(w.Key), Window: processors.Window{Start: w.Start, End: w.End}}
		},
		serde: func(t Type) serde.Serde[topology.Window[K]] {
			inner := key.serde(t.plain())
			if t.window == sessionWindow {
				return processors.SessionWindowedSerde(inner)
			}
			return processors.TimeWindowedSerde(inner, t.size)
		},
	}
}
