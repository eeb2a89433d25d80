package scan

import (
	"bytes"
	"math"
	"slices"

	"github.com/tributary-io/tributary/state"
)

// Row is a row of any kind of store. Its bytes are its own.
type Row struct {
	Key, Value []byte
	Timestamp  int64 // 0 in plain stores
	Start, End int64 // of windows (End is not known to the store), sessions, and the validity of versions
}

// Portion is what a scan took out of a store; More says that there may be more behind it.
type Portion struct {
	Rows []Row
	More bool
	Err  error
}

// Unlimited is the limit of a scan that takes all; MaxTime is later than all times.
const (
	Unlimited = math.MaxInt
	MaxTime   = math.MaxInt64
)

// iterator is what the iterators of all kinds have in common.
type iterator interface {
	Next() bool
	Close() error
}

// take collects at most limit rows and closes the iterator.
func take[I iterator](it I, err error, limit int, build func(I) Row) Portion {
	if err != nil {
		return Portion{Err: err}
	}
	var p Portion
	for it.Next() {
		if len(p.Rows) == limit {
			p.More = true
			break
		}
		p.Rows = append(p.Rows, build(it))
	}
	p.Err = it.Close()
	return p
}

func entryRow(it state.KeyValueIterator) Row {
	return Row{Key: slices.Clone(it.Key()), Value: own(it.Value()), Timestamp: it.Timestamp()}
}

// own copies bytes; empty is not nil.
func own(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// Range takes rows of keys from..to out of a key-value store, behind after.
func Range(s state.Stores, store string, from, to []byte, after *Row, limit int) Portion {
	kv, err := s.KeyValueBytes(store)
	if err != nil {
		return Portion{Err: err}
	}
	if after != nil {
		from = behind(after.Key)
	}
	it, err := kv.Range(from, to)
	return take(it, err, limit, entryRow)
}

// behind is the first key after key.
func behind(key []byte) []byte { return append(own(key), 0) }

// Prefix takes rows whose keys begin with prefix out of a key-value store, behind after.
func Prefix(s state.Stores, store string, prefix []byte, after *Row, limit int) Portion {
	if after == nil {
		kv, err := s.KeyValueBytes(store)
		if err != nil {
			return Portion{Err: err}
		}
		it, err := kv.Prefix(prefix)
		return take(it, err, limit, entryRow)
	}
	p := Range(s, store, nil, prefixEnd(prefix), after, limit)
	if n := len(p.Rows); n > 0 && !bytes.HasPrefix(p.Rows[n-1].Key, prefix) { // the end itself, which Range includes
		p.Rows, p.More = p.Rows[:n-1], false
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

// Get gives the row of a key of a key-value store.
func Get(s state.Stores, store string, key []byte) Portion {
	kv, err := s.KeyValueBytes(store)
	if err != nil {
		return Portion{Err: err}
	}
	value, ts, ok, err := kv.Get(key, []byte{})
	if err != nil || !ok {
		return Portion{Err: err}
	}
	return Portion{Rows: []Row{{Key: key, Value: value, Timestamp: ts}}}
}

// Windows takes the windows that start within from..to, of one key or of all (nil).
func Windows(s state.Stores, store string, key []byte, from, to int64, limit int) Portion {
	w, err := s.WindowBytes(store)
	if err != nil {
		return Portion{Err: err}
	}
	var it state.WindowIterator
	if key != nil {
		it, err = w.Fetch(key, from, to, state.Forward)
	} else {
		it, err = w.FetchAll(from, to, state.Forward)
	}
	return take(it, err, limit, func(it state.WindowIterator) Row {
		return Row{Key: slices.Clone(it.Key()), Value: own(it.Value()), Timestamp: it.Timestamp(), Start: it.Start()}
	})
}

// Sessions takes the sessions that end at or after earliestEnd and start at or before latestStart, of one key or of all (nil).
func Sessions(s state.Stores, store string, key []byte, earliestEnd, latestStart int64, limit int) Portion {
	ss, err := s.SessionBytes(store)
	if err != nil {
		return Portion{Err: err}
	}
	var it state.SessionIterator
	if key != nil {
		it, err = ss.Find(key, earliestEnd, latestStart, state.Forward)
	} else {
		it, err = ss.FindRange(nil, nil, earliestEnd, latestStart, state.Forward)
	}
	return take(it, err, limit, func(it state.SessionIterator) Row {
		return Row{Key: slices.Clone(it.Key()), Value: own(it.Value()), Start: it.Start(), End: it.End()}
	})
}

// Version gives the version of a key at a time; MaxTime asks for the latest.
func Version(s state.Stores, store string, key []byte, asOf int64) Portion {
	v, err := s.VersionedBytes(store)
	if err != nil {
		return Portion{Err: err}
	}
	var got state.BytesVersion
	var ok bool
	if asOf == MaxTime {
		got, ok, err = v.Get(key, nil)
	} else {
		got, ok, err = v.GetAsOf(key, asOf, nil)
	}
	if err != nil || !ok {
		return Portion{Err: err}
	}
	return Portion{Rows: []Row{versionRow(key, got)}}
}

func versionRow(key []byte, v state.BytesVersion) Row {
	return Row{Key: key, Value: own(v.Value), Timestamp: v.ValidFrom, Start: v.ValidFrom, End: v.ValidTo}
}

// History takes the versions of a key whose validity meets from..to, the oldest first.
func History(s state.Stores, store string, key []byte, from, to int64, limit int) Portion {
	v, err := s.VersionedBytes(store)
	if err != nil {
		return Portion{Err: err}
	}
	it, err := v.History(key, from, to, state.Forward)
	return take(it, err, limit, func(it state.VersionIterator) Row { return versionRow(key, it.Version()) })
}
