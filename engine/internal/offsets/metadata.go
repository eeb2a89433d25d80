package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// NoTime is the partition time where none is known.
const NoTime int64 = -1

// Versions of the format, its first byte.
const (
	versionTime     = 1 // partition time only
	versionProgress = 2 // partition time, then the operators' progress; what is written
)

// Metadata is what a task keeps beside a committed offset, so that it survives a move to another instance even without state.
type Metadata struct {
	// PartitionTime is the largest event time in ms seen on the partition, NoTime if none.
	PartitionTime int64
	// Progress is, by operator, the time in ms up to which it has emitted (the close time of the last emitted window).
	Progress map[string]int64
}

// ErrMetadata is wrapped where metadata isn't in the format.
var ErrMetadata = errors.New("not in the format of offset metadata")

// Encode gives the text that is committed beside an offset: base64 of a version byte, the partition time, and, where there is
// progress, the number of operators and for each the length of its name, the name, and its time. Integers are big-endian: 4 bytes
// for counts and lengths, 8 for times (Kafka Streams' TopicPartitionMetadata and ProcessorMetadata).
func (m Metadata) Encode() string {
	b := make([]byte, 0, 64)
	b = append(b, versionProgress)
	b = binary.BigEndian.AppendUint64(b, uint64(m.PartitionTime))
	if len(m.Progress) > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(len(m.Progress)))
		for _, name := range slices.Sorted(maps.Keys(m.Progress)) {
			b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
			b = append(b, name...)
			b = binary.BigEndian.AppendUint64(b, uint64(m.Progress[name]))
		}
	}
	return base64.StdEncoding.EncodeToString(b)
}

// DecodeMetadata reads what Encode gives. Empty text is metadata without time and progress: an offset that a tool has committed.
func DecodeMetadata(text string) (Metadata, error) {
	m := Metadata{PartitionTime: NoTime}
	if text == "" {
		return m, nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return m, fmt.Errorf("%w: %w", ErrMetadata, err)
	}
	if len(b) < 9 || b[0] < versionTime || b[0] > versionProgress {
		return m, fmt.Errorf("%w: %d bytes, version %d", ErrMetadata, len(b), b[:min(1, len(b))])
	}
	partitionTime := int64(binary.BigEndian.Uint64(b[1:]))
	progress, err := decodeProgress(b[9:])
	if err != nil {
		return m, err
	}
	return Metadata{PartitionTime: partitionTime, Progress: progress}, nil
}

func decodeProgress(b []byte) (map[string]int64, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: cut off", ErrMetadata)
	}
	count := binary.BigEndian.Uint32(b)
	b = b[4:]
	progress := map[string]int64{}
	for range count {
		if len(b) < 4 {
			return nil, fmt.Errorf("%w: cut off", ErrMetadata)
		}
		size := uint64(binary.BigEndian.Uint32(b))
		if uint64(len(b)) < 4+size+8 {
			return nil, fmt.Errorf("%w: cut off", ErrMetadata)
		}
		progress[string(b[4:4+size])] = int64(binary.BigEndian.Uint64(b[4+size:]))
		b = b[4+size+8:]
	}
	return progress, nil
}

// Merge takes other's operators into m, the later time where both have one. A task with several partitions commits the same
// progress beside each, and takes the latest of all back.
func (m *Metadata) Merge(other Metadata) {
	for name, at := range other.Progress {
		if mine, ok := m.Progress[name]; !ok || mine < at {
			if m.Progress == nil {
				m.Progress = map[string]int64{}
			}
			m.Progress[name] = at
		}
	}
}
