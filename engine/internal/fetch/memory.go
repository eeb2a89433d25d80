package fetch

import "github.com/twmb/franz-go/pkg/kgo"

// recordMemory lends the memory of a chunk's records, which is many times that of a changelog's small keys and values, and full of pointers: made anew for
// each chunk, it is what the collector works for in a restore. The client's own way back, Record.Recycle, counts each record; here a chunk's
// records are given back together.
type recordMemory struct {
	slab []kgo.Record
	used int
}

// GetRecords implements kgo.PoolRecords. What it gave before stays as it is until reset.
func (m *recordMemory) GetRecords(n int) []kgo.Record {
	if len(m.slab)-m.used < n {
		m.slab, m.used = make([]kgo.Record, max(n, m.used+n)), 0
	}
	lent := m.slab[m.used : m.used+n : m.used+n]
	m.used += n
	return lent
}

// PutRecords implements kgo.PoolRecords. It does nothing: of a batch without records for the reader, too, the memory comes back with its chunk.
func (m *recordMemory) PutRecords([]kgo.Record) {}

// reset takes back what was lent. The records let go of their keys and values, else few would hold the answers of many fetches.
func (m *recordMemory) reset() {
	clear(m.slab[:m.used])
	m.used = 0
}
