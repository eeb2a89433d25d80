package topologytest

import "github.com/tributary-io/tributary/processors"

// recordLog is one partition's records. It grows in pieces, so that a record stays where it is and long logs aren't copied.
type recordLog struct {
	pieces [][]Record // all but the last are full
	n      int
}

const pieceRecords = 1024

// firstPiece is small: most topics of most tests hold a few records.
const firstPiece = 16

func (l *recordLog) append(r Record) *Record {
	if last := len(l.pieces) - 1; last < 0 || len(l.pieces[last]) == pieceRecords {
		l.pieces = append(l.pieces, make([]Record, 0, firstPiece))
	}
	last := &l.pieces[len(l.pieces)-1]
	if len(*last) == firstPiece && cap(*last) == firstPiece {
		*last = append(make([]Record, 0, pieceRecords), *last...)
	}
	*last = append(*last, r)
	l.n++
	return &(*last)[len(*last)-1]
}

func (l *recordLog) at(offset int) *Record {
	return &l.pieces[offset/pieceRecords][offset%pieceRecords]
}

// span is a copy of the records from one offset to another.
func (l *recordLog) span(from, to int) []Record {
	records := make([]Record, 0, max(to-from, 0))
	for i := from; i < to; i++ {
		records = append(records, *l.at(i))
	}
	return records
}

// arena keeps copies of bytes in large pieces: what is in a topic stays there for good.
type arena struct{ free []byte }

const arenaPiece = 64 << 10

// copy keeps the difference between a null and an empty value.
func (a *arena) copy(b []byte) []byte {
	if b == nil {
		return nil
	}
	if len(b) > cap(a.free)-len(a.free) {
		if len(b) > arenaPiece/8 {
			return append(make([]byte, 0, len(b)), b...)
		}
		a.free = make([]byte, 0, arenaPiece)
	}
	from := len(a.free)
	a.free = append(a.free, b...)
	return a.free[from:len(a.free):len(a.free)]
}

// record copies what a caller may reuse.
func (a *arena) record(r Record) Record {
	r.Key, r.Value = a.copy(r.Key), a.copy(r.Value)
	if len(r.Headers) == 0 {
		r.Headers = nil
		return r
	}
	headers := make([]processors.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = processors.Header{Key: h.Key, Value: a.copy(h.Value)}
	}
	r.Headers = headers
	return r
}
