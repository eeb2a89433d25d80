package state

// exactCount is up to how many entries a persistent store counts one by one.
const exactCount = 10_000

// ApproximateNumEntries implements KeyValueBytes. On disk, up to 10,000 entries are counted, and all of them if they are still in a
// memtable; beyond, the size of the files is divided by what these entries took. A store that takes a database's place in memory says what
// RocksDB says before its first flush: the puts less the deletes, whether there was an entry or not. Of a store that coalesces its updates a
// commit puts and deletes what has changed by then: of each entry its last state, and nothing where there was none and is none, if a table
// keeps it.
func (s *keyValue) ApproximateNumEntries() (int64, error) {
	if s.standsIn() && !s.readOnly {
		return max(s.estimate, 0), nil
	}
	return s.countEntries()
}

// standsIn tells that the store is in memory although it is declared to be on disk.
func (s *keyValue) standsIn() bool { return s.mem != nil && !s.spec.InMemory }

// count notes a put or a delete for the estimate.
func (s *keyValue) count(put bool) {
	if put {
		s.estimate++
	} else {
		s.estimate--
	}
}

// seal counts what a commit of a store that coalesces its updates puts and deletes.
func (s *keyValue) seal() (err error) {
	if !s.spec.Caching || !s.standsIn() {
		return nil
	}
	for i := range s.open.entries {
		e := &s.open.entries[i]
		put := e.last != 0 && s.open.versions[e.last-1].len != deleted
		known := true
		if !put && !s.spec.Unsent {
			if s.scratch, known, err = s.getBefore(e.hash, s.open.entryKey(uint32(i)), s.scratch[:0]); err != nil {
				return err
			}
		}
		if known {
			s.count(put)
		}
	}
	return nil
}

// entriesInMemory counts the entries of a store in memory, without a scan where all of them are in its base: that would have it keep them in order ever after.
func (s *keyValue) entriesInMemory() (int64, error) {
	if s.open.empty() && s.sealed.Load() == nil {
		n, _ := s.mem.size()
		return int64(n), nil
	}
	return s.countEntries()
}

func (s *keyValue) countEntries() (int64, error) {
	it, err := s.rows(nil, nil, false) // without what only the record cache has, as in Kafka Streams
	if err != nil {
		return 0, err
	}
	defer it.Close()
	var n int64
	for it.Next() {
		if n++; n == exactCount && s.mem == nil {
			share, err := s.shareBefore(classPlain, s.rowKey(it.Key()))
			if err != nil {
				return 0, err
			}
			if share > 0 {
				return int64(float64(n) / share), nil
			}
		}
	}
	return n, it.Close()
}
