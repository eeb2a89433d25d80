package golden

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology"
)

// asBuildError is the library's error about a wrong topology, or nil.
func asBuildError(err error) *topology.BuildError {
	var e *topology.BuildError
	errors.As(err, &e)
	return e
}

// kindOfBuild is the format's kind of a build error: that of the first problem, at which Kafka Streams stops.
func kindOfBuild(e *topology.BuildError) string {
	if e.Problems[0].Kind == topology.InvalidArgument {
		return kindInvalidArgument
	}
	return kindTopology
}

// is reports whether err is or wraps an E.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// refusedError is the error of strictString's serializer.
type refusedError struct{ value string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("strictString refuses the value %q", e.value)
}

// kindOfRun is the format's kind of an error that stopped the topology. The order is the oracle's.
func kindOfRun(err error) string {
	switch {
	case is[*userError](err):
		return kindUserFunction
	case is[*processors.UnknownChildError](err):
		return kindUnknownChild
	case is[*processors.StoreAccessError](err):
		return kindStoreAccess
	case is[*processors.DeserializationError](err):
		return kindDeserialization
	case is[*processors.TimestampError](err):
		return kindInvalidTimestamp
	case is[*processors.BufferFullError](err):
		return kindBufferFull
	case is[*processors.SerializationError](err), is[*refusedError](err): // the latter where a store refuses
		return kindSerialization
	case is[*nullError](err), is[*processors.NegativeTimeError](err), is[*processors.NullError](err), is[runtime.Error](err), errors.Is(err, state.ErrNullKey):
		return kindInvalidArgument
	}
	return kindOther
}
