package state

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// ErrBufferFull says that a generation can hold no more: commit first.
var ErrBufferFull = errors.New("state: write buffer of one store exceeds 4 GB: commit more often")

// overlay is the write buffer of one store in one generation: the rows written since the last seal, and the log of changelog
// records. Rows are found by a hash table; an ordered index is built only when a scan asks for it. All bytes lie in one buffer. What it takes
// is used again by later generations, so a steady stream of writes allocates nothing: lent by a pool, where several databases share one.
//
// Rows keep all the versions that were written, chained newest first, so that an iterator sees the store as it was when it began.
type overlay struct {
	overlayMemory
	pool  *overlayPool // lends the memory at the first write; nil: it is the overlay's own
	need  int          // bytes of the buffer that it is likely to use, as its predecessor did
	users int          // iterators that read this overlay
}

// overlayMemory is what an overlay holds.
type overlayMemory struct {
	buf      []byte
	table    []uint64 // open addressing: upper half of the hash, entry number + 1; 0 is free
	entries  []ovEntry
	versions []ovVersion
	log      []logRecord
	index    skipList
	order    []sortEntry // scratch
	headers  [][]Header  // of the log records that have their own (Spec.LogHeaders), in their order
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

// logRecord is one record for the changelog. Its key is either a row's, to be turned into a changelog key, or lies in the buffer as it is,
// in front of its value.
type logRecord struct {
	ts     int64
	of     uint32 // the row's entry; the length of the key, of a raw one
	at     uint32 // where the value is; the key, of a raw one
	valLen int32  // tombstone if negative
	flags  logFlags
}

type logFlags uint8

const (
	logRaw        logFlags = 1 << iota
	logSuperseded          // by a later record of the same key, under LastPerKeyPerCommit
	logFormat              // carries the format version header of a suppress buffer
	logOwnHeaders          // has headers of its own
)

// rawKey is the key of a raw record.
func (o *overlay) rawKey(r *logRecord) []byte { return notNil(o.buf[r.at : r.at+r.of : r.at+r.of]) }

// logValue is a record's value, nil for a tombstone.
func (o *overlay) logValue(r *logRecord) []byte {
	if r.valLen < 0 {
		return nil
	}
	at := r.at
	if r.flags&logRaw != 0 {
		at += r.of
	}
	end := at + uint32(r.valLen)
	return o.buf[at:end:end]
}

func newOverlay(pool *overlayPool) *overlay { return &overlay{pool: pool} }

// size is the number of bytes in use.
func (o *overlay) size() int64 {
	const perEntry, perVersion, perLog = 24 + 16, 12, 24
	return int64(len(o.buf) + len(o.entries)*perEntry + len(o.versions)*perVersion + len(o.log)*perLog)
}

func (o *overlay) empty() bool { return len(o.versions) == 0 && len(o.log) == 0 }

// reset makes the overlay ready for the next generation. Nothing may read it any more.
func (o *overlay) reset() {
	if o.pool != nil {
		o.need = len(o.buf)
		o.pool.give(o.overlayMemory)
		o.overlayMemory = overlayMemory{}
		return
	}
	o.overlayMemory.reset()
}

// bytes is what the memory takes.
func (o *overlayMemory) bytes() int64 {
	const perTable, perEntry, perVersion, perLog, perOrder, perHeaders, perLink = 8, 24, 12, 24, 16, 24, 4
	return int64(cap(o.buf) + cap(o.table)*perTable + cap(o.entries)*perEntry + cap(o.versions)*perVersion + cap(o.log)*perLog +
		cap(o.order)*perOrder + cap(o.headers)*perHeaders + (cap(o.index.towers)+cap(o.index.links))*perLink)
}

// reset empties the memory, and lets go of it if it is far more than was needed.
func (o *overlayMemory) reset() {
	if cap(o.buf) > 1<<20 && len(o.buf) < cap(o.buf)/8 {
		*o = overlayMemory{}
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
		s := o.table[i]
		if s == 0 {
			return i
		}
		if uint32(s>>32) != uint32(h>>32) {
			continue
		}
		if en := &o.entries[uint32(s)-1]; en.hash == h && bytes.Equal(o.buf[en.key:en.key+en.keyLen], key) {
			return i
		}
	}
}

// slotOf finds the slot of an entry that is in the table, even where slots before it were cleared.
func (o *overlayMemory) slotOf(e uint32) uint32 {
	mask := uint32(len(o.table) - 1)
	i := uint32(o.entries[e].hash) & mask
	for uint32(o.table[i]) != e+1 {
		i = (i + 1) & mask
	}
	return i
}

// find gives the entry of key, whose hash is h.
func (o *overlay) find(h uint64, key []byte) (e uint32, ok bool) {
	if len(o.entries) == 0 {
		return 0, false
	}
	e = uint32(o.table[o.slot(h, key)])
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
	if len(o.entries)*4 >= len(o.table)*3 {
		o.growTable()
	}
	h := hashRow(key)
	s := o.slot(h, key)
	if e := uint32(o.table[s]); e != 0 {
		return e - 1
	}
	o.entries = append(o.entries, ovEntry{hash: h, key: uint32(len(o.buf)), keyLen: uint32(len(key))})
	o.buf = append(o.buf, key...)
	o.table[s] = tableSlot(h, len(o.entries)-1)
	return uint32(len(o.entries) - 1)
}

// tableSlot is what leads to an entry.
func tableSlot(h uint64, e int) uint64 { return h>>32<<32 | uint64(e+1) }

func (o *overlay) growTable() {
	o.table = make([]uint64, max(64, 2*len(o.table)))
	mask := uint32(len(o.table) - 1)
	for e := range o.entries {
		i := uint32(o.entries[e].hash) & mask
		for o.table[i] != 0 {
			i = (i + 1) & mask
		}
		o.table[i] = tableSlot(o.entries[e].hash, e)
	}
}

// room makes sure that n more bytes fit, growing the buffer by doubling. It comes before every write.
func (o *overlay) room(n int) error {
	need := len(o.buf) + n
	if need > math.MaxUint32 || n > math.MaxInt32 {
		return ErrBufferFull
	}
	if o.pool != nil && cap(o.buf) == 0 && cap(o.log) == 0 {
		o.overlayMemory = o.pool.take(o.need)
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
	r := logRecord{of: e, valLen: deleted, ts: ts}
	if v.len >= 0 {
		r.at, r.valLen = v.off+uint32(skip), v.len-int32(skip)
	}
	if policy == LastPerKeyPerCommit && en.lastLog != 0 {
		o.log[en.lastLog-1].flags |= logSuperseded
	}
	o.log = append(o.log, r)
	en.lastLog = uint32(len(o.log))
}

// logRaw logs a record whose key and value are not those of a row, with the format version header or without.
func (o *overlay) logRaw(key, val []byte, ts int64, format bool) error {
	if err := o.room(len(key) + len(val)); err != nil {
		return err
	}
	r := logRecord{at: uint32(len(o.buf)), of: uint32(len(key)), valLen: deleted, ts: ts, flags: logRaw}
	if format {
		r.flags |= logFormat
	}
	o.buf = append(o.buf, key...)
	if val != nil {
		r.valLen = int32(len(val))
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
	o.log[len(o.log)-1].flags |= logOwnHeaders
}

// newest is the number of bytes of keys and their newest values.
func (o *overlay) newest() (n int) {
	for i := range o.entries {
		e := &o.entries[i]
		n += int(e.keyLen) + int(max(o.versions[e.last-1].len, 0))
	}
	return n
}

// sortEntry is an entry to be sorted, with the first bytes in which its key may differ from the others, so that few comparisons look at keys.
type sortEntry struct {
	head  uint64
	entry uint32
}

// sorted gives the entries in key order, until the next write or call.
func (o *overlay) sorted() []sortEntry {
	common := o.commonPrefix()
	o.order = slices.Grow(o.order[:0], len(o.entries))
	for e := range uint32(len(o.entries)) {
		o.order = append(o.order, sortEntry{keyHead(o.entryKey(e)[common:]), e})
	}
	slices.SortFunc(o.order, func(a, b sortEntry) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return bytes.Compare(o.entryKey(a.entry), o.entryKey(b.entry))
	})
	return o.order
}

// commonPrefix is how many bytes all keys have in common at their begin.
func (o *overlay) commonPrefix() (n int) {
	if len(o.entries) == 0 {
		return 0
	}
	first := o.entryKey(0)
	n = len(first)
	for e := range uint32(len(o.entries)) {
		key := o.entryKey(e)
		n = min(n, len(key))
		for i, b := range key[:n] {
			if b != first[i] {
				n = i
				break
			}
		}
	}
	return n
}

// keyHead is the first eight bytes, as a number of the same order.
func keyHead(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var head [8]byte
	copy(head[:], key)
	return binary.BigEndian.Uint64(head[:])
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
