package state

// untimed shows a plain key-value store as a timestamped one whose times aren't known.
type untimed struct{ KeyValueBytes }

// noTime is the timestamp of what has none.
const noTime int64 = -1

func (u untimed) Get(key, dst []byte) (value []byte, ts int64, ok bool, err error) {
	value, _, ok, err = u.KeyValueBytes.Get(key, dst)
	return value, noTime, ok, err
}

func (u untimed) PutIfAbsent(key, value []byte, ts int64, dst []byte) (old []byte, oldTS int64, ok bool, err error) {
	old, _, ok, err = u.KeyValueBytes.PutIfAbsent(key, value, ts, dst)
	return old, noTime, ok, err
}

func (u untimed) Delete(key, dst []byte) (old []byte, oldTS int64, ok bool, err error) {
	old, _, ok, err = u.KeyValueBytes.Delete(key, dst)
	return old, noTime, ok, err
}

func (u untimed) Range(from, to []byte) (KeyValueIterator, error) {
	return untimedScan(u.KeyValueBytes.Range(from, to))
}

func (u untimed) ReverseRange(from, to []byte) (KeyValueIterator, error) {
	return untimedScan(u.KeyValueBytes.ReverseRange(from, to))
}

func (u untimed) Prefix(prefix []byte) (KeyValueIterator, error) {
	return untimedScan(u.KeyValueBytes.Prefix(prefix))
}

func untimedScan(it KeyValueIterator, err error) (KeyValueIterator, error) {
	if err != nil {
		return nil, err
	}
	return untimedIterator{it}, nil
}

type untimedIterator struct{ KeyValueIterator }

func (untimedIterator) Timestamp() int64 { return noTime }
