package processors

import (
	"fmt"
	"slices"

	"github.com/tributary-io/tributary/state"
)

// Suppression holds a table's updates back: of each key the last one is sent, when its time has come.
type Suppression[K, V any] struct {
	// UntilWindowCloses holds each window's result back until stream time has come to the window's end + GraceMs; deletes are then left
	// out. Else a key's update is held back until stream time is WaitMs past the first update held.
	UntilWindowCloses bool
	GraceMs           int64
	WaitMs            int64
	// WindowEnd gives the end of the key's window; needed with UntilWindowCloses.
	WindowEnd func(K) int64
	// MaxRecords and MaxBytes bound the buffer; 0 is no bound, and with less nothing is held back.
	MaxRecords int64
	MaxBytes   int64
	// ShutDownWhenFull makes a full buffer a *BufferFullError; else the oldest updates are sent early.
	ShutDownWhenFull bool
	// Buffer names the store of kind SuppressBuffer.
	Buffer Store[K, V]
}

// BufferFullError says that a suppression that must not send early has more to hold back than it may. It is an error of the record that
// came last, whose update is held back nevertheless: where the handler goes on, the buffer grows beyond its bounds.
type BufferFullError struct {
	Node                string
	Records, MaxRecords int64
	Bytes, MaxBytes     int64
}

func (e *BufferFullError) Error() string {
	return fmt.Sprintf("node %s holds back %d updates (at most %s) of %d bytes (at most %s): raise the bounds, or let it emit early",
		e.Node, e.Records, bound(e.MaxRecords), e.Bytes, bound(e.MaxBytes))
}

func bound(n int64) string {
	if n == 0 {
		return "any number"
	}
	return fmt.Sprint(max(n, 0))
}

// exceeds tells whether n is more than a bound allows.
func exceeds(n, bound int64) bool { return bound != 0 && n > max(bound, 0) }

// NewSuppress makes the node: K, Change[V] to the same. What is sent has the time and headers of the update's own record. It enables old
// values in parent, which then has its store.
func NewSuppress[K, V any](parent Table[K, V], s Suppression[K, V]) Table[K, V] {
	parent.EnableOldValues(true)
	if s.UntilWindowCloses {
		s.WaitMs = s.GraceMs
	}
	return &suppressed[K, V]{Suppression: s, parent: parent}
}

type suppressed[K, V any] struct {
	Suppression[K, V]
	parent Table[K, V]
}

// EnableOldValues implements Table: old values are sent in any case, if the parent sends them.
func (t *suppressed[K, V]) EnableOldValues(force bool) bool { return t.parent.EnableOldValues(force) }

// View implements Table.
func (t *suppressed[K, V]) View() ViewSupplier[K, V] {
	return suppressedView[K, V]{t.Buffer, t.parent.View()}
}

// New implements Supplier.
func (t *suppressed[K, V]) New(rt Runtime, children []Child) (Instance, error) {
	out, err := newUpdates[K, V](children, true)
	if err != nil {
		return Instance{}, err
	}
	n := &suppressor[K, V]{Suppression: t.Suppression, rt: rt, ctx: rt.Context(), raw: newRawRecords(rt), out: out, time: newStreamTime(rt)}
	n.isDue = func() bool { return n.buffer.MinTime() <= n.time.now-n.WaitMs }
	n.isFull = func() bool {
		return exceeds(n.buffer.NumRecords(), n.MaxRecords) || exceeds(n.buffer.Bytes(), n.MaxBytes)
	}
	return Instance{Next: Guard(rt, n.process), Init: n.open}, nil
}

type suppressor[K, V any] struct {
	Suppression[K, V]
	rt            Runtime
	ctx           *Context
	out           *updates[K, V]
	raw           rawRecords
	time          streamTime
	coder         changeCoder[K, V]
	buffer        state.ChangeBuffer
	isDue, isFull func() bool
}

func (n *suppressor[K, V]) open() (err error) {
	n.buffer, n.coder.coder, err = openChangeBuffer(n.rt, n.Buffer)
	onIdleTime(n.rt, n.idle)
	return err
}

func openChangeBuffer[K, V any](rt Runtime, store Store[K, V]) (state.ChangeBuffer, coder[K, V], error) {
	spec, err := specOf(rt, store.Name)
	if err != nil {
		return nil, coder[K, V]{}, fatal(err)
	}
	buffers, err := buffersOf(rt)
	if err != nil {
		return nil, coder[K, V]{}, err
	}
	b, err := buffers.ChangeBuffer(store.Name)
	return b, newCoder(rt, store, spec), fatal(err)
}

func (n *suppressor[K, V]) process(r *Record[K, Change[V]]) error {
	n.time.observe(r.Timestamp)
	bufferTime := r.Timestamp
	if n.UntilWindowCloses {
		bufferTime = n.WindowEnd(r.Key)
	}
	if err := n.hold(r, bufferTime); err != nil {
		return err
	}
	if err := n.evict(n.isDue); err != nil || !n.isFull() {
		return err
	}
	if n.ShutDownWhenFull {
		return &BufferFullError{
			Node: n.rt.NodeName(), Records: n.buffer.NumRecords(), MaxRecords: n.MaxRecords, Bytes: n.buffer.Bytes(), MaxBytes: n.MaxBytes,
		}
	}
	return n.evict(n.isFull)
}

// evict sends updates on while the oldest one is to go.
func (n *suppressor[K, V]) evict(goes func() bool) error {
	current := *n.ctx
	defer func() { *n.ctx = current }()
	return n.coder.failed("evict", n.buffer.EvictWhile(goes, n.send))
}

func (n *suppressor[K, V]) hold(r *Record[K, Change[V]], bufferTime int64) error {
	if err := n.coder.encodeKey(r.Key); err != nil {
		return err
	}
	old, now, err := n.coder.encodeChange(&r.Value)
	if err != nil {
		return err
	}
	if err := n.buffer.Put(bufferTime, n.coder.key, old, now, &n.ctx.Context); err != nil {
		return n.coder.failed("put", err)
	}
	n.raw.keep(n.coder.key)
	return nil
}

// send sends an update on, in the context of the record that brought it.
func (n *suppressor[K, V]) send(e *state.BufferedChange) error {
	n.raw.enter(e.Key)
	if e.New == nil && n.UntilWindowCloses {
		return nil
	}
	key, err := n.coder.decodeKeyShared(e.Key)
	if err != nil {
		return err
	}
	c, err := n.coder.decodeChange(e.Old, e.New)
	if err != nil {
		return err
	}
	n.ctx.Context = e.Context
	return n.out.send(key, c, e.Context.Timestamp, e.Context.Headers)
}

// changeCoder is a coder for changes, whose two values are encoded apart.
type changeCoder[K, V any] struct {
	coder[K, V]
	oldBuf []byte
}

// encodeChange gives the bytes of both values, nil for null, which are valid until the next call.
func (c *changeCoder[K, V]) encodeChange(v *Change[V]) (old, now []byte, err error) {
	if old, err = c.encodeValue(v.Old, v.OldNull); err != nil {
		return nil, nil, err
	}
	if old != nil {
		c.oldBuf = append(c.oldBuf[:0], old...)
		old = filled(c.oldBuf)
	}
	now, err = c.encodeValue(v.New, v.NewNull)
	return old, now, err
}

func (c *changeCoder[K, V]) decodeChange(old, now []byte) (v Change[V], err error) {
	v.IsLatest = true
	if v.Old, v.OldNull, err = c.decodeNullable(old); err != nil {
		return v, err
	}
	v.New, v.NewNull, err = c.decodeNullable(now)
	return v, err
}

func (c *changeCoder[K, V]) decodeNullable(data []byte) (v V, null bool, err error) {
	if data == nil {
		return v, true, nil
	}
	row, err := c.decodeShared(data, NoTimestamp)
	return row.Value, row.Null, err
}

// suppressedView shows the rows as they were sent: of a key that is held back the one before, of others the parent's.
type suppressedView[K, V any] struct {
	buffer Store[K, V]
	parent ViewSupplier[K, V]
}

// StoreNames implements ViewSupplier.
func (s suppressedView[K, V]) StoreNames() []string {
	return slices.Concat([]string{s.buffer.Name}, s.parent.StoreNames())
}

// Open implements ViewSupplier.
func (s suppressedView[K, V]) Open(rt Runtime) (View[K, V], error) {
	parent, err := s.parent.Open(rt)
	if err != nil {
		return nil, err
	}
	buffer, c, err := openChangeBuffer(rt, s.buffer)
	if err != nil {
		return nil, err
	}
	return unversioned[K, V](func(key K) (Row[V], error) {
		if err := c.encodeKey(key); err != nil {
			return noRow[V](), err
		}
		data, held, err := buffer.Prior(c.key, c.dst())
		switch {
		case err != nil:
			return noRow[V](), c.failed("get", err)
		case !held:
			return parent.Get(key)
		case data == nil:
			return noRow[V](), nil
		}
		return c.decodeGot(data, NoTimestamp)
	}), nil
}
