package processors

import (
	"math"
	"sync"

	"github.com/tributary-io/tributary/state"
)

// StreamJoin is a windowed join of two streams: a record on the right joins one on the left if its time is within
// left - BeforeMs .. left + AfterMs. It takes five nodes: each side first sends its records through ThisWindow or OtherWindow, which keep
// them in that side's store; This and Other look into the other side's store; both send to a PassThrough.
//
// A result's time is the larger of both records' times, its headers are those of the later one to arrive. Records with a null value are
// dropped, and so are those with a null key, unless their side may be alone: then they give a result at once. A record that has found no
// match gives its own result when its window and the grace are over: with its own time, but the headers of the record that moved stream
// time.
type StreamJoin[K, L, R, O any] struct {
	Kind                       JoinKind
	BeforeMs, AfterMs, GraceMs int64
	Join                       Joiner[K, L, R, O]
	ThisStore                  Store[K, L] // of kind Window, retaining duplicates
	OtherStore                 Store[K, R]
	// Outer is the store of kind JoinList that both sides share for records that have no match yet; for left and outer joins.
	Outer string
	// EmitIntervalMs throttles how often, in wall-clock time, unmatched records are looked for; 0 looks at each record. Kafka
	// Streams' default is 1000.
	EmitIntervalMs int64

	times joinTimes
}

// ThisWindow is the node that stores the left side's records: K, L to K, L.
func (j *StreamJoin[K, L, R, O]) ThisWindow() Supplier { return joinWindow(j.ThisStore) }

// OtherWindow is the node that stores the right side's records: K, R to K, R.
func (j *StreamJoin[K, L, R, O]) OtherWindow() Supplier { return joinWindow(j.OtherStore) }

// This is the node that joins the left side's records: K, L to K, O. It is connected to the other side's store and the shared one.
func (j *StreamJoin[K, L, R, O]) This() Supplier {
	return j.holds(SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		return newStreamJoiner(rt, children, &streamJoiner[K, L, R, O]{
			left: true, before: j.BeforeMs, after: j.AfterMs, other: j.OtherStore, own: j.ThisStore,
			alone: j.Kind != InnerJoin, join: j.Join,
		}, j.shared())
	}))
}

// Other is the node that joins the right side's records: K, R to K, O. It is connected to the left side's store and the shared one.
func (j *StreamJoin[K, L, R, O]) Other() Supplier {
	reversed := func(key K, r *R, l *L) (O, error) { return j.Join(key, l, r) }
	return j.holds(SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		return newStreamJoiner(rt, children, &streamJoiner[K, R, L, O]{
			left: false, before: j.AfterMs, after: j.BeforeMs, other: j.ThisStore, own: j.OtherStore,
			alone: j.Kind == OuterJoin, join: reversed,
		}, j.shared())
	}))
}

// sharedJoin is what both sides have to know of the join.
type sharedJoin struct {
	outer                      string
	beforeMs, afterMs, graceMs int64
	emitInterval               int64
	times                      *joinTimes
}

func (j *StreamJoin[K, L, R, O]) shared() sharedJoin {
	return sharedJoin{j.Outer, j.BeforeMs, j.AfterMs, j.GraceMs, j.EmitIntervalMs, &j.times}
}

// joinWindow sends a record on, and then keeps it: it never finds itself in its own store.
func joinWindow[K, V any](store Store[K, V]) Supplier {
	return SupplierFunc(func(rt Runtime, children []Child) (Instance, error) {
		next, err := Fan[K, V](children)
		if err != nil {
			return Instance{}, err
		}
		var rows *windowRows[K, V]
		process := func(r *Record[K, V]) error {
			if err := next(r); err != nil || r.KeyNull {
				return err
			}
			if err := rows.encodeKey(r.Key); err != nil {
				return err
			}
			return rows.set(r.Value, r.ValueNull, r.Timestamp, r.Timestamp)
		}
		open := func() (err error) { rows, err = openWindowRows(rt, store); return err }
		return Instance{Next: Guard(rt, process), Init: open}, nil
	})
}

// joinTime is what the two sides of a join share within a task.
type joinTime struct {
	stream   int64 // the largest time seen on both sides, or NoTimestamp
	earliest int64 // no unmatched record is older than that; math.MaxInt64 if there are none
	known    bool  // earliest is known: false until a restored store has been looked at
	nextEmit int64 // wall clock in ms before which no unmatched records are looked for
	users    int
}

// joinTimes holds the joinTime of each task that is open, by the task's context.
type joinTimes struct {
	mu     sync.Mutex
	byTask map[*Context]*joinTime
}

func (t *joinTimes) open(rt Runtime, key string) *joinTime {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byTask == nil {
		t.byTask = map[*Context]*joinTime{}
	}
	j := t.byTask[rt.Context()]
	if j == nil {
		j = &joinTime{stream: NoTimestamp, earliest: math.MaxInt64}
		if now, ok := rt.Progress(key); ok {
			j.stream = now
		}
		t.byTask[rt.Context()] = j
	}
	j.users++
	return j
}

func (t *joinTimes) close(rt Runtime) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.byTask[rt.Context()]; j != nil {
		if j.users--; j.users == 0 {
			delete(t.byTask, rt.Context())
		}
	}
}

// streamJoiner joins the records of one side, T, with those of the other side, U.
type streamJoiner[K, T, U, O any] struct {
	left          bool
	before, after int64 // ms, as seen from this side
	own           Store[K, T]
	other         Store[K, U]
	alone         bool // a record of this side without a match gives a result
	join          Joiner[K, T, U, O]

	sharedJoin
	rt      Runtime
	next    Next[K, O]
	results nils[O]
	key     string // of the progress
	time    *joinTime
	rows    *windowRows[K, U]
	waiting *unmatched[K, T, U]
	value   T // what the joiner's pointers point to
	match   U
	out     Record[K, O]
}

func newStreamJoiner[K, T, U, O any](rt Runtime, children []Child, n *streamJoiner[K, T, U, O], shared sharedJoin) (Instance, error) {
	next, err := Fan[K, O](children)
	if err != nil {
		return Instance{}, err
	}
	n.sharedJoin, n.rt, n.next, n.results = shared, rt, next, nilsOf[O]()
	n.key = shared.outer + "/time"
	return Instance{Next: Guard(rt, n.process), Init: n.open, Close: n.close}, nil
}

func (n *streamJoiner[K, T, U, O]) open() (err error) {
	n.time = n.times.open(n.rt, n.key)
	if n.rows, err = openWindowRows(n.rt, n.other); err != nil || n.outer == "" {
		return err
	}
	if n.left { // it sends for both sides
		onIdleTime(n.rt, n.idle)
	}
	n.waiting, err = openUnmatched(n.rt, n.outer, n.own, n.other, n.left)
	return err
}

func (n *streamJoiner[K, T, U, O]) close() error {
	if n.time != nil {
		n.times.close(n.rt)
	}
	return nil
}

func (n *streamJoiner[K, T, U, O]) process(r *Record[K, T]) error {
	if r.Timestamp > n.time.stream {
		n.time.stream = r.Timestamp
		if n.outer != "" {
			n.rt.SetProgress(n.key, r.Timestamp)
		}
	}
	n.value = r.Value
	switch {
	case r.ValueNull:
		n.rt.Dropped(DroppedNullValue)
		return nil
	case r.KeyNull && n.alone:
		return n.send(r.Key, true, &n.value, nil, r.Timestamp, r.Headers)
	case r.KeyNull:
		n.rt.Dropped(DroppedNullKey)
		return nil
	}
	if n.waiting != nil && r.Timestamp == n.time.stream {
		if err := n.emitUnmatched(r.Headers); err != nil {
			return err
		}
		n.value = r.Value
	}
	matched, err := n.joinMatches(r)
	if err != nil || matched || !n.alone {
		return err
	}
	if n.waiting == nil || max(0, r.Timestamp+n.after) < n.time.stream {
		// So late that the record's window is over, although grace may not be: Kafka Streams doesn't wait.
		return n.send(r.Key, false, &n.value, nil, r.Timestamp, r.Headers)
	}
	n.time.earliest = min(n.time.earliest, r.Timestamp)
	return n.waiting.add(r)
}

// joinMatches joins r with the other side's records around it.
func (n *streamJoiner[K, T, U, O]) joinMatches(r *Record[K, T]) (matched bool, err error) {
	if err := n.rows.encodeKey(r.Key); err != nil {
		return false, err
	}
	from, to := max(0, r.Timestamp-n.before), max(0, r.Timestamp+n.after)
	it, err := n.rows.bytes.Fetch(n.rows.key, from, to, state.Forward)
	if err != nil {
		return false, n.rows.failed("fetch", err)
	}
	defer func() {
		if closed := it.Close(); err == nil {
			err = n.rows.failed("fetch", closed)
		}
	}()
	for it.Next() {
		matched = true
		row, err := n.rows.decodeShared(it.Value(), it.Timestamp())
		if err != nil {
			return true, err
		}
		start := it.Start()
		if n.waiting != nil {
			if err := n.waiting.forget(n.rows.key, start); err != nil {
				return true, err
			}
		}
		n.match = row.Value
		if err := n.send(r.Key, false, &n.value, pointer(&n.match, row.Null), max(r.Timestamp, start), r.Headers); err != nil {
			return true, err
		}
	}
	return matched, nil
}

func (n *streamJoiner[K, T, U, O]) send(key K, keyNull bool, this *T, other *U, ts int64, headers []Header) error {
	v, err := n.join(key, this, other)
	if err != nil {
		return err
	}
	n.out = Record[K, O]{Key: key, KeyNull: keyNull, Value: v, ValueNull: n.results.isNil(v), Timestamp: ts, Headers: headers}
	return n.next(&n.out)
}
