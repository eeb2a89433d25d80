package embedded

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
)

// sequenceWindows is kfake's seq_windows.json: the last batches of each producer in each partition, by which it knows those that are sent again.
type sequenceWindows struct {
	Version int              `json:"version"`
	Windows []sequenceWindow `json:"windows"`
}

type sequenceWindow struct {
	Producer  int64            `json:"pid"`
	Topic     string           `json:"topic"`
	Partition int32            `json:"partition"`
	Entries   [5]sequenceEntry `json:"entries"`
	Count     uint8            `json:"count"`
	At        uint8            `json:"at"` // where the next entry goes
	Epoch     int16            `json:"epoch"`
	Seen      bool             `json:"seen"`
	Next      int32            `json:"next_seq"`
}

type sequenceEntry struct {
	First  int32 `json:"first_seq"`
	Next   int32 `json:"next_seq"`
	Offset int64 `json:"offset"`
}

// add takes in the producer's next batch.
func (w *sequenceWindow) add(batch []byte) {
	epoch, first := int16(binary.BigEndian.Uint16(batch[batchProducerEpochAt:])), int32(binary.BigEndian.Uint32(batch[batchSequenceAt:]))
	if !w.Seen || epoch != w.Epoch {
		*w = sequenceWindow{Epoch: epoch, Seen: true}
	}
	w.Next = int32((int64(first) + int64(binary.BigEndian.Uint32(batch[batchLastDeltaAt:])) + 1) % math.MaxInt32) // kfake's modulus
	w.Entries[w.At] = sequenceEntry{First: first, Next: w.Next, Offset: int64(binary.BigEndian.Uint64(batch))}
	w.At = (w.At + 1) % uint8(len(w.Entries))
	w.Count = min(w.Count+1, uint8(len(w.Entries)))
}

func (w sequenceWindows) write(path string) error {
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
