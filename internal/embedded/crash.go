package embedded

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// What a crash leaves in the directory of kfake, which takes much of it as it is, is mended before kfake reads it:
//   - In groups.log and pids.log it reads nothing behind an entry that was torn, but appends there: what it then wrote would be lost at the start after.
//   - A batch that isn't in the index yet would count as committed, and shift what the index says of all later ones.
//   - It gives transactions that were open up as aborted, but writes no marker: readers would take what the same producer commits later for aborted,
//     and what was aborted for committed after one more crash. So they are found here, and aborted once it runs (abortOpen).
//   - Where a transaction was kept open over a Close, and the broker was killed before anybody wrote to the partition again, it trusts its snapshot, in which
//     nothing is aborted.
//   - The sequence numbers of producers are as the last Close wrote them: who goes on would be refused, and what is sent again, since its answer was lost,
//     written twice.

// partition of a topic.
type partition struct {
	topic  string
	number int32
}

// mend mends what a crash left in dir, and returns the partitions in which producers have transactions open.
func mend(dir string) (open map[int64][]partition, err error) {
	for _, log := range []string{"groups.log", "pids.log"} {
		if err := cutTorn(filepath.Join(dir, log)); err != nil {
			return nil, err
		}
	}
	dirs, err := list(filepath.Join(dir, "partitions"))
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(filepath.Join(dir, "session_state.json")) // which Close writes, with the transactions that go on, and a start removes
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	crashed := err != nil
	open = map[int64][]partition{}
	windows := sequenceWindows{Version: 1}
	for _, d := range dirs {
		p, ok := partitionOf(filepath.Base(d))
		if !ok {
			continue // not kfake's
		}
		producers, err := mendPartition(d)
		if err != nil {
			return nil, fmt.Errorf("partition %d of topic %s: %w", p.number, p.topic, err)
		}
		for id, producer := range producers {
			if producer.open && crashed {
				if err := os.Remove(filepath.Join(d, "snapshot.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
					return nil, err
				}
			}
			if producer.open {
				open[id] = append(open[id], p)
			}
			if w := producer.window; w.Seen {
				w.Producer, w.Topic, w.Partition = id, p.topic, p.number
				windows.Windows = append(windows.Windows, w)
			}
		}
	}
	path := filepath.Join(dir, "seq_windows.json")
	if len(windows.Windows) > 0 {
		return open, windows.write(path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return open, nil
}

// list returns the paths of what is in dir, none if there is no such directory.
func list(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths, err
}

func partitionOf(dir string) (p partition, ok bool) {
	at := strings.LastIndexByte(dir, '-')
	if at < 0 {
		return p, false
	}
	topic, err := url.PathUnescape(dir[:at])
	number, err2 := strconv.ParseInt(dir[at+1:], 10, 32)
	return partition{topic, int32(number)}, err == nil && err2 == nil
}

// cutTorn cuts a log behind its last whole entry: length, checksum and data, which begins with the version.
func cutTorn(path string) error {
	log, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	end := 0
	for {
		rest := log[end:]
		if len(rest) < 8 {
			break
		}
		size := uint64(binary.LittleEndian.Uint32(rest))
		if size < 2 || size > uint64(len(rest)-8) || crc32.Checksum(rest[8:8+size], castagnoli) != binary.LittleEndian.Uint32(rest[4:]) {
			break
		}
		end += 8 + int(size)
	}
	if end == len(log) {
		return nil
	}
	return os.Truncate(path, int64(end))
}

// producer is what one has written to a partition.
type producer struct {
	open   bool // a transaction
	window sequenceWindow
}

// mendPartition completes the indexes of a partition, and returns its producers.
func mendPartition(dir string) (producers map[int64]*producer, err error) {
	files, err := list(dir)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(path string) bool { return filepath.Ext(path) != ".dat" })
	base := func(path string) int64 {
		n, _ := strconv.ParseInt(strings.TrimSuffix(filepath.Base(path), ".dat"), 10, 64)
		return n
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(base(a), base(b)) })
	producers = map[int64]*producer{}
	for _, path := range files {
		segment, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		batches := wholeBatches(segment)
		for _, b := range batches {
			id := int64(binary.BigEndian.Uint64(b[batchProducerIDAt:]))
			if id < 0 {
				continue
			}
			if producers[id] == nil {
				producers[id] = &producer{}
			}
			producers[id].wrote(b)
		}
		if err := completeIndex(strings.TrimSuffix(path, ".dat")+".idx", batches); err != nil {
			return nil, err
		}
	}
	return producers, nil
}

// wrote takes in a batch that the producer wrote, or a marker that was written for it.
func (p *producer) wrote(batch []byte) {
	attributes := batch[batchAttributesAt+1]
	if attributes&batchControlBit != 0 {
		p.open = false
		return
	}
	p.open = attributes&batchTransactionalBit != 0
	p.window.add(batch)
}

// wholeBatches cuts a segment into its batches, up to the first that isn't whole, as kfake does.
func wholeBatches(segment []byte) (batches [][]byte) {
	for len(segment) >= batchRecordsAt {
		size := uint64(binary.BigEndian.Uint32(segment[batchLengthAt:])) + batchMagicAt - 4
		if size < batchRecordsAt || size > uint64(len(segment)) ||
			crc32.Checksum(segment[batchAttributesAt:size], castagnoli) != binary.BigEndian.Uint32(segment[batchCRCAt:]) {
			break
		}
		batches = append(batches, segment[:size])
		segment = segment[size:]
	}
	return batches
}

// indexEntrySize is that of a batch's entry: version, checksum, leader epoch, the greatest timestamp so far (which kfake finds anew), and whether it is part of a transaction.
const indexEntrySize = 15

// completeIndex adds the entries of the last batches where they are missing.
func completeIndex(path string, batches [][]byte) error {
	index, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	whole := len(index) / indexEntrySize
	if whole >= len(batches) {
		return nil // kfake cuts off what is too much
	}
	index = index[:whole*indexEntrySize]
	for _, b := range batches[whole:] {
		var entry [indexEntrySize]byte
		entry[0] = 1
		binary.LittleEndian.PutUint32(entry[2:], binary.BigEndian.Uint32(b[batchLeaderEpochAt:]))
		if b[batchAttributesAt+1]&(batchControlBit|batchTransactionalBit) == batchTransactionalBit {
			entry[14] = 1
		}
		entry[1] = byte(crc32.Checksum(entry[2:], castagnoli))
		index = append(index, entry[:]...)
	}
	return os.WriteFile(path, index, 0o644)
}
