package golden

import (
	"strconv"

	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/topology"
)

// extractor finds a timestamp extractor by its spec, for a source of the given Go types.
func extractor[K, V any](spec string, value goType[V]) (processors.TimestampExtractor[K, V], error) {
	name, a := split(spec)
	switch name {
	case "recordTime", "failOnInvalid":
		return processors.FailOnInvalid[K, V](), nil
	case "logAndSkip":
		return processors.LogAndSkip[K, V](), nil
	case "usePartitionTime":
		return processors.UsePartitionTime[K, V](), nil
	case "fieldTime":
		return fromValue[K](value, func(v any, _ int64) int64 { return timeOr(fieldInt(v, a), -1) }), nil
	case "fieldTimeOrPartitionTime":
		return fromValue[K](value, func(v any, partitionTime int64) int64 { return timeOr(fieldInt(v, a), partitionTime) }), nil
	case "valueTime":
		return fromValue[K](value, func(v any, _ int64) int64 { return valueTime(v) }), nil
	case "plus":
		n, err := number64(spec, a)
		return func(r *processors.Record[K, V], _ *processors.RawRecord, _ int64) (int64, error) {
			return r.Timestamp + n, nil
		}, err
	case "partitionTime":
		return fromValue[K](value, func(_ any, partitionTime int64) int64 { return partitionTime }), nil
	}
	return nil, unsupported("timestamp extractor %q", spec)
}

func fromValue[K, V any](value goType[V], f func(v any, partitionTime int64) int64) processors.TimestampExtractor[K, V] {
	return func(r *processors.Record[K, V], _ *processors.RawRecord, partitionTime int64) (int64, error) {
		if r.ValueNull {
			return f(nil, partitionTime), nil
		}
		return f(value.out(r.Value), partitionTime), nil
	}
}

func timeOr(t any, other int64) int64 {
	if t == nil {
		return other
	}
	return t.(int64)
}

// valueTime reads a time from a decimal string; -1 if it is none.
func valueTime(v any) int64 {
	s, _ := v.(string)
	t, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return t
}

// defaultExtractor finds the extractor of a whole topology, which sees bytes only.
func defaultExtractor(spec string) (topology.DefaultTimestamps, error) {
	e, err := extractor[any](spec, anyType)
	return func(raw *processors.RawRecord, partitionTime int64) (int64, error) {
		return e(&processors.Record[any, any]{Timestamp: raw.Timestamp, ValueNull: true}, raw, partitionTime)
	}, err
}
