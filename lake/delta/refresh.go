package delta

import (
	"context"
	"errors"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

// state is what a Table remembers of its log besides the head. It is guarded by Table.mu.
type state struct {
	confirmed time.Time // when the head was last seen to be the newest version
	// Newest versions known to have a checkpoint and a checksum; -1 for none.
	checkpoint, checksum int64
}

func (s *state) noteListing(l *logListing) {
	s.checkpoint, s.checksum = -1, -1
	if n := len(l.checkpoints); n > 0 {
		s.checkpoint = l.checkpoints[n-1].version
	}
	if n := len(l.checksums); n > 0 {
		s.checksum = l.checksums[n-1].version
	}
}

const (
	// confirmAfter is how long the head may go unseen before it must be checked that the log has not been cleaned past it:
	// the next version could then seem free, although the table has long gone on. Log retention is counted in days.
	confirmAfter = time.Minute
	// refreshSteps is how many versions are read one by one before a listing is cheaper.
	refreshSteps = 32
)

// Refresh reads the commits that were made since the Head and returns the newest version.
func (t *Table) Refresh(ctx context.Context) (*Head, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refresh(ctx)
}

func (t *Table) refresh(ctx context.Context) (*Head, error) {
	if t.head == nil {
		return t.reload(ctx)
	}
	for range refreshSteps {
		data, err := t.store.Get(ctx, commitName(t.head.Version+1))
		if errors.Is(err, object.ErrNotFound) {
			return t.confirm(ctx)
		}
		if err != nil {
			return nil, t.wrap(err)
		}
		if _, err := t.advance(data); err != nil {
			return nil, err
		}
	}
	return t.reload(ctx)
}

// advance applies the log entry of the next version to the head.
func (t *Table) advance(data []byte) (*commitFacts, error) {
	b := t.head.next()
	facts, err := b.commit(t.head.Version+1, data, nil)
	if err != nil {
		return nil, t.wrap(err)
	}
	head, err := b.head()
	if err != nil {
		return nil, err
	}
	t.setHead(head)
	return facts, head.checkRead()
}

func (t *Table) setHead(h *Head) {
	t.headMu.Lock()
	defer t.headMu.Unlock()
	t.head = h
	t.state.confirmed = t.opts.Now()
}

// confirm accepts the head as the newest version, after no next one was found.
func (t *Table) confirm(ctx context.Context) (*Head, error) {
	now := t.opts.Now()
	if age := now.Sub(t.state.confirmed); age < 0 || age > confirmAfter {
		if _, err := t.store.Stat(ctx, commitName(t.head.Version)); errors.Is(err, object.ErrNotFound) {
			return t.reload(ctx)
		} else if err != nil {
			return nil, t.wrap(err)
		}
	}
	t.state.confirmed = now
	return t.head, nil
}

// ErrReplaced says that the table was deleted and another one made in its place while this process had it open.
var ErrReplaced = errors.New("the table was replaced by another one; open it again")

// reload builds the head from scratch. It must not go back: then it is another table.
func (t *Table) reload(ctx context.Context) (*Head, error) {
	head, err := t.load(ctx)
	if err != nil {
		return nil, err
	}
	if t.head != nil && (head.Metadata.ID != t.head.Metadata.ID || head.Version < t.head.Version) {
		return nil, t.wrap(ErrReplaced)
	}
	t.setHead(head)
	return head, nil
}
