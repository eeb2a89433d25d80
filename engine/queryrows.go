package engine

import (
	"math"
	"slices"

	"github.com/tributary-io/tributary/state"
)

// row is a row of any kind of store. Its bytes are its own.
type row struct {
	key, value []byte
	timestamp  int64 // 0 in plain stores
	start, end int64 // of windows (end is not known to the store), sessions, and the validity of versions
}

// portion is what a scan took out of a store; more says that there may be more behind it.
type portion struct {
	rows []row
	more bool
	err  error
}

const (
	unlimited   = math.MaxInt
	portionRows = 256
	maxTime     = math.MaxInt64
)

// iterator is what the iterators of all kinds have in common.
type iterator interface {
	Next() bool
	Close() error
}

// take collects at most limit rows and closes the iterator.
func take[I iterator](it I, err error, limit int, build func(I) row) portion {
	if err != nil {
		return portion{err: err}
	}
	var p portion
	for it.Next() {
		if len(p.rows) == limit {
			p.more = true
			break
		}
		p.rows = append(p.rows, build(it))
	}
	p.err = it.Close()
	return p
}

func entryRow(it state.KeyValueIterator) row {
	return row{key: slices.Clone(it.Key()), value: own(it.Value()), timestamp: it.Timestamp()}
}

// own copies bytes; empty is not nil.
func own(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// scanRange takes rows of keys from..to out of a key-value store, behind after.
func scanRange(s state.Stores, store string, from, to []byte, after *row, limit int) portion {
	kv, err := s.KeyValueBytes(store)
	if err != nil {
		return portion{err: err}
	}
	if after != nil {
		from = behind(after.key)
	}
	it, err := kv.Range(from, to)
	return take(it, err, limit, entryRow)
}

// behind is the first key after key.
func behind(key []byte) []byte { return append(own(key), 0) }

// scanPrefix takes rows whose keys begin with prefix out of a key-value store, behind after.
func scanPrefix(s state.Stores, store string, prefix []byte, after *row, limit int) portion {
	if after == nil {
		kv, err := s.KeyValueBytes(store)
		if err != nil {
			return portion{err: err}
		}
		it, err := kv.Prefix(prefix)
		return take(it, err, limit, entryRow)
	}
	p := scanRange(s, store, nil, prefixEnd(prefix), after, limit)
	if n := len(p.rows); n > 0 && !hasPrefix(p.rows[n-1].key, prefix) { // the end itself, which Range includes
		p.rows, p.more = p.rows[:n-1], false
	}
	return p
}

// prefixEnd is the first key behind all that begin with prefix; nil if there is none.
func prefixEnd(prefix []byte) []byte {
	end := own(prefix)
	for len(end) > 0 {
		if end[len(end)-1] < 0xff {
			end[len(end)-1]++
			return end
		}
		end = end[:len(end)-1]
	}
	return nil
}

func hasPrefix(b, prefix []byte) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == string(prefix)
}

func getEntry(s state.Stores, store string, key []byte) portion {
	kv, err := s.KeyValueBytes(store)
	if err != nil {
		return portion{err: err}
	}
	value, ts, ok, err := kv.Get(key, []byte{})
	if err != nil || !ok {
		return portion{err: err}
	}
	return portion{rows: []row{{key: key, value: value, timestamp: ts}}}
}

// scanWindows takes the windows that start within from..to, of one key or of all (nil).
func scanWindows(s state.Stores, store string, key []byte, from, to int64, limit int) portion {
	w, err := s.WindowBytes(store)
	if err != nil {
		return portion{err: err}
	}
	var it state.WindowIterator
	if key != nil {
		it, err = w.Fetch(key, from, to, state.Forward)
	} else {
		it, err = w.FetchAll(from, to, state.Forward)
	}
	return take(it, err, limit, func(it state.WindowIterator) row {
		return row{key: slices.Clone(it.Key()), value: own(it.Value()), timestamp: it.Timestamp(), start: it.Start()}
	})
}

// scanSessions takes the sessions that end at or after earliestEnd and start at or before latestStart, of one key or of all (nil).
func scanSessions(s state.Stores, store string, key []byte, earliestEnd, latestStart int64, limit int) portion {
	ss, err := s.SessionBytes(store)
	if err != nil {
		return portion{err: err}
	}
	var it state.SessionIterator
	if key != nil {
		it, err = ss.Find(key, earliestEnd, latestStart, state.Forward)
	} else {
		it, err = ss.FindRange(nil, nil, earliestEnd, latestStart, state.Forward)
	}
	return take(it, err, limit, func(it state.SessionIterator) row {
		return row{key: slices.Clone(it.Key()), value: own(it.Value()), start: it.Start(), end: it.End()}
	})
}

// getVersion gives the version of a key at a time; maxTime asks for the latest.
func getVersion(s state.Stores, store string, key []byte, asOf int64) portion {
	v, err := s.VersionedBytes(store)
	if err != nil {
		return portion{err: err}
	}
	var got state.BytesVersion
	var ok bool
	if asOf == maxTime {
		got, ok, err = v.Get(key, nil)
	} else {
		got, ok, err = v.GetAsOf(key, asOf, nil)
	}
	if err != nil || !ok {
		return portion{err: err}
	}
	return portion{rows: []row{versionRow(key, got)}}
}

func versionRow(key []byte, v state.BytesVersion) row {
	return row{key: key, value: own(v.Value), timestamp: v.ValidFrom, start: v.ValidFrom, end: v.ValidTo}
}

// scanHistory takes the versions of a key whose validity meets from..to, the oldest first.
func scanHistory(s state.Stores, store string, key []byte, from, to int64, limit int) portion {
	v, err := s.VersionedBytes(store)
	if err != nil {
		return portion{err: err}
	}
	it, err := v.History(key, from, to, state.Forward)
	return take(it, err, limit, func(it state.VersionIterator) row { return versionRow(key, it.Version()) })
}
