package lake

import (
	"context"
	"errors"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
)

// claim makes one of many instances do a piece of upkeep. It is a txn action of the table under an application id of its own, whose version is
// the time (ms since 1970) before which no other instance begins: taking it is a compare-and-set in the log, as progress is. Nothing but wasted
// work depends on it, so that clocks need not agree.
type claim struct {
	table *delta.Table
	appID string
	every time.Duration
	now   func() time.Time
	mine  int64 // what the table says while the claim is this instance's
	next  int64 // what the renewal under way will make it say
}

// take takes the claim if nobody has it. It costs one version of the table.
func (c *claim) take(ctx context.Context) (bool, error) {
	head, err := c.table.Refresh(ctx)
	if err != nil {
		return false, err
	}
	from, ok := head.Txn(c.appID)
	if now := c.now(); ok && from > now.UnixMilli() && from <= now.Add(2*c.every).UnixMilli() { // further ahead no clock is believed
		return false, nil
	}
	c.next = c.now().Add(c.every).UnixMilli()
	_, err = c.table.Commit(ctx, delta.Commit{Moves: []delta.Move{{AppID: c.appID, First: !ok, From: from, To: c.next}}, Operation: "CLAIM UPKEEP",
		Metadata: func(m *delta.Metadata) (*delta.Metadata, error) { return m, nil }})
	if fenced := (*delta.FencedError)(nil); errors.As(err, &fenced) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.landed()
	return true, nil
}

// renewal is the move that keeps the claim for another while.
func (c *claim) renewal() delta.Move {
	c.next = max(c.now().Add(c.every).UnixMilli(), c.mine)
	return delta.Move{AppID: c.appID, From: c.mine, To: c.next}
}

// landed is told that the last move has landed.
func (c *claim) landed() { c.mine = c.next }
