package state

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// StoreSize is about how much a store holds of what is committed.
type StoreSize struct {
	Entries int64 // keys, windows, sessions; of a versioned store the keys, without older versions
	// Estimated says that not all entries were counted.
	Estimated bool
	// Bytes are those of keys and values of a store in memory, and of one on disk those of its files, which are compressed, without what hasn't
	// been written into them yet.
	Bytes int64
}

// Size tells about how large a store of any kind is. On disk it counts so many entries, at most 10,000, and goes on from these by the sizes of files: what is
// counted there is read, and takes room in the block cache. Of a store that isn't in files yet it counts 10,000 and no more. Nobody waits for it.
func (v *View) Size(name string, counted int64) (StoreSize, error) {
	s := v.db.byName[name]
	if s == nil {
		return StoreSize{}, &LookupError{Store: name, Want: "any kind"}
	}
	class, perEntry := s.spec.entryRows()
	if s.mem != nil {
		rows, bytes := s.mem.size()
		return StoreSize{Entries: int64(rows) / perEntry, Bytes: bytes, Estimated: s.spec.Kind == Versioned}, nil
	}
	return s.sizeOnDisk(class, min(counted, exactCount))
}

// entryRows tells which class of rows has one for each entry, and how many rows there are of an entry in all classes together.
func (s *Spec) entryRows() (class byte, perEntry int64) {
	switch s.Kind {
	case Window, TimestampedWindow, Session:
		if s.TimeOrdered {
			return classByTime, 2
		}
		return classByKey, 1
	case SuppressBuffer:
		return classByTime, 2
	case JoinBuffer:
		return classByTime, 1
	}
	return classPlain, 1
}

func (s *store) sizeOnDisk(class byte, counted int64) (StoreSize, error) {
	db := s.db.pebble.db
	low, high := appendPrefix(nil, s.id, class), appendPrefix(nil, s.id, class+1)
	var size StoreSize
	bytes, err := db.EstimateDiskUsage(appendPrefix(nil, s.id, classMeta), appendPrefix(nil, s.id+1, classMeta))
	if err != nil {
		return size, s.db.pebble.wrap("estimate size", err)
	}
	size.Bytes = int64(bytes)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: high})
	if err != nil {
		return size, s.db.pebble.wrap("count entries", err)
	}
	share := 0.0
	ok := it.First()
	for ; ok && err == nil && size.Entries < exactCount && share == 0; ok = it.Next() {
		if size.Entries == counted {
			if share, err = s.shareBefore(class, it.Key()); share > 0 || err != nil {
				break
			}
		}
		size.Entries++
	}
	if ok && share == 0 && err == nil {
		share, err = s.shareBefore(class, it.Key())
	}
	if err = errors.Join(err, it.Close()); err != nil {
		return size, s.db.pebble.wrap("count entries", err)
	}
	if size.Estimated = ok; ok && share > 0 {
		size.Entries = int64(float64(size.Entries) / share)
	}
	return size, nil
}

// shareBefore estimates which share of a class's bytes on disk lies before a row. It is 0 if too little is on disk to tell.
func (s *store) shareBefore(class byte, row []byte) (float64, error) {
	lower := appendPrefix(nil, s.id, class)
	before, err := s.db.pebble.db.EstimateDiskUsage(lower, row)
	if err != nil {
		return 0, s.db.pebble.wrap("estimate size", err)
	}
	all, err := s.db.pebble.db.EstimateDiskUsage(lower, appendPrefix(nil, s.id, class+1))
	if err != nil {
		return 0, s.db.pebble.wrap("estimate size", err)
	}
	if all == 0 {
		return 0, nil
	}
	return float64(before) / float64(all), nil
}
