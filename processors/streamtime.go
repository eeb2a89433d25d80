package processors

// streamTime is the largest event time that a node has seen. Unlike Kafka Streams' operators, which begin anew, it is kept with the
// committed offsets: a restart decides no lateness differently.
type streamTime struct {
	now    int64 // ms, or NoTimestamp; right once something was observed
	key    string
	rt     Runtime
	looked bool // for what is kept, which is not known yet when the node is made
}

func newStreamTime(rt Runtime) streamTime {
	return streamTime{now: NoTimestamp, key: rt.NodeName() + "/time", rt: rt}
}

// observe takes a record's time into account. It reports whether the record moved stream time.
func (t *streamTime) observe(ts int64) (moved bool) {
	if ts <= t.now {
		return false
	}
	if !t.looked {
		t.looked = true
		if kept, ok := t.rt.Progress(t.key); ok && ts <= kept {
			t.now = kept
			return false
		}
	}
	t.now = ts
	t.rt.SetProgress(t.key, ts)
	return true
}
