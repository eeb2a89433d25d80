package topologytest

import (
	"github.com/tributary-io/tributary/internal/task"
	"github.com/tributary-io/tributary/processors"
)

// partition is one partition of a simulated topic: its records, and who reads them. Records are kept as entries without pointers, of which a
// long test may have millions: the garbage collector passes over them. They grow in pieces, so that long logs aren't copied.
type partition struct {
	topic   *topic
	number  int32
	kept    *arena
	pieces  [][]entry // all but the last are full
	n       int
	headers [][]processors.Header // of the records that have some
	names   []string              // of a pattern's input: the topics that its records are copied from, by offset; empty for its own

	reader    *member // nil if nothing reads the partition
	input     task.Input
	committed position // the reader's
	landedBy  []*table // of sub-topologies that only land rows: the tables know how far they are read
}

// entry is a record: where its bytes lie, key before value.
type entry struct {
	timestamp  int64
	piece, at  uint32
	key, value int32  // lengths; negative for a null
	headers    uint32 // + 1, in the partition's headers; 0 for none
}

const pieceRecords = 1024

// firstPiece is small: most topics of most tests hold a few records.
const firstPiece = 16

// append adds a record and returns its offset.
func (p *partition) append(e entry, headers []processors.Header) int64 {
	if len(headers) > 0 {
		p.headers = append(p.headers, headers)
		e.headers = uint32(len(p.headers))
	}
	if last := len(p.pieces) - 1; last < 0 || len(p.pieces[last]) == pieceRecords {
		size := pieceRecords
		if last < 0 {
			size = firstPiece
		}
		p.pieces = append(p.pieces, make([]entry, 0, size))
	}
	last := &p.pieces[len(p.pieces)-1]
	if len(*last) == firstPiece && cap(*last) == firstPiece {
		*last = append(make([]entry, 0, pieceRecords), *last...)
	}
	*last = append(*last, e)
	p.n++
	return int64(p.n - 1)
}

// fill sets r, which is empty, to the record at an offset. Its bytes are the log's.
func (p *partition) fill(r *Record, offset int64) {
	e := &p.pieces[offset/pieceRecords][offset%pieceRecords]
	r.Topic, r.Partition, r.Offset, r.Timestamp = p.topicAt(offset), p.number, offset, e.timestamp
	r.Key, r.Value = p.kept.bytes(e)
	if e.headers > 0 {
		r.Headers = p.headers[e.headers-1]
	}
}

// raw gives the record at an offset as a task takes it.
func (p *partition) raw(offset int64) (r processors.RawRecord) {
	p.fillRaw(&r, offset)
	return r
}

// fillRaw sets r, which is empty, to what raw gives.
func (p *partition) fillRaw(r *processors.RawRecord, offset int64) {
	e := &p.pieces[offset/pieceRecords][offset%pieceRecords]
	r.Topic, r.Partition, r.Offset, r.Timestamp = p.topicAt(offset), p.number, offset, e.timestamp
	r.Key, r.Value = p.kept.bytes(e)
	if e.headers > 0 {
		r.Headers = p.headers[e.headers-1]
	}
}

func (p *partition) topicAt(offset int64) string {
	if offset < int64(len(p.names)) && p.names[offset] != "" {
		return p.names[offset]
	}
	return p.topic.name
}

// copiedFrom notes the topic of a record that was copied.
func (p *partition) copiedFrom(topic string, offset int64) {
	for int64(len(p.names)) <= offset {
		p.names = append(p.names, "")
	}
	p.names[offset] = topic
}

func (p *partition) id() task.TopicPartition {
	return task.TopicPartition{Topic: p.topic.name, Partition: p.number}
}

// span is a copy of the records from one offset to another.
func (p *partition) span(from, to int64) []Record {
	records := make([]Record, max(to-from, 0))
	for i := range records {
		p.fill(&records[i], from+int64(i))
	}
	return records
}

// arena keeps copies of bytes in large pieces: what is in a topic stays there for good.
type arena struct{ pieces [][]byte }

const arenaPiece = 256 << 10

// keep copies a key and a value, and gives an entry that says where they are. It keeps the difference between a null and an empty value.
func (a *arena) keep(timestamp int64, key, value []byte) entry {
	last := a.pieceFor(len(key) + len(value))
	piece := a.pieces[last]
	e := entry{timestamp: timestamp, piece: uint32(last), at: uint32(len(piece)), key: length(key), value: length(value)}
	a.pieces[last] = append(append(piece, key...), value...)
	return e
}

// usualRecord is up to how many bytes a record finds room for that is encoded in place.
const usualRecord = 512

// room gives an empty slice to which a key and a value may be appended, to be handed to put then. In between nothing may be kept.
func (a *arena) room() []byte {
	piece := a.pieces[a.pieceFor(usualRecord)]
	return piece[len(piece):]
}

// put is keep for a key and a value, of these lengths, that were appended to room. What was too large for it is copied.
func (a *arena) put(timestamp int64, key, value int32, both []byte) entry {
	last := len(a.pieces) - 1
	piece := a.pieces[last]
	e := entry{timestamp: timestamp, piece: uint32(last), at: uint32(len(piece)), key: key, value: value}
	if cap(both) == cap(piece)-len(piece) { // it lies there
		a.pieces[last] = piece[:len(piece)+len(both)]
		return e
	}
	last = a.pieceFor(len(both))
	e.piece, e.at = uint32(last), uint32(len(a.pieces[last]))
	a.pieces[last] = append(a.pieces[last], both...)
	return e
}

// pieceFor gives the number of the last piece, which has room for size bytes.
func (a *arena) pieceFor(size int) int {
	last := len(a.pieces) - 1
	if last < 0 || size > cap(a.pieces[last])-len(a.pieces[last]) {
		a.pieces = append(a.pieces, make([]byte, 0, max(size, a.nextPiece())))
		last++
	}
	return last
}

// nextPiece grows with what there is: most tests need little.
func (a *arena) nextPiece() int { return min(arenaPiece, 4<<10*(len(a.pieces)+1)) }

func length(b []byte) int32 {
	if b == nil {
		return -1
	}
	return int32(len(b))
}

// bytes gives an entry's key and value.
func (a *arena) bytes(e *entry) (key, value []byte) {
	piece := a.pieces[e.piece]
	mid := e.at + uint32(max(e.key, 0))
	if e.key >= 0 {
		key = piece[e.at:mid:mid]
	}
	if e.value >= 0 {
		end := mid + uint32(e.value)
		value = piece[mid:end:end]
	}
	return key, value
}

// keepHeaders copies headers, which a caller may reuse.
func keepHeaders(headers []processors.Header) []processors.Header {
	if len(headers) == 0 {
		return nil
	}
	kept := make([]processors.Header, len(headers))
	for i, h := range headers {
		kept[i] = processors.Header{Key: h.Key, Value: cloneBytes(h.Value)}
	}
	return kept
}
