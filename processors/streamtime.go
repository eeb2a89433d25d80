package processors

// streamTime is the largest event time that a node has seen. Unlike Kafka Streams' operators, which begin anew, it is kept with the
// committed offsets: a restart decides no lateness differently.
type streamTime struct {
	now int64 // ms, or NoTimestamp
	key string
	rt  Runtime
}

func newStreamTime(rt Runtime) streamTime {
	t := streamTime{now: NoTimestamp, key: rt.NodeName() + "/time", rt: rt}
	if now, ok := rt.Progress(t.key); ok {
		t.now = now
	}
	return t
}

// observe takes a record's time into account. It reports whether the record moved stream time.
func (t *streamTime) observe(ts int64) (moved bool) {
	if ts <= t.now {
		return false
	}
	t.now = ts
	t.rt.SetProgress(t.key, ts)
	return true
}
