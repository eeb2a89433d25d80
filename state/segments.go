package state

import (
	"bytes"
	"fmt"
)

// segmentScan walks over rows segment by segment, and within a segment over the rows between two tails. Where the rows are an index,
// it finds the rows themselves.
type segmentScan struct {
	s        *store
	c        cursor
	rows     cursor // for index scans
	readOnly bool
	class    byte
	reverse  bool // from the last segment to the first
	// rowsReverse is the direction within a segment; it differs from reverse where rows lie in descending order.
	rowsReverse bool
	prefix      bool
	index       bool
	seg, last   int64
	began       bool
	lowTail     []byte // after store, class and segment; nil: from the segment's beginning
	highTail    []byte // exclusive; nil: to the segment's end
	low, high   []byte
	rowKey      []byte
	room        [4][64]byte // where the four bounds lie if they are short
}

// init opens the scan over the segments first..last.
func (sc *segmentScan) init(s *store, readOnly bool, class byte, first, last int64, dir Direction) error {
	sc.s, sc.class, sc.readOnly = s, class, readOnly
	sc.reverse, sc.rowsReverse = dir == Backward, dir == Backward
	sc.seg, sc.last = first, last
	sc.low, sc.high = sc.room[0][:0], sc.room[1][:0]
	if sc.reverse {
		sc.seg, sc.last = last, first
	}
	if err := sc.c.init(s, readOnly); err != nil {
		return fmt.Errorf("store %q: %w", s.spec.Name, err)
	}
	return nil
}

// useIndex says that the rows scanned are an index. rowOf gives the rows' keys.
func (sc *segmentScan) useIndex() error {
	sc.index = true
	if err := sc.rows.init(sc.s, sc.readOnly); err != nil {
		return fmt.Errorf("store %q: %w", sc.s.spec.Name, err)
	}
	return nil
}

// next goes to the next row of any segment.
func (sc *segmentScan) next() bool {
	if !sc.began {
		sc.began = true
		if sc.reverse && sc.seg < sc.last || !sc.reverse && sc.seg > sc.last {
			return false
		}
		sc.open()
	}
	for {
		if sc.c.next() {
			return true
		}
		if sc.c.err() != nil || sc.c.closed || sc.seg == sc.last {
			return false
		}
		if !sc.advance() {
			return false
		}
	}
}

// farSegments is from how many segments left on the scan looks for the next one that has rows, instead of trying each.
const farSegments = 8

// advance opens the next segment.
func (sc *segmentScan) advance() bool {
	step, left := int64(1), sc.last-sc.seg
	if sc.reverse {
		step, left = -1, -left
	}
	sc.seg += step
	if left > farSegments && !sc.jump() {
		return false
	}
	sc.open()
	return true
}

// jump goes to the first segment from sc.seg to sc.last that has rows of any key.
func (sc *segmentScan) jump() bool {
	from, to := sc.seg, sc.last
	if sc.reverse {
		from, to = to, from
	}
	sc.low = appendOrdered(appendPrefix(sc.low[:0], sc.s.id, sc.class), from)
	sc.high = appendOrdered(appendPrefix(sc.high[:0], sc.s.id, sc.class), to+1)
	sc.c.reset(sc.low, sc.high, sc.reverse, false)
	if !sc.c.next() {
		return false
	}
	sc.seg = ordered(sc.c.key()[prefixLen:])
	return true
}

func (sc *segmentScan) open() {
	sc.low = appendOrdered(appendPrefix(sc.low[:0], sc.s.id, sc.class), sc.seg)
	sc.low = append(sc.low, sc.lowTail...)
	if sc.highTail != nil {
		sc.high = appendOrdered(appendPrefix(sc.high[:0], sc.s.id, sc.class), sc.seg)
		sc.high = append(sc.high, sc.highTail...)
	} else {
		sc.high = appendOrdered(appendPrefix(sc.high[:0], sc.s.id, sc.class), sc.seg+1)
	}
	sc.c.reset(sc.low, sc.high, sc.rowsReverse, sc.prefix)
}

// value gives the value of the current row or, in an index scan, of the row whose key is given. found is false if an index entry has
// no row: it outlived it.
func (sc *segmentScan) value(rowKey []byte) (val []byte, found bool, err error) {
	if !sc.index {
		return sc.c.value(), true, nil
	}
	sc.rowKey = append(append(sc.rowKey[:0], rowKey...), 0)
	sc.rows.reset(rowKey, sc.rowKey, false, false)
	if !sc.rows.next() {
		return nil, false, sc.rows.err()
	}
	return sc.rows.value(), true, nil
}

func (sc *segmentScan) close() error {
	err := sc.c.close()
	if sc.index {
		if err2 := sc.rows.close(); err == nil {
			err = err2
		}
	}
	return err
}

// keyTails sets the tails to the rows of one user key, between two suffixes.
func (sc *segmentScan) keyTails(key, lowSuffix, highSuffix []byte) {
	sc.prefix = true
	sc.lowTail = append(appendEscaped(sc.room[2][:0], key), lowSuffix...)
	sc.highTail = append(appendEscaped(sc.room[3][:0], key), highSuffix...)
}

// rangeTails sets the tails to the rows of the user keys from..to; nil is open.
func (sc *segmentScan) rangeTails(from, to []byte) {
	if from != nil {
		sc.lowTail = appendEscaped(sc.room[2][:0], from)
	}
	if to != nil {
		sc.highTail = append(appendEscapedOpen(sc.room[3][:0], to), escape, afterTerminator)
	}
}

// inRange tells whether key lies in from..to; nil is open.
func inRange(key, from, to []byte) bool {
	return (from == nil || bytes.Compare(key, from) >= 0) && (to == nil || bytes.Compare(key, to) <= 0)
}

// errRow says that a row's key can't be taken apart.
func (s *store) errRow(row []byte) error {
	return fmt.Errorf("store %q: the key of a row has an impossible layout (%x): %w", s.spec.Name, row, ErrCorruption)
}
