package state

import "encoding/binary"

// rowCache keeps rows in memory up to a number of bytes, and forgets the oldest that were not asked for.
//
// Rows lie one behind the other in chunks; a hash table leads to them (rowTable). When there is no room for another chunk the oldest one is
// cleaned: the rows that were read since they came into it stay, the others go. Table and chunks lie outside the Go heap, so the
// garbage collector keeps no reserve for them. The cache has to be cleared in the end. Not safe for concurrent use.
type rowCache struct {
	table  rowTable
	used   int
	chunks []rowChunk // by number
	queue  []uint32   // numbers of the chunks in use, oldest first; rows are added to the last
	free   []uint32   // numbers of chunks that were given up

	// What keys begin with is kept once: all rows of a store have its number and mostly one class. It is the first row's.
	prefix    [prefixLen]byte
	hasPrefix bool
	scratch   []byte

	// thrifty says that more memory has to be earned: a new chunk comes only if enough rows weren't there that were asked for, and the cache makes do
	// with a small part of its limit else.
	thrifty bool
	missed  int // rows that weren't there, since the last chunk was begun
}

type rowChunk struct {
	bytes []byte
	fill  int
}

const (
	chunkSize  = 32 << 10
	placeUnit  = 4 // rows begin at multiples
	placesEach = chunkSize / placeUnit
	mostChunks = (1<<mostPlaceBits - 1) / placesEach
	maxRow     = chunkSize / 8 // larger rows are not kept
	minRows    = 2 * chunkSize // a cache of less is none
)

// A thrifty cache has a part of its limit, and a chunk more whenever so many rows were missed while one was filled, some hundreds of rows: then
// lookups are as frequent as to be worth it.
const (
	thriftyPart  = 16
	missedEnough = 8
)

// A row in a chunk is a byte of flags; the lengths of its key and its value, and the room for the value, of a byte each, or of two if it is a long one;
// key and value.
const (
	rowHead     = 4
	rowLongHead = 7
	longFrom    = 256 // bytes of a key or a value

	rowState    = 3 // the flags that say which of these it is
	rowUnread   = 0
	rowRead     = 1
	rowReplaced = 2 // it isn't in use

	rowBare = 4 // the key lacks the prefix
	rowLong = 8
)

type rowRef []byte

func (r rowRef) state() byte { return r[0] & rowState }

func (r rowRef) setState(s byte) { r[0] = r[0]&^rowState | s }

func (r rowRef) long() bool { return r[0]&rowLong != 0 }

// lengths are those of head, key, value, and of the room for the value.
func (r rowRef) lengths() (head, key, val, room int) {
	if r.long() {
		return rowLongHead, int(binary.LittleEndian.Uint16(r[1:])), int(binary.LittleEndian.Uint16(r[3:])), int(binary.LittleEndian.Uint16(r[5:]))
	}
	return rowHead, int(r[1]), int(r[2]), int(r[3])
}

// setValue changes the value to one for which there is room.
func (r rowRef) setValue(val []byte) {
	head, key, _, _ := r.lengths()
	if r.long() {
		binary.LittleEndian.PutUint16(r[3:], uint16(len(val)))
	} else {
		r[2] = byte(len(val))
	}
	copy(r[head+key:], val)
}

// key is the key as it is kept.
func (r rowRef) key() []byte {
	head, key, _, _ := r.lengths()
	return r[head : head+key]
}

func (r rowRef) value() []byte {
	head, key, val, _ := r.lengths()
	return r[head+key : head+key+val]
}

func (r rowRef) size() int {
	head, key, _, room := r.lengths()
	return aligned(head + key + room)
}

func aligned(n int) int { return (n + placeUnit - 1) &^ (placeUnit - 1) }

// newRowSize is what a row takes in a chunk.
func newRowSize(key, val int) int {
	if key < longFrom && val < longFrom {
		return aligned(rowHead + key + val)
	}
	return aligned(rowLongHead + key + val)
}

// write makes a row of newRowSize bytes.
func (r rowRef) write(flags byte, key, val []byte) {
	room := newRowSize(len(key), len(val)) - len(key)
	if len(key) < longFrom && len(val) < longFrom {
		r[0], r[1], r[2], r[3] = flags, byte(len(key)), byte(len(val)), byte(min(room-rowHead, longFrom-1))
		copy(r[rowHead:], key)
		copy(r[rowHead+len(key):], val)
		return
	}
	r[0] = flags | rowLong
	binary.LittleEndian.PutUint16(r[1:], uint16(len(key)))
	binary.LittleEndian.PutUint16(r[3:], uint16(len(val)))
	binary.LittleEndian.PutUint16(r[5:], uint16(room-rowLongHead))
	copy(r[rowLongHead:], key)
	copy(r[rowLongHead+len(key):], val)
}

// rowHash is the hash that the cache knows a key by.
func rowHash(key []byte) uint32 { return uint32(hashRow(key) >> 32) }

// kept gives a key as it is kept, and the flag that says how.
func (c *rowCache) kept(key []byte) (rest []byte, flag byte) {
	if c.hasPrefix && len(key) >= prefixLen && [prefixLen]byte(key) == c.prefix {
		return key[prefixLen:], rowBare
	}
	return key, 0
}

// keyOf gives a row's whole key, until the next call.
func (c *rowCache) keyOf(r rowRef) []byte {
	if r[0]&rowBare == 0 {
		return r.key()
	}
	c.scratch = append(append(c.scratch[:0], c.prefix[:]...), r.key()...)
	return c.scratch
}

func (c *rowCache) at(place uint32) rowRef {
	return c.chunks[place/placesEach].bytes[place%placesEach*placeUnit:]
}

// size is the number of bytes that the cache takes.
func (c *rowCache) size() int64 { return c.table.size() + int64(len(c.queue))*chunkSize }

// find gives the place of a key's row and where the table has it.
func (c *rowCache) find(h uint32, key []byte) (place uint32, at tableSpot, ok bool) {
	if c.used == 0 {
		return 0, at, false
	}
	key, flag := c.kept(key)
	for at, place, ok = c.table.first(h); ok; at, place, ok = c.table.next(h, at) {
		if r := c.at(place); r[0]&rowBare == flag && string(r.key()) == string(key) {
			return place, at, true
		}
	}
	return 0, at, false
}

// get appends the value of a key to dst.
func (c *rowCache) get(h uint32, key, dst []byte) ([]byte, bool) {
	place, _, ok := c.find(h, key)
	if !ok {
		return dst, false
	}
	r := c.at(place)
	r.setState(rowRead)
	return append(dst, r.value()...), true
}

// set keeps a row, if it is not too large, in at most limit bytes.
func (c *rowCache) set(h uint32, key, val []byte, limit int64) {
	c.fit(limit)
	if c.replace(h, key, val) || limit < minRows || rowLongHead+len(key)+len(val) > maxRow {
		return
	}
	c.reserve(limit)
	if !c.hasPrefix && c.used == 0 && len(key) >= prefixLen {
		c.prefix, c.hasPrefix = [prefixLen]byte(key), true
	}
	rest, flag := c.kept(key)
	place := c.allocate(newRowSize(len(rest), len(val)), limit)
	c.at(place).write(flag, rest, val)
	c.table.insert(h, place)
	c.used++
}

// fit makes do with limit bytes.
func (c *rowCache) fit(limit int64) {
	if c.size() > limit {
		c.shrink(limit)
	}
}

// replace changes the value of a row that is there. One that has grown out of its place is forgotten, and false is returned.
func (c *rowCache) replace(h uint32, key, val []byte) bool {
	place, at, ok := c.find(h, key)
	if !ok {
		return false
	}
	r := c.at(place)
	if _, _, _, room := r.lengths(); len(val) > room {
		c.vacate(h, r, at)
		return false
	}
	r.setValue(val)
	return true
}

// remove forgets a row.
func (c *rowCache) remove(h uint32, key []byte) {
	if place, at, ok := c.find(h, key); ok {
		c.vacate(h, c.at(place), at)
	}
}

// vacate forgets a row that the table has at a spot.
func (c *rowCache) vacate(h uint32, r rowRef, at tableSpot) {
	r.setState(rowReplaced)
	c.table.remove(h, at)
	c.used--
}

// rowsOf calls f with the rows of a chunk that are in use, and their places. f may move or forget the row that it is called with.
func (c *rowCache) rowsOf(number uint32, f func(r rowRef, place uint32)) {
	k := &c.chunks[number]
	for from, end := 0, k.fill; from < end; {
		r := rowRef(k.bytes[from:])
		n := r.size()
		if r.state() != rowReplaced {
			f(r, number*placesEach+uint32(from/placeUnit))
		}
		from += n
	}
}

// removeIf forgets the rows for whose keys f is true.
func (c *rowCache) removeIf(f func(key []byte) bool) {
	for _, number := range c.queue {
		c.rowsOf(number, func(r rowRef, place uint32) {
			if key := c.keyOf(r); f(key) {
				h := rowHash(key)
				c.vacate(h, r, c.table.spot(h, place))
			}
		})
	}
}

// each calls f with all rows, which are valid until it returns.
func (c *rowCache) each(f func(key, val []byte)) {
	for _, number := range c.queue {
		c.rowsOf(number, func(r rowRef, _ uint32) { f(c.keyOf(r), r.value()) })
	}
}

// reserve makes sure that a part of the table stays free, also after another row has come.
func (c *rowCache) reserve(limit int64) {
	for c.used+1 > c.table.room() {
		if n := min(2*c.table.buckets(), c.mostBuckets(limit)); c.table.buckets() == 0 {
			c.rehash(leastBuckets)
		} else if n > c.table.buckets()+c.table.buckets()/8 {
			c.rehash(n)
		} else if len(c.queue) > 1 {
			c.recycle(chunkSize / 4) // rows that were read stay at first, but don't count as read any more
		} else {
			c.clear()
		}
	}
}

// mostBuckets is how large a table there is use for if limit bytes are filled with rows as large as those that are there, and the table.
func (c *rowCache) mostBuckets(limit int64) int {
	bytesEach := int64(len(c.queue)) * chunkSize / int64(max(c.used, 1))
	return int(limit / (bytesEach*bucketFull + bucketBytes))
}

// rehash makes the table anew, with so many buckets.
func (c *rowCache) rehash(buckets int) {
	c.table.release()
	c.table = newRowTable(buckets, 2*len(c.chunks)*placesEach)
	for _, number := range c.queue {
		c.rowsOf(number, func(r rowRef, place uint32) { c.table.insert(rowHash(c.keyOf(r)), place) })
	}
}

// allocate finds a place for n bytes.
func (c *rowCache) allocate(n int, limit int64) (place uint32) {
	if len(c.queue) == 0 || c.chunks[c.queue[len(c.queue)-1]].fill+n > chunkSize {
		c.nextChunk(n, limit)
	}
	number := c.queue[len(c.queue)-1]
	k := &c.chunks[number]
	place = number*placesEach + uint32(k.fill/placeUnit)
	k.fill += n
	return place
}

// nextChunk puts a chunk with room for n bytes at the queue's end: a new one if it fits and is earned, else the oldest, cleaned.
func (c *rowCache) nextChunk(n int, limit int64) {
	earned := !c.thrifty || c.missed >= missedEnough || c.size()+chunkSize <= limit/thriftyPart
	c.missed = 0
	if len(c.queue) == 0 || earned && c.size()+chunkSize <= limit && len(c.queue) < mostChunks {
		c.addChunk()
		return
	}
	c.recycle(max(n, chunkSize/4))
}

// recycle cleans the oldest chunk and puts it at the queue's end, with room for n bytes.
func (c *rowCache) recycle(n int) {
	number := c.queue[0]
	c.queue = append(c.queue[:0], c.queue[1:]...)
	c.queue = append(c.queue, number)
	c.clean(number, chunkSize-n)
}

func (c *rowCache) addChunk() {
	var number uint32
	if n := len(c.free); n > 0 {
		number = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		number = uint32(len(c.chunks))
		c.chunks = append(c.chunks, rowChunk{})
		if !c.table.reaches(len(c.chunks) * placesEach) {
			c.rehash(c.table.buckets())
		}
	}
	c.chunks[number] = rowChunk{bytes: takeMemory(chunkSize)}
	c.queue = append(c.queue, number)
}

// shrink makes do with a limit that was lowered, or with a table that has grown. A table for far more rows than the limit has room for would leave
// them none.
func (c *rowCache) shrink(limit int64) {
	if n := c.mostBuckets(limit); n >= leastBuckets && n < c.table.buckets()/2 {
		for c.used > n*bucketFull && len(c.queue) > 1 {
			c.giveUpOldest()
		}
		if c.used <= n*bucketFull {
			c.rehash(n)
		}
	}
	for c.size() > limit && len(c.queue) > 1 {
		c.giveUpOldest()
	}
	if c.size() > limit {
		c.clear()
	}
}

func (c *rowCache) giveUpOldest() {
	number := c.queue[0]
	c.clean(number, 0)
	giveMemory(c.chunks[number].bytes)
	c.chunks[number] = rowChunk{}
	c.queue = append(c.queue[:0], c.queue[1:]...)
	c.free = append(c.free, number)
}

// clean moves the rows of a chunk that were read to its front, up to keep bytes of them, and forgets the others.
func (c *rowCache) clean(number uint32, keep int) {
	k := &c.chunks[number]
	to := 0
	c.rowsOf(number, func(r rowRef, place uint32) {
		h, n := rowHash(c.keyOf(r)), r.size()
		at := c.table.spot(h, place)
		if r.state() != rowRead || to+n > keep {
			c.vacate(h, r, at)
			return
		}
		r.setState(rowUnread)
		copy(k.bytes[to:], r[:n])
		c.table.set(at, h, number*placesEach+uint32(to/placeUnit))
		to += n
	})
	k.fill = to
}

// clear forgets all rows and gives their memory back.
func (c *rowCache) clear() {
	for _, number := range c.queue {
		giveMemory(c.chunks[number].bytes)
	}
	c.table.release()
	*c = rowCache{thrifty: c.thrifty}
}
