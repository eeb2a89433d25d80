package processors

import (
	"bytes"
	"slices"

	"github.com/tributary-io/tributary/state"
)

// CommitHooks is implemented by a Runtime whose task can hold updates back until it commits (EmitOnCommit). Where it isn't, updates are
// sent at once.
type CommitHooks interface {
	// BeforeCommit registers f, to be called before each commit, in the order of registration, while records may still be sent. An error
	// is fatal for the task.
	BeforeCommit(f func() error)
	// Shared returns what the task keeps under a name for several of its nodes; made says that make has just made it.
	Shared(name string, make func() any) (v any, made bool)
}

// coalesced holds a store's updates back until the commit, as Kafka Streams' record cache does: of each row that was written only the last
// state is sent, in the order of the last writes, with the value before the first write as its old value. What is held are bytes: a Go
// value could have changed by then.
type coalesced struct {
	ctx   *Context
	raw   bool           // the bytes of records are asked for
	byRow map[string]int // into held
	held  []heldRow
}

// heldRow is a row that was written. A row that is written again moves to the end; its former place is left dead.
type heldRow struct {
	key    []byte
	window Window
	old    []byte // nil if there was no row
	ts     int64  // of the last write, for stores that don't keep it
	by     Context
	dead   bool
}

// coalesce returns where to hold the updates of a store back, or nil if they are to be sent at once.
func coalesce(rt Runtime, spec state.Spec, flush func() error) *coalesced {
	hooks, ok := rt.(CommitHooks)
	if !ok || !spec.Caching {
		return nil
	}
	// The nodes of a cogroup write one store: what they hold back is one list, which any of them sends.
	v, made := hooks.Shared("coalesced/"+spec.Name, func() any { return &coalesced{ctx: rt.Context(), raw: usesRaw(rt), byRow: map[string]int{}} })
	if made {
		hooks.BeforeCommit(flush)
	}
	return v.(*coalesced)
}

// touch notes that a row is about to be written. old reads what it is now, nil for none; it is called for the first write only.
func (c *coalesced) touch(id, key []byte, w Window, old func() ([]byte, error)) error {
	row := heldRow{key: bytes.Clone(key), window: w, by: *c.ctx}
	row.by.Headers = slices.Clone(row.by.Headers)
	row.by.RawKey, row.by.RawValue = nil, nil
	if c.raw {
		row.by.RawKey, row.by.RawValue = bytes.Clone(c.ctx.RawKey), bytes.Clone(c.ctx.RawValue)
	}
	if at, ok := c.byRow[string(id)]; ok {
		row.old = c.held[at].old
		c.held[at].dead = true
	} else {
		data, err := old()
		if err != nil {
			return err
		}
		row.old = data
	}
	c.byRow[string(id)] = len(c.held)
	c.held = append(c.held, row)
	return nil
}

// flush calls send with each row that is held, in the context of the record that last wrote it.
func (c *coalesced) flush(send func(*heldRow) error) error {
	current := *c.ctx
	defer func() { *c.ctx = current }()
	for i := range c.held {
		row := &c.held[i]
		if row.dead {
			continue
		}
		*c.ctx = row.by
		if err := send(row); err != nil {
			return fatal(err) // no handler may leave out what is stored already
		}
	}
	clear(c.held)
	clear(c.byRow)
	c.held = c.held[:0]
	return nil
}

// changeOf is what is sent for a row that was held back. ok is false where there was nothing, and is nothing.
func (c *coder[K, V]) changeOf(row *heldRow, now Row[V], old bool) (change Change[V], ok bool, err error) {
	if now.Null && row.old == nil {
		return change, false, nil
	}
	change = Change[V]{New: now.Value, NewNull: now.Null, OldNull: true, IsLatest: true}
	if !old || row.old == nil {
		return change, true, nil
	}
	before, err := c.decodeShared(row.old, NoTimestamp)
	change.Old, change.OldNull = before.Value, before.Null
	return change, true, err
}
