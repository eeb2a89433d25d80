package state

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// frontFill reads, beside the task, the keys that were in the database when it was opened.
type frontFill struct {
	stop atomic.Bool
	done sync.WaitGroup
}

// stopEvery is after how many keys a fill looks whether it is to stop.
const stopEvery = 1024

// openFronts gives the stores on disk their fronts, as far as they have a use for them.
func (db *DB) openFronts() error {
	res := db.pebble.res
	if res.opt.RowBytes < 0 {
		return nil
	}
	var onDisk []*store
	for _, s := range db.stores {
		if s.mem == nil && s.spec.findsRows() {
			onDisk = append(onDisk, s)
		}
	}
	share := func() int64 { return res.rowShare() / int64(len(onDisk)) }
	keys := map[*store]*pebble.Iterator{} // as of now, of stores that have any
	for _, s := range onDisk {
		s.front = newFront(share, &res.rows, s.spec.WrittenOnce)
		res.addFront(s.front)
		it, err := s.keys()
		if err != nil {
			for _, it := range keys {
				err = errors.Join(err, it.Close())
			}
			return db.pebble.wrap("read keys", err)
		}
		if it != nil {
			keys[s] = it
		} else {
			s.front.whole()
		}
	}
	if len(keys) > 0 {
		db.filling.done.Go(func() {
			for s, it := range keys {
				db.fill(s, it)
			}
		})
	}
	return nil
}

// keys opens an iterator at the store's first row, nil if there is none.
func (s *store) keys() (*pebble.Iterator, error) {
	it, err := s.db.pebble.db.NewIter(&pebble.IterOptions{
		LowerBound: appendPrefix(nil, s.id, classPlain), UpperBound: appendPrefix(nil, s.id+1, classMeta),
	})
	if err != nil || it.First() {
		return it, err
	}
	return nil, it.Close()
}

// fill reads a store's keys. What can't be read is not the front's to report: it is found by whoever needs it.
func (db *DB) fill(s *store, it *pebble.Iterator) {
	found := &fillResult{filters: map[int64]*filter{}}
	bytes, n := int64(0), 0
	defer func() { s.front.used.Add(-bytes) }() // the front has told of them by then
	for ; it.Valid(); it.Next() {
		if n++; n%stopEvery == 0 && db.filling.stop.Load() || bytes > s.front.limit()/2 {
			releaseAll(found.filters)
			found = nil
			break
		}
		row := it.Key()
		segment := segmentOf(row)
		in := found.filters[segment]
		if in == nil {
			in = newFilter(s.front.limit() / int64(len(found.filters)+1))
			found.filters[segment] = in
		}
		grown := in.add(hashRow(row))
		bytes += grown
		if grown > 0 {
			s.front.used.Add(grown)
		}
	}
	if it.Close() != nil && found != nil {
		releaseAll(found.filters)
		found = nil
	}
	s.front.filled(found)
}

// closeFronts ends what openFronts began.
func (db *DB) closeFronts() {
	db.filling.stop.Store(true)
	db.filling.done.Wait()
	for _, s := range db.stores {
		if s.front != nil {
			db.pebble.res.removeFront(s.front)
			s.front.close()
		}
	}
}
