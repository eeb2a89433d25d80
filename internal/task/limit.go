package task

// SetLimit keeps Process from taking a record whose event time, in ms, is above limit: the host holds back tasks that are ahead of
// others. math.MaxInt64, which is where a task begins, is no limit.
func (t *Task) SetLimit(limit int64) { t.limit = limit }

// Ahead reports whether the last Process took nothing because the next record is above the limit.
func (t *Task) Ahead() bool { return t.ahead }

// NextTime is the event time of the record that comes next, in ms; of a task that has none ready it is the stream time.
func (t *Task) NextTime() int64 {
	if q, err := t.choose(); q != nil && err == nil {
		return q.timestamp
	}
	return t.streamTime
}
