package processors

// TimestampExtractor finds the event time of a record in ms since the epoch. r.Timestamp is the record's own timestamp in its topic;
// partitionTime is the largest event time seen on the partition so far, or NoTimestamp.
//
// A negative time drops the record, which is logged and counted; an error is fatal for the task and becomes a *TimestampError, which names the
// record.
type TimestampExtractor[K, V any] func(r *Record[K, V], raw *RawRecord, partitionTime int64) (int64, error)

// FailOnInvalid takes the record's own timestamp, and fails on a negative one. It is the default.
func FailOnInvalid[K, V any]() TimestampExtractor[K, V] {
	return func(r *Record[K, V], raw *RawRecord, _ int64) (int64, error) {
		if r.Timestamp < 0 {
			return 0, invalidTimestamp(raw)
		}
		return r.Timestamp, nil
	}
}

// LogAndSkip takes the record's own timestamp, and drops records with a negative one.
func LogAndSkip[K, V any]() TimestampExtractor[K, V] {
	return func(r *Record[K, V], _ *RawRecord, _ int64) (int64, error) { return r.Timestamp, nil }
}

// UsePartitionTime takes the record's own timestamp, or, where that is negative, the partition's time. It fails while there is none.
func UsePartitionTime[K, V any]() TimestampExtractor[K, V] {
	return func(r *Record[K, V], raw *RawRecord, partitionTime int64) (int64, error) {
		switch {
		case r.Timestamp >= 0:
			return r.Timestamp, nil
		case partitionTime >= 0:
			return partitionTime, nil
		}
		return 0, invalidTimestamp(raw)
	}
}

func invalidTimestamp(raw *RawRecord) error {
	return &TimestampError{Topic: raw.Topic, Partition: raw.Partition, Offset: raw.Offset, Timestamp: raw.Timestamp}
}
