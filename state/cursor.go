package state

import (
	"bytes"
	"errors"
)

// cursor merges the rows of a store's generations and base: open before sealed before base, deletions hiding what is beneath. It
// sees the store as it was when it was made.
type cursor struct {
	st   *store
	ovs  [2]overlayCursor
	nov  int
	base baseCursor // one of the two below
	// The base cursors lie here to save an allocation.
	inMemory memoryCursor
	onDisk   pebbleCursor

	lower, upper    []byte
	reverse, prefix bool
	started, done   bool
	baseOK, baseAt  bool // the base is on a row; that row is the current one
	val             []byte
	curKey          []byte
	failed          error
	closed          bool
}

// overlayCursor walks over the rows of one overlay that were there when it was made.
type overlayCursor struct {
	o     *overlay
	limit uint32 // versions that are visible
	node  uint32
	ver   uint32
	at    bool // its row is the current one
}

// init makes the cursor. Sources that can't have rows are left out.
func (c *cursor) init(st *store, committed bool) error {
	c.st = st
	if !committed {
		c.addOverlay(st.open)
		c.addOverlay(st.sealed.Load())
	}
	if err := st.base.open(c); err != nil {
		c.release()
		return err
	}
	st.db.openCursors.Add(1)
	return nil
}

func (c *cursor) addOverlay(o *overlay) {
	if o == nil || len(o.versions) == 0 {
		return
	}
	o.ensureIndex()
	o.users++
	c.ovs[c.nov] = overlayCursor{o: o, limit: uint32(len(o.versions))}
	c.nov++
}

// reset starts over within [lower, upper), which must not be changed before the next reset. prefix: see baseCursor.seek.
func (c *cursor) reset(lower, upper []byte, reverse, prefix bool) {
	c.lower, c.upper = lower, upper
	c.reverse, c.prefix = reverse, prefix
	c.started, c.done = false, false
}

// next goes to the next row.
func (c *cursor) next() bool {
	if c.done || c.failed != nil || c.closed {
		return false
	}
	for {
		if c.started {
			c.advance()
		} else {
			c.start()
		}
		if !c.choose() {
			c.done = true
			c.failed = c.base.err()
			return false
		}
		if c.val != nil {
			return true
		}
	}
}

func (c *cursor) start() {
	c.started = true
	for i := range c.nov {
		ov := &c.ovs[i]
		ov.at = false
		if c.reverse {
			ov.node = ov.o.index.seekLT(ov.o, c.upper)
		} else {
			ov.node = ov.o.index.seekGE(ov.o, c.lower)
		}
		c.settle(ov)
	}
	c.baseAt = false
	c.baseOK = c.base.seek(c.lower, c.upper, c.reverse, c.prefix)
}

// advance moves the sources that are on the current row.
func (c *cursor) advance() {
	for i := range c.nov {
		if ov := &c.ovs[i]; ov.at {
			ov.at = false
			c.step(ov)
			c.settle(ov)
		}
	}
	if c.baseAt {
		c.baseAt = false
		c.baseOK = c.base.next()
	}
}

func (c *cursor) step(ov *overlayCursor) {
	if c.reverse {
		ov.node = ov.o.index.prev(ov.node)
	} else {
		ov.node = ov.o.index.next(ov.node, 0)
	}
}

// settle goes on to a row that is visible, and to the end if the bounds are left.
func (c *cursor) settle(ov *overlayCursor) {
	for ; ov.node != nilNode; c.step(ov) {
		k := ov.key()
		if c.reverse && bytes.Compare(k, c.lower) < 0 || !c.reverse && bytes.Compare(k, c.upper) >= 0 {
			ov.node = nilNode
			return
		}
		if v, ok := ov.o.visible(ov.node-1, ov.limit); ok {
			ov.ver = v
			return
		}
	}
}

func (ov *overlayCursor) key() []byte { return ov.o.entryKey(ov.node - 1) }

// choose makes the nearest row of all sources the current one. Its value is nil if it is deleted.
func (c *cursor) choose() bool {
	var best []byte
	c.val = nil
	for i := range c.nov {
		ov := &c.ovs[i]
		if ov.node == nilNode {
			continue
		}
		cmp := c.compare(ov.key(), best)
		if cmp < 0 {
			best = ov.key()
			c.val = ov.o.value(ov.ver)
			for j := range i {
				c.ovs[j].at = false
			}
		}
		ov.at = cmp <= 0
	}
	if c.baseOK {
		cmp := c.compare(c.base.key(), best)
		if cmp < 0 {
			best = c.base.key()
			c.val = c.base.value()
			if c.val == nil {
				c.val = []byte{}
			}
			for j := range c.nov {
				c.ovs[j].at = false
			}
		}
		c.baseAt = cmp <= 0
	}
	c.curKey = best
	return best != nil
}

// compare is negative if a comes before b in the cursor's direction. A nil b comes last.
func (c *cursor) compare(a, b []byte) int {
	if b == nil {
		return -1
	}
	if c.reverse {
		return bytes.Compare(b, a)
	}
	return bytes.Compare(a, b)
}

// key is the key of the current row, valid until the next call.
func (c *cursor) key() []byte { return c.curKey }

// value is the value of the current row, valid until the next call.
func (c *cursor) value() []byte { return c.val }

func (c *cursor) err() error { return c.failed }

// fail ends the iteration with an error.
func (c *cursor) fail(err error) bool {
	c.failed = err
	return false
}

func (c *cursor) release() {
	for i := range c.nov {
		c.ovs[i].o.users--
	}
	c.nov = 0
}

func (c *cursor) close() error {
	if c.closed || c.st == nil {
		return c.failed
	}
	c.closed = true
	c.release()
	if err := c.base.close(); err != nil {
		c.failed = errors.Join(c.failed, err)
	}
	c.st.db.openCursors.Add(-1)
	return c.failed
}
