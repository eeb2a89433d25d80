package group

import (
	"context"
	"fmt"
	"time"

	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// Membership is an instance's place in the group. It has implementations for different protocols.
type Membership interface {
	// Run joins and stays a member until ctx ends (then it returns nil, without leaving) or for a reason that only a person
	// can mend (*FatalError).
	Run(ctx context.Context) error
	// Member is who to commit as; ok is false while there is no valid generation.
	Member() (m offsets.Member, ok bool)
	// Heard is when the coordinator last took a sign of life: a join, or a heartbeat. Zero before the first. Any goroutine may ask.
	Heard() time.Time
	// Rejoin asks for a rebalance, after the member's metadata has changed.
	Rejoin()
	// Leave gives the place up at once, so that others take the tasks over without waiting for the session to end. Call it
	// after Run has returned.
	Leave(ctx context.Context) error
}

// Handler is what a Membership calls, from Run's goroutine. Heartbeats stop while a method runs: none may take long.
type Handler interface {
	// BeforeJoin is called before each attempt to join. No commit may be in flight from its return until Assigned or Lost.
	BeforeJoin(ctx context.Context)
	// Metadata describes this member to the one that leads.
	Metadata() Metadata
	// Assign is called on the member that leads the group in this generation, and gives an assignment for each member.
	Assign(ctx context.Context, members map[string][]byte) (map[string]Assignment, error)
	// Assigned tells this member's assignment (the Data of what the leader gave). What it doesn't have any more is to be given
	// up, with a commit in this generation.
	Assigned(data []byte) error
	// Lost tells that the member was thrown out: its tasks may run elsewhere already, and nothing can be committed for them.
	Lost(cause error)
	// Unheard tells that the coordinator has taken no heartbeat for the session timeout, since when and why: others may have the tasks already,
	// and this member doesn't know. A zero time tells that it hears heartbeats again.
	Unheard(since time.Time, cause error)
}

// Metadata is what a member says of itself.
type Metadata struct {
	Topics []string // that it reads; for display
	Data   []byte
}

// Assignment is what a member is given.
type Assignment struct {
	Partitions map[string][]int32 // for display
	Data       []byte
}

// FatalError says why an instance can't be a member, and what to do.
type FatalError struct {
	Group  string
	Err    error
	Advice string
}

func (e *FatalError) Error() string {
	return fmt.Sprintf("group %s: %v; %s", e.Group, e.Err, e.Advice)
}

func (e *FatalError) Unwrap() error { return e.Err }
