package jsonl

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/sink"
)

// The format's name and version, as each manifest has them.
const (
	formatName    = "tributary-jsonl"
	formatVersion = 1
	// closingVersion is that of a manifest that empties the landing: programs that don't know of that must not go on behind it.
	closingVersion = 2
)

// Manifest is one link of a partition's chain: what a commit has landed. It never changes once it is stored.
type Manifest struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// ID tells this commit from another of the same name.
	ID          string    `json:"id"`
	Written     time.Time `json:"written"` // by the writer's clock
	Application string    `json:"application"`
	Sink        string    `json:"sink"`
	Topic       string    `json:"topic"` // the input's; lines have the source's, which differs behind an internal topic
	TopicID     string    `json:"topic_id"`
	Partition   int32     `json:"partition"`
	// Round counts how often the partition was emptied before.
	Round int `json:"round,omitempty"`
	// Emptied says that the partition's landing ends here, and begins anew in the next round: nothing of this round counts any more. Such a manifest has one
	// offset, which it doesn't account for.
	Emptied bool `json:"emptied,omitempty"`
	// Start and End are the first and the last offset that the manifest accounts for. Every offset between is a row, a reject, a
	// tombstone, in a gap, or nothing to land: a transaction's marker, a record that compaction or a filter has taken.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Rows are in the files; Rejects were refused and are in the dead letters; Tombstones had a null value and made no row.
	Rows       int64 `json:"rows"`
	Rejects    int64 `json:"rejects"`
	Tombstones int64 `json:"tombstones"`
	// OldestTimestamp and NewestTimestamp are those of the rows and rejects in their source topic, ms; absent if there are none.
	OldestTimestamp *int64 `json:"oldest_timestamp,omitempty"`
	NewestTimestamp *int64 `json:"newest_timestamp,omitempty"`
	Files           []File `json:"files"`
	Gaps            []Gap  `json:"gaps,omitempty"`
}

// File is a file that a manifest names.
type File struct {
	Name      string `json:"name"`       // below the landing's place
	EventDate string `json:"event_date"` // YYYY-MM-DD, UTC, of all its rows
	Rows      int64  `json:"rows"`
	Bytes     int64  `json:"bytes"`
	CRC32C    string `json:"crc32c"` // of the bytes as stored; eight hex digits
	// First and Last are the least and the greatest offset of its rows in the manifest's topic.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Gap is a range of offsets, both inclusive, that the landing leaves out on purpose or could not read.
type Gap struct {
	Start  int64  `json:"start"`
	End    int64  `json:"end"`
	Reason string `json:"reason"` // sink.GapRetention, sink.GapStart, or a person's words
}

// Next is the offset that the next manifest starts from.
func (m *Manifest) Next() int64 { return m.End + 1 }

// Input is the partition that the manifest belongs to.
func (m *Manifest) Input() sink.Partition {
	id, _ := uuid.Parse(m.TopicID) // checked when it was read
	return sink.Partition{Topic: m.Topic, TopicID: id, Partition: m.Partition}
}

// manifestFolder is above all manifests. It starts with an underscore, which globs and tools take for hidden.
const manifestFolder = "_manifests/"

// newestName is the object, beside a partition's manifests, that tells about where the newest one is. It is a hint: nothing rests on it.
const newestName = "_newest"

// round is one of a partition's chains: where the landing is emptied, the next one begins.
type round struct {
	sink.Partition
	number int
}

// folder is where a round's manifests are. Topic names have no slash and no @.
func (r round) folder() string {
	place := fmt.Sprintf("%s%s@%s/%d", manifestFolder, r.Topic, uuid.UUID(r.TopicID), r.Partition.Partition)
	if r.number > 0 {
		place += fmt.Sprintf(".%d", r.number)
	}
	return place + "/"
}

// manifest is the object that accounts for what follows an offset. Names sort by offset.
func (r round) manifest(start int64) string {
	return fmt.Sprintf("%s%020d.json", r.folder(), start)
}

// parseManifestName takes a name apart. ok is false for other objects.
func parseManifestName(name string) (r round, start int64, ok bool) {
	rest, found := strings.CutPrefix(name, manifestFolder)
	parts := strings.Split(rest, "/")
	if !found || len(parts) != 3 {
		return r, 0, false
	}
	topic, id, found := strings.Cut(parts[0], "@")
	topicID, err := uuid.Parse(id)
	number, counted, emptied := strings.Cut(parts[1], ".")
	partition, err2 := strconv.ParseInt(number, 10, 32)
	if emptied {
		var err error
		r.number, err = strconv.Atoi(counted)
		if err != nil || r.number <= 0 {
			return r, 0, false
		}
	}
	digits, isJSON := strings.CutSuffix(parts[2], ".json")
	start, err3 := strconv.ParseInt(digits, 10, 64)
	if !found || !isJSON || errors.Join(err, err2, err3) != nil {
		return r, 0, false
	}
	r.Partition = sink.Partition{Topic: topic, TopicID: topicID, Partition: int32(partition)}
	return r, start, true
}

// encode writes a manifest as it is stored: one indented JSON object and a line feed.
func (m *Manifest) encode() ([]byte, error) {
	if m.Files == nil {
		m.Files = []File{}
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(m); err != nil {
		return nil, fmt.Errorf("manifest of %s-%d: %w", m.Topic, m.Partition, err)
	}
	return out.Bytes(), nil
}

// decodeManifest reads what is stored under a name, and checks that it is what the name says. Members that it doesn't know are left out:
// a later version that only adds some keeps the version's number.
func decodeManifest(name string, data []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("manifest %s is damaged: %w", name, err)
	}
	if m.Format != formatName || m.Version != formatVersion && (m.Version != closingVersion || !m.Emptied) {
		return nil, fmt.Errorf("manifest %s has format %q version %d; this program reads %s version %d", name, m.Format, m.Version, formatName, formatVersion)
	}
	r, start, ok := parseManifestName(name)
	if !ok || m.Start != start || m.Input() != r.Partition || m.Round != r.number {
		return nil, fmt.Errorf("manifest %s says that it is of %s-%d from offset %d: it was moved or damaged", name, m.Topic, m.Partition, m.Start)
	}
	if m.End < m.Start {
		return nil, fmt.Errorf("manifest %s accounts for offsets %d to %d: it is damaged", name, m.Start, m.End)
	}
	for _, f := range m.Files {
		if raw, err := hex.DecodeString(f.CRC32C); err != nil || len(raw) != 4 || f.Name == "" {
			return nil, fmt.Errorf("manifest %s names file %q with checksum %q: it is damaged", name, f.Name, f.CRC32C)
		}
	}
	return m, nil
}
