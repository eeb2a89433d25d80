package state

// untimed shows a plain key-value store as a timestamped one. The times of its rows aren't known, unless it caches them.
type untimed struct {
	KeyValueBytes
	cached bool
}

// noTime is the timestamp of what has none.
const noTime int64 = -1

func (u untimed) time(ts int64) int64 {
	if u.cached {
		return ts
	}
	return noTime
}

func (u untimed) Get(key, dst []byte) (value []byte, ts int64, ok bool, err error) {
	value, ts, ok, err = u.KeyValueBytes.Get(key, dst)
	return value, u.time(ts), ok, err
}

func (u untimed) PutIfAbsent(key, value []byte, ts int64, dst []byte) (old []byte, oldTS int64, ok bool, err error) {
	old, oldTS, ok, err = u.KeyValueBytes.PutIfAbsent(key, value, ts, dst)
	return old, u.time(oldTS), ok, err
}

func (u untimed) Delete(key, dst []byte) (old []byte, oldTS int64, ok bool, err error) {
	old, oldTS, ok, err = u.KeyValueBytes.Delete(key, dst)
	return old, u.time(oldTS), ok, err
}

func (u untimed) Range(from, to []byte) (KeyValueIterator, error) {
	return u.scan(u.KeyValueBytes.Range(from, to))
}

func (u untimed) ReverseRange(from, to []byte) (KeyValueIterator, error) {
	return u.scan(u.KeyValueBytes.ReverseRange(from, to))
}

func (u untimed) Prefix(prefix []byte) (KeyValueIterator, error) {
	return u.scan(u.KeyValueBytes.Prefix(prefix))
}

func (u untimed) scan(it KeyValueIterator, err error) (KeyValueIterator, error) {
	if err != nil || u.cached {
		return it, err
	}
	return untimedIterator{it}, nil
}

type untimedIterator struct{ KeyValueIterator }

func (untimedIterator) Timestamp() int64 { return noTime }

// untimedWindows shows a plain window store, which doesn't cache its times, as a timestamped one.
type untimedWindows struct{ WindowBytes }

func (u untimedWindows) Get(key []byte, start int64, dst []byte) (value []byte, ts int64, ok bool, err error) {
	value, _, ok, err = u.WindowBytes.Get(key, start, dst)
	return value, noTime, ok, err
}

func (u untimedWindows) Fetch(key []byte, from, to int64, dir Direction) (WindowIterator, error) {
	return untimedWindow(u.WindowBytes.Fetch(key, from, to, dir))
}

func (u untimedWindows) FetchRange(keyFrom, keyTo []byte, from, to int64, dir Direction) (WindowIterator, error) {
	return untimedWindow(u.WindowBytes.FetchRange(keyFrom, keyTo, from, to, dir))
}

func (u untimedWindows) FetchAll(from, to int64, dir Direction) (WindowIterator, error) {
	return untimedWindow(u.WindowBytes.FetchAll(from, to, dir))
}

func (u untimedWindows) All(dir Direction) (WindowIterator, error) {
	return untimedWindow(u.WindowBytes.All(dir))
}

func untimedWindow(it WindowIterator, err error) (WindowIterator, error) {
	if err != nil {
		return nil, err
	}
	return untimedWindowIterator{it}, nil
}

type untimedWindowIterator struct{ WindowIterator }

func (untimedWindowIterator) Timestamp() int64 { return noTime }
