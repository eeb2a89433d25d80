package keyed

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

// Deletion is a key that has no row, and the order of the change that deleted it: only a newer change brings the key back.
type Deletion struct {
	Hash  Hash
	Order uint64
}

// Deletions are stored in segments, files that are never changed. The newest names the older ones that count beside it. Which is the newest is
// told by the table's log, in the same commit that deletes the rows; see docs/format/current-state.md.

// DeletionsDir is the folder of the segments in the table's folder. Vacuums of all engines pass over folders with an underscore.
const DeletionsDir = "_tributary/deleted/"

// Segment is one file of deletions.
type Segment struct {
	ID      int64   // 1 or more: a random number
	Older   []int64 // the other segments that count
	Horizon uint64  // deletions of lower orders may have been forgotten; 0: none have. The newest segment's counts
	Entries []Deletion
}

// SegmentName is the object's name in the table's store.
func SegmentName(id int64) string { return DeletionsDir + fmt.Sprintf("%016x", uint64(id)) }

const (
	segmentMagic = "TRIBDEL1"
	horizonMagic = "TRIBDEL2" // the same with a horizon behind it
	entryBytes   = 16 + 8
)

var segmentTable = crc32.MakeTable(crc32.Castagnoli)

// Distinct sorts deletions by key, and keeps of several of one key the newest. It changes the slice that it is given.
func Distinct(all []Deletion) []Deletion {
	slices.SortFunc(all, func(a, b Deletion) int {
		return cmp.Or(slices.Compare(a.Hash[:], b.Hash[:]), cmp.Compare(b.Order, a.Order))
	})
	return slices.CompactFunc(all, func(a, b Deletion) bool { return a.Hash == b.Hash })
}

// Newest keeps the deletions of the greatest orders, at most a number of them, and tells the greatest order of the others: the horizon below which
// nobody knows any more what was deleted; 0 if all are kept. It changes the order of the slice that it is given.
func Newest(all []Deletion, atMost int) (kept []Deletion, horizon uint64) {
	if len(all) <= atMost {
		return all, 0
	}
	slices.SortFunc(all, func(a, b Deletion) int { return cmp.Compare(b.Order, a.Order) })
	return all[:atMost], all[atMost].Order
}

// Encode writes a segment; its entries are sorted, and of several of one key the newest stays.
func (s *Segment) Encode() []byte {
	s.Entries = Distinct(s.Entries)
	out := make([]byte, 0, len(segmentMagic)+8+4+8*len(s.Older)+8+entryBytes*len(s.Entries)+4)
	if s.Horizon == 0 {
		out = append(out, segmentMagic...)
	} else {
		out = binary.BigEndian.AppendUint64(append(out, horizonMagic...), s.Horizon)
	}
	out = binary.BigEndian.AppendUint32(out, uint32(len(s.Older)))
	for _, id := range s.Older {
		out = binary.BigEndian.AppendUint64(out, uint64(id))
	}
	out = binary.BigEndian.AppendUint64(out, uint64(len(s.Entries)))
	for _, e := range s.Entries {
		out = binary.BigEndian.AppendUint64(append(out, e.Hash[:]...), e.Order)
	}
	return binary.BigEndian.AppendUint32(out, crc32.Checksum(out, segmentTable))
}

var errSegment = errors.New("it is no file of deletions, or is damaged")

// DecodeSegment reads what Encode wrote.
func DecodeSegment(id int64, data []byte) (*Segment, error) {
	const least = len(segmentMagic) + 4 + 8 + 4
	if len(data) < least {
		return nil, errSegment
	}
	body := data[:len(data)-4]
	if crc32.Checksum(body, segmentTable) != binary.BigEndian.Uint32(data[len(body):]) {
		return nil, errSegment
	}
	s := &Segment{ID: id}
	rest := body[len(segmentMagic):]
	switch magic := string(body[:len(segmentMagic)]); {
	case magic == segmentMagic:
	case magic == horizonMagic && len(data) >= least+8:
		s.Horizon = binary.BigEndian.Uint64(rest)
		rest = rest[8:]
	default:
		return nil, errSegment
	}
	older := int64(binary.BigEndian.Uint32(rest))
	rest = rest[4:]
	if int64(len(rest)) < older*8+8 {
		return nil, errSegment
	}
	for range older {
		s.Older = append(s.Older, int64(binary.BigEndian.Uint64(rest)))
		rest = rest[8:]
	}
	n := binary.BigEndian.Uint64(rest)
	rest = rest[8:]
	if uint64(len(rest)) != n*entryBytes || n > uint64(len(rest)) {
		return nil, errSegment
	}
	s.Entries = make([]Deletion, n)
	for i := range s.Entries {
		copy(s.Entries[i].Hash[:], rest)
		s.Entries[i].Order = binary.BigEndian.Uint64(rest[16:])
		rest = rest[entryBytes:]
	}
	return s, nil
}

// ReadSegment reads a segment from the table's store.
func ReadSegment(ctx context.Context, store object.Store, id int64) (*Segment, error) {
	data, err := store.Get(ctx, SegmentName(id))
	if err != nil {
		return nil, fmt.Errorf("the orders of deleted rows: %w", err)
	}
	s, err := DecodeSegment(id, data)
	if err != nil {
		return nil, fmt.Errorf("the orders of deleted rows: %s: %w", SegmentName(id), err)
	}
	return s, nil
}

// WriteSegment writes a segment to the table's store. It is complete, but not yet durable: sync SegmentName(s.ID) before a commit speaks of it.
func WriteSegment(ctx context.Context, store object.Store, s *Segment) error {
	w, err := store.Create(ctx, SegmentName(s.ID))
	if err != nil {
		return err
	}
	defer w.Abort() // does nothing once the object is closed
	if _, err := w.Write(s.Encode()); err != nil {
		return fmt.Errorf("the orders of deleted rows: %w", err)
	}
	return w.Close()
}

// maxSegments is how many segments may count at once before some are written together.
const maxSegments = 16

// Merge decides which of the older segments a new one takes up, given their numbers of entries: none while there are few, else the
// newest run of which each is at most twice as large as all newer ones together. So each deletion is written again a number of times that grows
// with the logarithm of their number. sizes belong to older, newest last; the return value is where the run begins.
func Merge(sizes []int, fresh int) int {
	from := len(sizes)
	if len(sizes) < maxSegments {
		return from
	}
	sum := fresh
	for from > 0 && (sizes[from-1] <= 2*sum || from > maxSegments/2) {
		from--
		sum += sizes[from]
	}
	return from
}

// SweepSegments deletes segments that don't count any more and are older than an age: those of lost races, of processes that died, and those that
// others took up. keep are the ones that count.
func SweepSegments(ctx context.Context, store object.Store, keep []int64, before time.Time) (n int, err error) {
	var old []string
	for info, err := range store.List(ctx, DeletionsDir, "") {
		if err != nil {
			return n, err
		}
		id, err := strconv.ParseUint(strings.TrimPrefix(info.Name, DeletionsDir), 16, 63)
		if err == nil && info.Modified.Before(before) && !slices.Contains(keep, int64(id)) {
			old = append(old, info.Name)
		}
	}
	for _, name := range old {
		if err := store.Delete(ctx, name); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
