package keyed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// Entry is what the index knows of a key: where its row is, or that it was deleted.
type Entry struct {
	Order   uint64 // of the row, or of the change that deleted it
	File    uint32 // number of the data file, as the index's owner counts them
	Row     uint32 // place of the row in the file, from 0
	Deleted bool   // there is no row: File and Row don't count
}

// Index finds a key's entry. Small ones are held in memory; from SpillKeys keys on they lie in a folder on a local disk. It is safe for
// concurrent use.
//
// An index with a folder of its own (see Open) outlives its process: what it then has is that of some moment when Apply returned, never a
// part of what one Apply wrote.
type Index struct {
	dir       string // given by the user; "" for a temporary one
	temporary string // made when the index left memory
	limit     int    // of keys in memory

	mu     sync.RWMutex
	memory map[Hash]Entry // nil once the index is on disk
	meta   []byte
	db     *pebble.DB
	cache  *pebble.Cache
}

// SpillKeys is the number of keys from which on an index without a folder leaves memory: with about 100 bytes a key, about 50 MB.
const SpillKeys = 500_000

const (
	cacheBytes    = 64 << 20
	memTableBytes = 32 << 20
	entryLive     = 1
	entryDeleted  = 2
)

// metaKey is shorter than any hash.
var metaKey = []byte("meta")

// Open opens the index in a folder that is its own, as the process that last had it open left it; with "" it makes an empty one that ends with
// Close.
func Open(dir string) (*Index, error) {
	x := &Index{dir: dir, limit: SpillKeys}
	if dir == "" {
		x.memory = map[Hash]Entry{}
		return x, nil
	}
	return x, x.openDB(dir)
}

func (x *Index) openDB(dir string) (err error) {
	x.cache = pebble.NewCache(cacheBytes)
	opts := &pebble.Options{Cache: x.cache, MemTableSize: memTableBytes, DisableWAL: true, Logger: quiet{}, FormatMajorVersion: pebble.FormatNewest}
	opts.Levels[0].FilterPolicy = bloom.FilterPolicy(10)
	for i := 1; i < len(opts.Levels); i++ {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	if x.db, err = pebble.Open(dir, opts); err != nil {
		x.cache.Unref()
		return fmt.Errorf("open the index in %s: %w", dir, err)
	}
	value, closer, err := x.db.Get(metaKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil
	}
	if err != nil {
		return errors.Join(fmt.Errorf("read the index in %s: %w", dir, err), x.Close())
	}
	x.meta = append([]byte{}, value...)
	return closer.Close()
}

// quiet drops what Pebble has to say: errors come back to the caller.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// Meta is what the last Apply with one has set; nil for a new index.
func (x *Index) Meta() []byte {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.meta
}

// Get finds a key's entry.
func (x *Index) Get(h Hash) (e Entry, ok bool, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		e, ok = x.memory[h]
		return e, ok, nil
	}
	value, closer, err := x.db.Get(h[:])
	if errors.Is(err, pebble.ErrNotFound) {
		return e, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("read the index: %w", err)
	}
	e, err = decodeEntry(value)
	return e, err == nil, errors.Join(err, closer.Close())
}

// Find finds the entries of many keys, in an order that suits the index, and calls fn for each with its place in hashes. The index must not be
// changed meanwhile. On disk it takes a tenth of what Get does for each, if there is one key to some dozens of the index.
func (x *Index) Find(hashes []Hash, fn func(i int, e Entry, ok bool)) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		for i := range hashes {
			e, ok := x.memory[hashes[i]]
			fn(i, e, ok)
		}
		return nil
	}
	order := make([]int32, len(hashes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(hashes[a][:], hashes[b][:]) })
	it, err := x.db.NewIter(nil)
	if err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	for _, i := range order {
		h := &hashes[i]
		if !it.SeekGE(h[:]) || !bytes.Equal(it.Key(), h[:]) {
			if err := it.Error(); err != nil {
				break
			}
			fn(int(i), Entry{}, false)
			continue
		}
		e, err := decodeEntry(it.Value())
		if err != nil {
			return errors.Join(err, it.Close())
		}
		fn(int(i), e, true)
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	return nil
}

// Change is one key's new entry, or its removal.
type Change struct {
	Hash   Hash
	Entry  Entry
	Forget bool
}

// Apply makes changes, all or none, later ones of a key over earlier ones, and sets the meta data unless it is nil. It may put changes in
// another order.
func (x *Index) Apply(changes []Change, meta []byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil && len(x.memory)+len(changes) > x.limit {
		if err := x.spill(); err != nil {
			return err
		}
	}
	if x.db == nil {
		for i := range changes {
			if changes[i].Forget {
				delete(x.memory, changes[i].Hash)
			} else {
				x.memory[changes[i].Hash] = changes[i].Entry
			}
		}
	} else if err := x.write(changes, meta); err != nil {
		return err
	}
	if meta != nil {
		x.meta = meta
	}
	return nil
}

func (x *Index) write(changes []Change, meta []byte) error {
	// In the order of the keys the database takes them several times as fast; of several of one key the last still wins.
	slices.SortStableFunc(changes, func(a, b Change) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	b := x.db.NewBatch()
	defer b.Close()
	var buf [17]byte
	for i := range changes {
		c := &changes[i]
		var err error
		if c.Forget {
			err = b.Delete(c.Hash[:], nil)
		} else {
			err = b.Set(c.Hash[:], appendEntry(buf[:0], c.Entry), nil)
		}
		if err != nil {
			return fmt.Errorf("write the index: %w", err)
		}
	}
	if meta != nil {
		if err := b.Set(metaKey, meta, nil); err != nil {
			return fmt.Errorf("write the index: %w", err)
		}
	}
	if err := b.Commit(pebble.NoSync); err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	return nil
}

// spill moves the index from memory to a temporary folder.
func (x *Index) spill() error {
	dir, err := os.MkdirTemp("", "tributary-index-")
	if err != nil {
		return fmt.Errorf("the index of a table with more than %d keys needs a folder (see lake.IndexDir): %w", SpillKeys, err)
	}
	if err := x.openDB(dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	x.temporary = dir
	changes := make([]Change, 0, 64<<10)
	flush := func() error {
		err := x.write(changes, x.meta)
		changes = changes[:0]
		return err
	}
	for h, e := range x.memory {
		if changes = append(changes, Change{Hash: h, Entry: e}); len(changes) == cap(changes) {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	x.memory = nil
	return nil
}

// Each calls fn for every entry, in no order, until it returns false. Nothing may be applied meanwhile.
func (x *Index) Each(fn func(Hash, Entry) bool) error {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		for h, e := range maps.All(x.memory) {
			if !fn(h, e) {
				return nil
			}
		}
		return nil
	}
	it, err := x.db.NewIter(nil)
	if err != nil {
		return fmt.Errorf("read the index: %w", err)
	}
	for it.First(); it.Valid(); it.Next() {
		if len(it.Key()) != len(Hash{}) {
			continue
		}
		e, err := decodeEntry(it.Value())
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !fn(Hash(it.Key()), e) {
			break
		}
	}
	return it.Close()
}

// Clear empties the index.
func (x *Index) Clear() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.meta = nil
	if x.db == nil {
		clear(x.memory)
		return nil
	}
	last := [len(Hash{}) + 1]byte{}
	for i := range last {
		last[i] = 0xff
	}
	if err := x.db.DeleteRange([]byte{0}, last[:], pebble.NoSync); err != nil {
		return fmt.Errorf("clear the index: %w", err)
	}
	return nil
}

// Close ends the index. One in a folder of its own stays there for the next process.
func (x *Index) Close() (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.memory = nil
	if x.db != nil {
		if x.temporary == "" {
			err = x.db.Flush() // there is no log that would have it otherwise
		}
		err = errors.Join(err, x.db.Close())
		x.cache.Unref()
		x.db = nil
	}
	if x.temporary != "" {
		err = errors.Join(err, os.RemoveAll(x.temporary))
		x.temporary = ""
	}
	if err != nil {
		return fmt.Errorf("close the index: %w", err)
	}
	return nil
}

func appendEntry(dst []byte, e Entry) []byte {
	if e.Deleted {
		return binary.BigEndian.AppendUint64(append(dst, entryDeleted), e.Order)
	}
	dst = binary.BigEndian.AppendUint64(append(dst, entryLive), e.Order)
	dst = binary.BigEndian.AppendUint32(dst, e.File)
	return binary.BigEndian.AppendUint32(dst, e.Row)
}

func decodeEntry(b []byte) (Entry, error) {
	switch {
	case len(b) == 9 && b[0] == entryDeleted:
		return Entry{Order: binary.BigEndian.Uint64(b[1:]), Deleted: true}, nil
	case len(b) == 17 && b[0] == entryLive:
		return Entry{Order: binary.BigEndian.Uint64(b[1:]), File: binary.BigEndian.Uint32(b[9:]), Row: binary.BigEndian.Uint32(b[13:])}, nil
	}
	return Entry{}, fmt.Errorf("the index is damaged: an entry of %d bytes; delete its folder, it is built anew", len(b))
}
