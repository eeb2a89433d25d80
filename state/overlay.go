package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// ErrBufferFull says that a generation can hold no more: commit first.
var ErrBufferFull = errors.New("state: write buffer of one store exceeds 4 GB: commit more often")

// overlay is the write buffer of one store in one generation: the rows written since the last seal, and the log of changelog
// records. Rows are found by a hash table; an ordered index is built only when a scan asks for it. All bytes lie in one buffer that
// is kept for the next generation, so a steady stream of writes allocates nothing.
//
// Rows keep all the versions that were written, chained newest first, so that an iterator sees the store as it was when it began.
type overlay struct {
	buf      []byte
	table    []uint32 // open addressing; entry number + 1, 0 is free
	entries  []ovEntry
	versions []ovVersion
	log      []logRecord
	index    skipList
	users    int        // iterators that read this overlay
	headers  [][]Header // of log records that have their own (Spec.LogHeaders)
}

type ovEntry struct {
	hash    uint64
	key     uint32
	keyLen  uint32
	last    uint32 // newest version + 1
	lastLog uint32 // newest log record + 1, 0 if none
}

type ovVersion struct {
	off  uint32
	len  int32  // deleted if negative
	prev uint32 // version + 1, 0 if none
}

const deleted = -1

// logRecord is one record for the changelog. Its key is either a row's (entry > 0, to be turned into a changelog key) or lies in
// the buffer as it is.
type logRecord struct {
	entry      uint32 // + 1, 0 if the key is in the buffer
	key        uint32
	keyLen     uint32
	val        uint32
	valLen     int32  // tombstone if negative
	superseded bool   // by a later record of the same key, under LastPerKeyPerCommit
	headers    bool   // carries the format version header of a suppress buffer
	own        uint32 // + 1, index of its own headers; 0 for none
	ts         int64
}

func newOverlay() *overlay { return &overlay{} }

// size is the number of bytes in use.
func (o *overlay) size() int64 {
	const perEntry, perVersion, perLog = 24 + 8, 12, 40
	return int64(len(o.buf) + len(o.entries)*perEntry + len(o.versions)*perVersion + len(o.log)*perLog)
}

func (o *overlay) empty() bool { return len(o.versions) == 0 && len(o.log) == 0 }

// reset makes the overlay ready for the next generation, and lets go of memory far above what the last one needed.
func (o *overlay) reset() {
	if cap(o.buf) > 1<<20 && len(o.buf) < cap(o.buf)/8 {
		*o = *newOverlay()
		return
	}
	// Clearing the table costs its size; after a few writes it is cheaper to clear the slots that are taken.
	if len(o.entries)*8 < len(o.table) {
		for i := range o.entries {
			o.table[o.slotOf(uint32(i))] = 0
		}
	} else {
		clear(o.table)
	}
	o.buf, o.entries, o.versions, o.log = o.buf[:0], o.entries[:0], o.versions[:0], o.log[:0]
	clear(o.headers)
	o.headers = o.headers[:0]
	o.index.reset()
}

func (o *overlay) entryKey(e uint32) []byte {
	en := &o.entries[e]
	return o.buf[en.key : en.key+en.keyLen : en.key+en.keyLen]
}

// slot finds the slot of key: the one that holds it, or the free one where it belongs.
func (o *overlay) slot(h uint64, key []byte) uint32 {
	mask := uint32(len(o.table) - 1)
	for i := uint32(h) & mask; ; i = (i + 1) & mask {
		e := o.table[i]
		if e == 0 {
			return i
		}
		if en := &o.entries[e-1]; en.hash == h && bytes.Equal(o.buf[en.key:en.key+en.keyLen], key) {
			return i
		}
	}
}

// slotOf finds the slot of an entry that is in the table, even where slots before it were cleared.
func (o *overlay) slotOf(e uint32) uint32 {
	mask := uint32(len(o.table) - 1)
	i := uint32(o.entries[e].hash) & mask
	for o.table[i] != e+1 {
		i = (i + 1) & mask
	}
	return i
}

// find gives the entry of key, whose hash is h.
func (o *overlay) find(h uint64, key []byte) (e uint32, ok bool) {
	if len(o.entries) == 0 {
		return 0, false
	}
	e = o.table[o.slot(h, key)]
	return e - 1, e != 0
}

// get gives the value of key, whose hash is h. found says whether the overlay knows the key; val is nil if it is deleted. The bytes are valid until
// the overlay is reset.
func (o *overlay) get(h uint64, key []byte) (val []byte, found bool) {
	e, ok := o.find(h, key)
	if !ok {
		return nil, false
	}
	return o.value(o.entries[e].last - 1), true
}

// value gives the bytes of a version, nil if it is a deletion.
func (o *overlay) value(v uint32) []byte {
	ver := &o.versions[v]
	if ver.len < 0 {
		return nil
	}
	return o.buf[ver.off : ver.off+uint32(ver.len) : ver.off+uint32(ver.len)]
}

// set writes a row: head and val together are its value; a nil val deletes it. It returns the entry.
func (o *overlay) set(key, head, val []byte) (e uint32, err error) {
	if err := o.room(len(key) + len(head) + len(val)); err != nil {
		return 0, err
	}
	e = o.upsert(key)
	v := ovVersion{off: uint32(len(o.buf)), len: deleted, prev: o.entries[e].last}
	if val != nil {
		o.buf = append(append(o.buf, head...), val...)
		v.len = int32(len(head) + len(val))
	}
	o.versions = append(o.versions, v)
	o.entries[e].last = uint32(len(o.versions))
	return e, nil
}

func (o *overlay) upsert(key []byte) uint32 {
	if len(o.entries)*2 >= len(o.table) {
		o.growTable()
	}
	h := hashRow(key)
	s := o.slot(h, key)
	if e := o.table[s]; e != 0 {
		return e - 1
	}
	o.entries = append(o.entries, ovEntry{hash: h, key: uint32(len(o.buf)), keyLen: uint32(len(key))})
	o.buf = append(o.buf, key...)
	o.table[s] = uint32(len(o.entries))
	return uint32(len(o.entries) - 1)
}

func (o *overlay) growTable() {
	o.table = make([]uint32, max(64, 2*len(o.table)))
	mask := uint32(len(o.table) - 1)
	for e := range o.entries {
		i := uint32(o.entries[e].hash) & mask
		for o.table[i] != 0 {
			i = (i + 1) & mask
		}
		o.table[i] = uint32(e + 1)
	}
}

// room makes sure that n more bytes fit, growing the buffer by doubling.
func (o *overlay) room(n int) error {
	need := len(o.buf) + n
	if need > math.MaxUint32 || n > math.MaxInt32 {
		return ErrBufferFull
	}
	if need > cap(o.buf) {
		o.buf = slices.Grow(o.buf, max(n, len(o.buf), 512))
	}
	return nil
}

// logRow logs the newest version of an entry, without the first skip bytes of its value.
func (o *overlay) logRow(e uint32, skip int, ts int64, policy Policy) {
	en := &o.entries[e]
	v := o.versions[en.last-1]
	r := logRecord{entry: e + 1, valLen: deleted, ts: ts}
	if v.len >= 0 {
		r.val, r.valLen = v.off+uint32(skip), v.len-int32(skip)
	}
	if policy == LastPerKeyPerCommit && en.lastLog != 0 {
		o.log[en.lastLog-1].superseded = true
	}
	o.log = append(o.log, r)
	en.lastLog = uint32(len(o.log))
}

// logRaw logs a record whose key and value are not those of a row.
func (o *overlay) logRaw(key, val []byte, ts int64, headers bool) error {
	if err := o.room(len(key) + len(val)); err != nil {
		return err
	}
	r := logRecord{key: uint32(len(o.buf)), keyLen: uint32(len(key)), valLen: deleted, ts: ts, headers: headers}
	o.buf = append(o.buf, key...)
	if val != nil {
		r.val, r.valLen = uint32(len(o.buf)), int32(len(val))
		o.buf = append(o.buf, val...)
	}
	o.log = append(o.log, r)
	return nil
}

// logHeaders gives the newest log record headers, which are copied.
func (o *overlay) logHeaders(headers []Header) {
	if len(headers) == 0 {
		return
	}
	own := make([]Header, len(headers))
	for i, h := range headers {
		own[i] = Header{Key: h.Key, Value: bytes.Clone(h.Value)}
	}
	o.headers = append(o.headers, own)
	o.log[len(o.log)-1].own = uint32(len(o.headers))
}

// sorted gives the entries in key order.
func (o *overlay) sorted(scratch []uint32) []uint32 {
	scratch = slices.Grow(scratch[:0], len(o.entries))
	for e := range o.entries {
		scratch = append(scratch, uint32(e))
	}
	slices.SortFunc(scratch, func(a, b uint32) int { return bytes.Compare(o.entryKey(a), o.entryKey(b)) })
	return scratch
}

// ensureIndex brings the ordered index up to date.
func (o *overlay) ensureIndex() {
	for n := o.index.len(); n < len(o.entries); n++ {
		o.index.insert(o, uint32(n))
	}
}

// visible gives the version of an entry that is visible to an iterator which began when there were limit versions.
func (o *overlay) visible(e uint32, limit uint32) (v uint32, ok bool) {
	for v := o.entries[e].last; v != 0; v = o.versions[v-1].prev {
		if v <= limit {
			return v - 1, true
		}
	}
	return 0, false
}

// putTS writes a timestamp in front of a value of a timestamped store.
func putTS(b *[8]byte, ts int64) []byte {
	binary.BigEndian.PutUint64(b[:], uint64(ts))
	return b[:]
}

func getTS(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }
