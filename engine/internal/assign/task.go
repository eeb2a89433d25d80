package assign

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// TaskID names a task: one partition of one sub-topology.
type TaskID struct {
	Subtopology int32
	Partition   int32
}

// String is the name that Kafka Streams uses too: "<sub-topology>_<partition>".
func (t TaskID) String() string { return fmt.Sprintf("%d_%d", t.Subtopology, t.Partition) }

// ParseTaskID reads what String gives.
func ParseTaskID(s string) (TaskID, error) {
	sub, part, ok := strings.Cut(s, "_")
	a, err1 := strconv.ParseUint(sub, 10, 31)
	b, err2 := strconv.ParseUint(part, 10, 31)
	t := TaskID{int32(a), int32(b)}
	if !ok || err1 != nil || err2 != nil || t.String() != s {
		return TaskID{}, fmt.Errorf("%q is no task id, want <sub-topology>_<partition>", s)
	}
	return t, nil
}

// Compare orders task ids by sub-topology, then partition.
func (t TaskID) Compare(o TaskID) int {
	return cmp.Or(cmp.Compare(t.Subtopology, o.Subtopology), cmp.Compare(t.Partition, o.Partition))
}

// Sort sorts task ids in place.
func Sort(tasks []TaskID) { slices.SortFunc(tasks, TaskID.Compare) }

// UnknownLag and more stand for a lag that is not known yet.
const UnknownLag = 1 << 40

// Member is what a member says of itself when it joins.
type Member struct {
	ID string // the group member id; not part of the metadata
	// TopologyHash identifies the whole topology.
	TopologyHash string
	// Signatures has a hash of each sub-topology that the member knows. A task goes only to members whose signature of its
	// sub-topology is the leader's own, so that different versions of an application can share a group for a while.
	Signatures map[int32]uint64
	// Owned are the tasks that the member runs now, and will run until it says otherwise.
	Owned []TaskID
	// Lags tells, for tasks of which the member has state without owning them, how many changelog records it is behind. Of those that
	// aren't in Follows that is not known. Owned tasks are in it while their state is still being restored: how much is left.
	Lags map[TaskID]int64
	// Endpoint is the host:port of the member's HTTP server, for interactive queries; may be empty.
	Endpoint string
	// Nonce changes whenever the member wants a rebalance even though nothing else changed: brokers compare the bytes.
	Nonce uint32

	// What follows is known of members of format version 2 and later.

	// Follows are the tasks whose state the member keeps up to date without owning them.
	Follows []TaskID
	// Sizes tells, for owned tasks with state, how many changelog records somebody without it would have to read.
	Sizes map[TaskID]int64
	// Tags describe where the member runs: a zone, a rack.
	Tags map[string]string

	// What follows is known of members of format version 3 and later.

	// Shapes has a hash of all that the member declares of each sub-topology, where Signatures has only names and topics. A task goes only
	// to members whose shape of its sub-topology is the leader's, too.
	Shapes map[int32]uint64
	// Plan is the member's topology, to say how it differs from another's; for assign it is only bytes.
	Plan []byte

	// Format is the version of the format that the member writes.
	Format byte
}
