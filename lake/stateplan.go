package lake

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/tributary-io/tributary/lake/keyed"
)

// statePlan is what a batch of changes does to the version of a table that its index has.
type statePlan struct {
	keys      []keyNow
	put       []int32                        // rows of the batch that get into the table
	gone      map[*stateFile]*roaring.Bitmap // rows that leave it, by their place in their file
	deletions []keyed.Deletion               // to be remembered

	inserted, updated, deleted int64 // rows
	late                       int64 // changes that were older than what is known
	beyond                     int64 // changes of keys without a row that were older than the deletions that are remembered
}

// keyNow is one key of a batch: what the table has, and what it shall have.
type keyNow struct {
	hash   keyed.Hash
	before keyed.Entry
	file   *stateFile // of the table's row; nil: it has none
	at     uint32     // its place there

	present bool   // the key has a row
	deleted bool   // it has none, and that it was deleted is known
	order   uint64 // of the row, or of the deletion
	row     int32  // of the batch; -1: the table's own
}

// plan runs the changes in their order.
func (x *stateIndex) plan(changes []change) (*statePlan, error) {
	p := &statePlan{gone: map[*stateFile]*roaring.Bitmap{}}
	hashes, keyOf := distinctKeys(changes)
	p.keys = make([]keyNow, len(hashes))
	err := x.x.Find(hashes, func(i int, e keyed.Entry, ok bool) { p.keys[i] = x.look(hashes[i], e, ok) })
	if err != nil {
		return nil, err
	}
	for i := range changes {
		switch p.keys[keyOf[i]].apply(&changes[i], x.state.ordered, x.deletions.horizon) {
		case late:
			p.late++
		case beyond:
			p.beyond++
		}
	}
	for i := range p.keys {
		p.settle(&p.keys[i])
	}
	return p, nil
}

// distinctKeys lists the keys of changes, each once, and for each change the number of its key.
func distinctKeys(changes []change) (hashes []keyed.Hash, keyOf []int32) {
	seen := make(map[keyed.Hash]int32, len(changes))
	keyOf = make([]int32, len(changes))
	for i := range changes {
		h := changes[i].hash
		n, ok := seen[h]
		if !ok {
			n = int32(len(hashes))
			seen[h] = n
			hashes = append(hashes, h)
		}
		keyOf[i] = n
	}
	return hashes, keyOf
}

// look tells what the table has of a key, given its entry.
func (x *stateIndex) look(h keyed.Hash, e keyed.Entry, ok bool) keyNow {
	k := keyNow{hash: h, row: -1}
	if !ok {
		return k
	}
	if e.Deleted {
		if e.Order >= x.deletions.horizon { // else it is forgotten
			k.before, k.deleted, k.order = e, true, e.Order
		}
		return k
	}
	if f, at, ok := x.place(e); ok {
		k.before, k.file, k.at, k.present, k.order = e, f, at, true, e.Order
	}
	return k
}

// fate is what becomes of a change.
type fate int

const (
	applied fate = iota
	late         // it is older than what is known of its key
	beyond       // nothing is known of its key, and what was may have been forgotten
)

// apply runs one change. A null value has no order: it is newer than the row, and no newer than that. Deletions below the horizon aren't remembered, so
// that it doesn't depend on the batches what becomes of a change behind one.
func (k *keyNow) apply(c *change, ordered bool, horizon uint64) fate {
	order := c.order
	switch {
	case !ordered:
	case c.unordered && !k.present:
		return applied
	case c.unordered:
		order = k.order
	case (k.present || k.deleted) && order < k.order:
		return late
	case !k.present && !k.deleted && order < horizon && c.deleted:
		return late
	case !k.present && !k.deleted && order < horizon:
		return beyond
	}
	k.present, k.deleted, k.order, k.row = !c.deleted, c.deleted && ordered && order >= horizon, order, c.row
	return applied
}

// settle compares a key's end with its beginning.
func (p *statePlan) settle(k *keyNow) {
	replaced := !k.present || k.row >= 0
	if k.file != nil && replaced {
		g := p.gone[k.file]
		if g == nil {
			g = roaring.New()
			p.gone[k.file] = g
		}
		g.Add(k.at)
	}
	switch {
	case k.present && k.row >= 0 && k.file != nil:
		p.updated++
	case k.present && k.row >= 0:
		p.inserted++
	case k.file != nil && replaced:
		p.deleted++
	}
	if k.present && k.row >= 0 {
		p.put = append(p.put, k.row)
	}
	if k.deleted && !(k.before.Deleted && k.before.Order == k.order) {
		p.deletions = append(p.deletions, keyed.Deletion{Hash: k.hash, Order: k.order})
	}
}

// changes are what the index has to learn once the plan has landed. where tells the slot and the row in it of each row of the batch.
func (p *statePlan) changes(where func(row int32) (slot, at uint32)) []keyed.Change {
	out := make([]keyed.Change, 0, len(p.keys))
	for i := range p.keys {
		k := &p.keys[i]
		c := keyed.Change{Hash: k.hash, Entry: keyed.Entry{Order: k.order, Deleted: true}}
		switch {
		case k.present && k.row >= 0:
			c.Entry.Deleted = false
			c.Entry.File, c.Entry.Row = where(k.row)
		case k.present: // the table's own row stays
			continue
		case !k.deleted:
			c.Forget = true
		}
		out = append(out, c)
	}
	return out
}
