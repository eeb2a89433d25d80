package delta

import (
	"context"
	"fmt"
)

// FileChanges is what one commit did to the list of files.
type FileChanges struct {
	Version int64
	Add     []Add
	Remove  []Remove
	Txns    map[string]Txn // that the commit set, by application id
}

// Changes reads what the versions after from, up to and including to, did to the list of files, oldest first, and calls fn for each. Where
// the log has been cleaned past one of them the error wraps object.ErrNotFound: then a Snapshot tells.
func (t *Table) Changes(ctx context.Context, from, to int64, fn func(FileChanges) error) error {
	for v := from + 1; v <= to; v++ {
		data, err := t.store.Get(ctx, commitName(v))
		if err != nil {
			return t.wrap(err)
		}
		c := FileChanges{Version: v}
		facts, err := readFacts(data, func(a action) {
			switch {
			case a.add != nil:
				c.Add = append(c.Add, *a.add)
			case a.remove != nil:
				c.Remove = append(c.Remove, *a.remove)
			}
		})
		if err != nil {
			return t.wrap(fmt.Errorf("log entry %s: %w", commitName(v), err))
		}
		c.Txns = facts.txns
		if err := fn(c); err != nil {
			return err
		}
	}
	return nil
}
