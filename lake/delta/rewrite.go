package delta

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tributary-io/tributary/lake/object"
)

// ConflictError says that a commit would remove files that the table doesn't have any more: another writer has removed or replaced them
// since the snapshot that they were read from. Nothing landed. Take a new Snapshot and choose again.
type ConflictError struct {
	Table   string
	Version int64    // of the commit that came in between; 0 if the log doesn't tell any more
	Paths   []string // the files, as in the log; empty if the log doesn't tell any more
	exact   bool     // the commit was bound to its version
}

func (e *ConflictError) Error() string {
	if e.exact {
		return fmt.Sprintf("table %s: version %d of another writer came before this commit, which was made for the version before; read the table again", e.Table, e.Version)
	}
	if len(e.Paths) == 0 {
		return fmt.Sprintf("table %s: the log no longer tells what happened to the files that this commit removes; read the table again", e.Table)
	}
	return fmt.Sprintf("table %s: version %d of another writer has removed files that this commit removes (%s); read the table again",
		e.Table, e.Version, strings.Join(e.Paths[:min(len(e.Paths), 3)], ", "))
}

// checkRewrite finds what can't be right about a commit's removals whatever the table says.
func (c *Commit) checkRewrite() error {
	if len(c.Remove) == 0 {
		if c.Rearrange {
			return errors.New("commit: it rearranges rows, but removes no file")
		}
		return nil
	}
	keys := make(map[string]bool, len(c.Remove))
	for i := range c.Remove {
		key := fileKey(c.Remove[i].Path, c.Remove[i].DeletionVector)
		if c.Remove[i].Path == "" || keys[key] {
			return fmt.Errorf("commit: removed file %q is empty or removed twice", c.Remove[i].Path)
		}
		keys[key] = true
	}
	for i := range c.Add {
		if keys[fileKey(c.Add[i].Path, c.Add[i].DeletionVector)] {
			return fmt.Errorf("commit: file %q is both added and removed", c.Add[i].Path)
		}
	}
	if c.ReadVersion < 0 {
		return errors.New("commit: it removes files without a version that they were read from")
	}
	return nil
}

// checkRemovals makes sure that the files to be removed are still there at a head: no commit since the one that they were read from has
// removed them. What others have added meanwhile is no conflict.
func (a *attempt) checkRemovals(ctx context.Context, head *Head) error {
	c := a.commit
	if len(c.Remove) == 0 {
		return nil
	}
	if !c.Rearrange && head.Metadata.Flag(propAppendOnly, false) {
		return &UnsupportedError{head.table, "write", []string{"the table property " + propAppendOnly},
			"which forbids to change or delete rows: unset it, or keep this table to appends"}
	}
	if !c.Rearrange && head.Metadata.Flag(propChangeFeed, false) {
		return &UnsupportedError{head.table, "write", []string{"the table property " + propChangeFeed},
			"which wants each changed row recorded beside: unset it, or keep this table to appends"}
	}
	if a.removals == nil {
		a.removals = make(map[string]bool, len(c.Remove))
		for i := range c.Remove {
			a.removals[fileKey(c.Remove[i].Path, c.Remove[i].DeletionVector)] = true
		}
		a.checked = c.ReadVersion
	}
	for ; a.checked < head.Version; a.checked++ {
		data, err := a.table.store.Get(ctx, commitName(a.checked+1))
		if errors.Is(err, object.ErrNotFound) {
			return &ConflictError{Table: head.table}
		}
		if err != nil {
			return a.table.wrap(err)
		}
		if err := a.checkWinner(head, a.checked+1, data); err != nil {
			return err
		}
	}
	return nil
}

// checkWinner compares one commit's removals with ours.
func (a *attempt) checkWinner(head *Head, version int64, data []byte) error {
	var gone []string
	err := eachAction(data, func(act action) error {
		if r := act.remove; r != nil && a.removals[fileKey(r.Path, r.DeletionVector)] {
			gone = append(gone, r.Path)
		}
		return nil
	})
	if err != nil {
		return a.table.wrap(fmt.Errorf("log entry %s: %w", commitName(version), err))
	}
	if len(gone) > 0 {
		return &ConflictError{Table: head.table, Version: version, Paths: gone}
	}
	return nil
}

// removal makes the action that takes a file out of the table.
func (a *Add) removal(now int64, dataChange bool) *Remove {
	return &Remove{Path: a.Path, DeletionTimestamp: now, DataChange: dataChange, ExtendedMetadata: true, PartitionValues: a.PartitionValues,
		Size: a.Size, DeletionVector: a.DeletionVector, BaseRowID: a.BaseRowID, RowCommitVersion: a.RowCommitVersion}
}

func (w *entryWriter) remove(r *Remove) {
	raw, err := r.marshal()
	w.line("remove", raw, err)
}

func (r *Remove) marshal() ([]byte, error) {
	var w objectWriter
	w.value("path", r.Path)
	w.value("deletionTimestamp", r.DeletionTimestamp)
	w.value("dataChange", r.DataChange)
	w.value("extendedFileMetadata", r.ExtendedMetadata)
	if r.PartitionValues != nil {
		w.value("partitionValues", r.PartitionValues)
	}
	if r.Size >= 0 {
		w.value("size", r.Size)
	}
	if r.DeletionVector != nil {
		w.value("deletionVector", r.DeletionVector)
	}
	if r.BaseRowID != nil {
		w.value("baseRowId", r.BaseRowID)
	}
	if r.RowCommitVersion != nil {
		w.value("defaultRowCommitVersion", r.RowCommitVersion)
	}
	return w.done()
}
