package processors

// TimestampExtractor finds the event time of a record in ms since the epoch. r.Timestamp is the record's own timestamp;
// partitionTime is the largest event time seen on the partition so far, or NoTimestamp.
//
// A negative time drops the record (it is counted); an error is fatal for the task and becomes a *TimestampError.
type TimestampExtractor[K, V any] func(r *Record[K, V], raw *RawRecord, partitionTime int64) (int64, error)
