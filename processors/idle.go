package processors

import "math"

// IdleHooks is what a Runtime offers beside Runtime where an application lets stream time go on while its inputs are idle. Only nodes that
// keep a stream time of their own need it.
type IdleHooks interface {
	// OnIdleTime registers f, to be called with a time in ms whenever stream time has moved without a record. No record is being processed
	// then. The time is that of the node: where nodes before it hold records back, it is behind the task's by as much, so that what they
	// send later isn't late. It never goes down. Errors are treated as those of a punctuation.
	OnIdleTime(f func(timeMs int64) error)
}

func onIdleTime(rt Runtime, f func(timeMs int64) error) {
	if hooks, ok := rt.(IdleHooks); ok {
		hooks.OnIdleTime(f)
	}
}

// Holder is a Supplier whose nodes send records, or results of records, later than they take them.
type Holder interface {
	// HoldsMs is how far, at most, the time of what a node sends may be behind its stream time if none of its input is late. spanMs is
	// the length of the longest windows before the node, 0 for none.
	HoldsMs(spanMs int64) int64
}

// Windower is a Supplier that cuts time into windows.
type Windower interface {
	// SpanMs is the length of the windows: of sessions, the gap, since their results have the time of their last record.
	SpanMs() int64
}

// addMs adds lengths of time, which may be as long as for ever.
func addMs(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// SpanMs implements Windower.
func (t *windowAggregate[K, V, A]) SpanMs() int64 { return t.windows.SizeMs }

// HoldsMs implements Holder.
func (t *windowAggregate[K, V, A]) HoldsMs(int64) int64 {
	return t.emit.holds(t.windows.SizeMs, t.windows.GraceMs)
}

// SpanMs implements Windower.
func (t *slidingAggregate[K, V, A]) SpanMs() int64 { return t.windows.DifferenceMs }

// HoldsMs implements Holder.
func (t *slidingAggregate[K, V, A]) HoldsMs(int64) int64 {
	return t.emit.holds(t.windows.DifferenceMs+1, t.windows.GraceMs)
}

// SpanMs implements Windower.
func (t *sessionAggregate[K, V, A]) SpanMs() int64 { return t.windows.GapMs }

// HoldsMs implements Holder.
func (t *sessionAggregate[K, V, A]) HoldsMs(int64) int64 {
	return t.emit.holds(t.windows.GapMs+1, t.windows.GraceMs)
}

func (e Emit) holds(spanMs, graceMs int64) int64 {
	if !e.OnClose {
		return 0
	}
	return addMs(spanMs, graceMs)
}

// HoldsMs implements Holder.
func (t *suppressed[K, V]) HoldsMs(spanMs int64) int64 { return addMs(spanMs, t.WaitMs) }

// HoldsMs implements Holder.
func (j StreamTableJoin[K, L, R, O]) HoldsMs(int64) int64 { return j.GraceMs }

// holding is a Supplier of nodes that hold records back for some time.
type holding struct {
	Supplier
	ms int64
}

// HoldsMs implements Holder.
func (h holding) HoldsMs(int64) int64 { return h.ms }

// holds wraps the supplier of a side of the join, which sends records without a match when their window and grace are over.
func (j *StreamJoin[K, L, R, O]) holds(side Supplier) Supplier {
	if j.Kind == InnerJoin {
		return side
	}
	return holding{side, addMs(max(0, j.BeforeMs, j.AfterMs)+1, j.GraceMs)}
}

// unthrottled is a record's time at which no window is safe in its store. Idle rounds use it: had one been left out, the next record would
// not move time and so be stored before the closed windows are sent.
const unthrottled = math.MaxInt64

// closeAtIdle lets windows close while nothing comes.
func (n *windowNode[K, V, A]) closeAtIdle(graceMs int64) {
	onIdleTime(n.rt, func(timeMs int64) error {
		if !n.time.observe(timeMs) {
			return nil
		}
		return n.closer.close(timeMs-graceMs, unthrottled, nil)
	})
}

// idle lets sessions close while nothing comes.
func (n *sessionAggregator[K, V, A]) idle(timeMs int64) error {
	if !n.time.observe(timeMs) {
		return nil
	}
	return n.closer.close(timeMs-n.windows.GraceMs-n.windows.GapMs, unthrottled, nil)
}

// idle sends what stream time has come to while nothing came.
func (n *suppressor[K, V]) idle(timeMs int64) error {
	if !n.time.observe(timeMs) {
		return nil
	}
	return n.evict(n.isDue)
}

// idle sends the records, of both sides, that have found no match.
func (n *streamJoiner[K, T, U, O]) idle(timeMs int64) error {
	if timeMs <= n.time.stream {
		return nil
	}
	n.time.stream = timeMs
	n.rt.SetProgress(n.key, timeMs)
	return n.emitUnmatched(nil)
}

// idle joins the records whose grace has gone by while nothing came.
func (b *bufferedJoin[K, L, R, O]) idle(timeMs int64) error {
	b.buffer.Advance(timeMs)
	return b.evict()
}
