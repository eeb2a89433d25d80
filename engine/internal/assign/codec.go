package assign

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// The format's version that is written, and the oldest reader that understands it. A reader takes every version whose
// minReader is at most its own version, and ignores what follows behind the fields that it knows.
const (
	formatVersion  = 3
	minReader      = 1
	formatStandbys = 2 // the first version whose members keep standbys
	formatShapes   = 3 // the first version whose members tell what they declare
)

// ErrFormat is wrapped by errors about bytes that are not in the format.
var ErrFormat = errors.New("not in the assignment format")

// AppendMember appends a member's metadata (all fields but ID).
func AppendMember(dst []byte, m *Member) []byte {
	dst = append(dst, formatVersion, minReader)
	dst = appendString(dst, m.TopologyHash)
	dst = appendHashes(dst, m.Signatures)
	dst = appendTasks(dst, m.Owned)
	dst = appendNumbers(dst, m.Lags)
	dst = appendString(dst, m.Endpoint)
	dst = binary.BigEndian.AppendUint32(dst, m.Nonce)
	dst = appendTasks(dst, m.Follows)
	dst = appendNumbers(dst, m.Sizes)
	dst = binary.AppendUvarint(dst, uint64(len(m.Tags)))
	for _, tag := range slices.Sorted(maps.Keys(m.Tags)) {
		dst = appendString(appendString(dst, tag), m.Tags[tag])
	}
	return appendString(appendHashes(dst, m.Shapes), string(m.Plan))
}

// DecodeMember reads what AppendMember wrote.
func DecodeMember(id string, data []byte) (Member, error) {
	d := newDecoder(data)
	m := Member{ID: id, Format: d.version, TopologyHash: d.string()}
	m.Signatures = d.hashes()
	m.Owned = d.tasks()
	m.Lags = d.numbers()
	m.Endpoint = d.string()
	m.Nonce = d.uint32()
	if d.version >= formatStandbys {
		m.Follows, m.Sizes = d.tasks(), d.numbers()
		n := d.count(2)
		m.Tags = make(map[string]string, n)
		for range n {
			tag := d.string()
			m.Tags[tag] = d.string()
		}
	}
	if d.version >= formatShapes {
		m.Shapes, m.Plan = d.hashes(), []byte(d.string())
	}
	if d.err != nil {
		return Member{}, fmt.Errorf("metadata of member %q: %w", id, d.err)
	}
	return m, nil
}

// Assignment is what the leader gives a member.
type Assignment struct {
	// TopologyHash is the member's hash as the leader saw it. After a static member's restart it may be another than the
	// member's own: the broker hands out the old assignment without asking the leader.
	TopologyHash string
	Placement
	// What the leader runs: its own Shapes, TopologyHash, and, where that isn't the member's, Plan. Nil and empty from a leader of format
	// version 2 or earlier.
	Shapes map[int32]uint64
	Leader string
	Plan   []byte
}

// AppendAssignment appends an assignment.
func AppendAssignment(dst []byte, a *Assignment) []byte {
	dst = append(dst, formatVersion, minReader)
	dst = appendString(dst, a.TopologyHash)
	dst = appendTasks(dst, a.Active)
	dst = appendTasks(appendTasks(dst, a.Standbys), a.Warmups)
	return appendString(appendString(appendHashes(dst, a.Shapes), a.Leader), string(a.Plan))
}

// DecodeAssignment reads what AppendAssignment wrote.
func DecodeAssignment(data []byte) (Assignment, error) {
	d := newDecoder(data)
	a := Assignment{TopologyHash: d.string()}
	a.Active = d.tasks()
	if d.version >= formatStandbys {
		a.Standbys, a.Warmups = d.tasks(), d.tasks()
	}
	if d.version >= formatShapes {
		a.Shapes, a.Leader, a.Plan = d.hashes(), d.string(), []byte(d.string())
	}
	if d.err != nil {
		return Assignment{}, fmt.Errorf("assignment: %w", d.err)
	}
	return a, nil
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendHashes appends a hash for each of some sub-topologies.
func appendHashes(dst []byte, hashes map[int32]uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(hashes)))
	for _, sub := range slices.Sorted(maps.Keys(hashes)) {
		dst = binary.AppendUvarint(dst, uint64(sub))
		dst = binary.BigEndian.AppendUint64(dst, hashes[sub])
	}
	return dst
}

func appendTask(dst []byte, t TaskID) []byte {
	dst = binary.AppendUvarint(dst, uint64(t.Subtopology))
	return binary.AppendUvarint(dst, uint64(t.Partition))
}

func appendTasks(dst []byte, tasks []TaskID) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(tasks)))
	for _, t := range slices.SortedFunc(slices.Values(tasks), TaskID.Compare) {
		dst = appendTask(dst, t)
	}
	return dst
}

func appendNumbers(dst []byte, numbers map[TaskID]int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(numbers)))
	for _, t := range slices.SortedFunc(maps.Keys(numbers), TaskID.Compare) {
		dst = appendTask(dst, t)
		dst = binary.AppendUvarint(dst, uint64(max(0, numbers[t])))
	}
	return dst
}

// decoder reads fields until the first error, which it keeps.
type decoder struct {
	data    []byte
	version byte // that was written
	err     error
}

func newDecoder(data []byte) *decoder {
	d := &decoder{data: data}
	if len(data) < 2 {
		d.fail("too short")
		return d
	}
	if data[1] > formatVersion {
		d.fail(fmt.Sprintf("written in version %d for readers from version %d on, this one is %d: upgrade this instance", data[0], data[1], formatVersion))
	}
	d.version, d.data = data[0], data[2:]
	return d
}

func (d *decoder) fail(why string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrFormat, why)
	}
	d.data = nil
}

func (d *decoder) take(n int) []byte {
	if n > len(d.data) {
		d.fail("cut off")
		return make([]byte, n)
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		d.fail("broken number")
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) uint64() uint64 { return binary.BigEndian.Uint64(d.take(8)) }
func (d *decoder) uint32() uint32 { return binary.BigEndian.Uint32(d.take(4)) }

func (d *decoder) int31() int32 {
	v := d.uvarint()
	if v > 1<<31-1 {
		d.fail("number out of range")
		return 0
	}
	return int32(v)
}

// count reads the length of a list whose elements take at least size bytes, so that a wrong one can't ask for much memory.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.data)/size) {
		d.fail("list longer than its bytes")
		return 0
	}
	return int(n)
}

func (d *decoder) string() string { return string(d.take(d.count(1))) }

func (d *decoder) hashes() map[int32]uint64 {
	n := d.count(9)
	hashes := make(map[int32]uint64, n)
	for range n {
		sub := d.int31()
		hashes[sub] = d.uint64()
	}
	return hashes
}

func (d *decoder) task() TaskID {
	sub := d.int31()
	return TaskID{sub, d.int31()}
}

func (d *decoder) numbers() map[TaskID]int64 {
	n := d.count(3)
	numbers := make(map[TaskID]int64, n)
	for range n {
		t := d.task()
		numbers[t] = int64(d.uvarint() &^ (1 << 63))
	}
	return numbers
}

func (d *decoder) tasks() []TaskID {
	n := d.count(2)
	tasks := make([]TaskID, 0, n)
	for range n {
		tasks = append(tasks, d.task())
	}
	return tasks
}
