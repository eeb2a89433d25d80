package processors

import (
	"bytes"
	"math"

	"github.com/tributary-io/tributary/state"
)

// unmatched is one side's use of the store that both sides of a left or outer join share for records without a match. Its entries are
// ordered by time, then side (right before left), then key.
type unmatched[K, T, U any] struct {
	left    bool // the side that uses it
	list    state.JoinListBytes
	this    coder[K, T]
	other   coder[K, U]
	key     []byte
	value   []byte
	emitted []byte // key of the entry last emitted
}

func openUnmatched[K, T, U any](rt Runtime, name string, own Store[K, T], other Store[K, U], left bool) (*unmatched[K, T, U], error) {
	buffers, err := buffersOf(rt)
	if err != nil {
		return nil, err
	}
	u := &unmatched[K, T, U]{left: left}
	if u.list, err = buffers.JoinList(name); err != nil {
		return nil, fatal(err)
	}
	spec, err := specOf(rt, name)
	if err != nil {
		return nil, fatal(err)
	}
	own.Name, other.Name = name, name
	u.this, u.other = newCoder(rt, own, spec), newCoder(rt, other, spec)
	return u, nil
}

// add keeps a record of this side.
func (u *unmatched[K, T, U]) add(r *Record[K, T]) error {
	if err := u.this.encodeKey(r.Key); err != nil {
		return err
	}
	value, err := u.this.encodeValue(r.Value, false)
	if err != nil {
		return err
	}
	u.key = state.AppendJoinKey(u.key[:0], u.this.key, r.Timestamp, u.left)
	u.value = state.AppendSideValue(u.value[:0], value, u.left)
	return u.this.failed("add", u.list.Add(u.key, u.value))
}

// forget removes the records of the other side with that key and time: they have a match now.
func (u *unmatched[K, T, U]) forget(key []byte, ts int64) error {
	u.key = state.AppendJoinKey(u.key[:0], key, ts, !u.left)
	return u.this.failed("delete", u.list.DeleteIfPresent(u.key))
}

// emitUnmatched sends the results of records, of both sides, whose window and grace are over.
func (n *streamJoiner[K, T, U, O]) emitUnmatched(headers []Header) (err error) {
	t := n.time
	if !t.known {
		if err := n.lookForEarliest(); err != nil {
			return err
		}
	}
	if t.earliest == math.MaxInt64 || t.earliest+n.after+n.graceMs >= t.stream {
		return nil
	}
	if n.emitInterval > 0 {
		now := n.rt.Now().UnixMilli()
		if now < t.nextEmit {
			return nil
		}
		t.nextEmit = now + n.emitInterval
	}
	t.earliest = math.MaxInt64
	it, err := n.waiting.list.All()
	if err != nil {
		return n.waiting.this.failed("scan", err)
	}
	defer func() {
		if closed := it.Close(); err == nil {
			err = n.waiting.this.failed("scan", closed)
		}
	}()
	return n.emitClosed(it, headers)
}

// lookForEarliest finds the time of the first record that a restored store holds.
func (n *streamJoiner[K, T, U, O]) lookForEarliest() error {
	n.time.known = true
	it, err := n.waiting.list.All()
	if err != nil {
		return n.waiting.this.failed("scan", err)
	}
	if it.Next() {
		if _, ts, _, ok := state.CutJoinKey(it.Key()); ok {
			n.time.earliest = ts
		}
	}
	return n.waiting.this.failed("scan", it.Close())
}

// emitClosed walks over the entries until both sides have come to one whose window is open. An entry is deleted only when the next one
// is emitted or the walk ends: it may hold several records.
func (n *streamJoiner[K, T, U, O]) emitClosed(it state.KeyValueIterator, headers []Header) error {
	u := n.waiting
	u.emitted = u.emitted[:0]
	leftOpen, rightOpen := false, false
	for it.Next() {
		key, ts, left, ok := state.CutJoinKey(it.Key())
		if !ok {
			return fatalf("store %q: malformed key of %d bytes", u.this.name, len(it.Key()))
		}
		n.time.earliest = ts
		if leftOpen && rightOpen {
			break
		}
		window := n.beforeMs
		if left {
			window = n.afterMs
		}
		if ts+window+n.graceMs >= n.time.stream {
			leftOpen, rightOpen = leftOpen || left, rightOpen || !left
			continue
		}
		if err := n.emitOne(key, it.Value(), ts, left, headers); err != nil {
			return err
		}
		if len(u.emitted) > 0 && !bytes.Equal(u.emitted, it.Key()) {
			if err := u.list.Delete(u.emitted); err != nil {
				return u.this.failed("delete", err)
			}
		}
		u.emitted = append(u.emitted[:0], it.Key()...)
	}
	if err := it.Err(); err != nil || len(u.emitted) == 0 {
		return u.this.failed("scan", err)
	}
	return u.this.failed("delete", u.list.Delete(u.emitted))
}

// emitOne sends the result of one record without a match.
func (n *streamJoiner[K, T, U, O]) emitOne(keyBytes, data []byte, ts int64, left bool, headers []Header) error {
	u := n.waiting
	key, err := u.this.decodeKeyShared(keyBytes)
	if err != nil {
		return err
	}
	value, _, ok := state.CutSideValue(data)
	if !ok {
		return fatalf("store %q: malformed value of %d bytes", u.this.name, len(data))
	}
	if left == u.left {
		row, err := u.this.decodeShared(value, ts)
		if err != nil {
			return err
		}
		n.value = row.Value
		return n.send(key, false, &n.value, nil, ts, headers)
	}
	row, err := u.other.decodeShared(value, ts)
	if err != nil {
		return err
	}
	n.match = row.Value
	return n.send(key, false, nil, &n.match, ts, headers)
}
