package state

import "container/list"

// lru keeps the order of use of an in-memory store with a limit of entries. Getting and putting an entry makes it the newest; what
// exceeds the limit is deleted from the store, oldest first, and gets a tombstone in the changelog if the store is a plain one.
type lru struct {
	max   int
	order *list.List // of string keys, newest first
	nodes map[string]*list.Element
}

func newLRU(max int) *lru {
	return &lru{max: max, order: list.New(), nodes: map[string]*list.Element{}}
}

func (l *lru) touch(key []byte) {
	if n, ok := l.nodes[string(key)]; ok {
		l.order.MoveToFront(n)
	}
}

func (l *lru) touchNew(key []byte) {
	if n, ok := l.nodes[string(key)]; ok {
		l.order.MoveToFront(n)
		return
	}
	k := string(key)
	l.nodes[k] = l.order.PushFront(k)
}

func (l *lru) remove(key []byte) {
	if n, ok := l.nodes[string(key)]; ok {
		l.order.Remove(n)
		delete(l.nodes, string(key))
	}
}

// put notes that key was put or deleted, and evicts from s what is too much. The tombstone of what was evicted comes before the
// record of what was put, as in Kafka Streams.
func (l *lru) put(s *keyValue, key []byte, present bool) error {
	if !present {
		l.remove(key)
		return nil
	}
	l.touchNew(key)
	for len(l.nodes) > l.max {
		oldest := []byte(l.order.Back().Value.(string))
		l.remove(oldest)
		e, err := s.write(s.rowKey(oldest), nil, nil)
		if err != nil {
			return err
		}
		if !s.spec.timestamped() {
			s.logRow(e, s.headLen(), s.now())
		}
	}
	return nil
}
