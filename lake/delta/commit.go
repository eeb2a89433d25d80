package delta

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Commit is what one call of Table.Commit lands, all at once or not at all.
type Commit struct {
	// Add lists data files that are in the store, written with Create and not yet synced: Commit syncs them together. What they say
	// of dataChange doesn't count.
	Add []Add
	// Remove lists files to take out of the table, as a Snapshot gave them, and ReadVersion is that snapshot's version. The commit
	// lands only if no other writer has removed or replaced any of them since (*ConflictError); what others have added, or
	// removed of other files, doesn't matter. The objects stay: a vacuum deletes them when no reader can need them any more.
	Remove      []Add
	ReadVersion int64
	// Exact says that what is added and removed was chosen by all rows of ReadVersion, so that the commit lands right behind that version or
	// not at all: any commit of another writer in between is a *ConflictError.
	Exact bool
	// Rearrange says that the rows of Add are those of Remove, so that nothing changes for readers of changes (dataChange false), and
	// tables that only take appends allow it: a compaction.
	Rearrange bool
	// Moves is the progress that the files contain, at most one of each application id.
	Moves []Move
	// Metadata is asked for the metadata that the table shall have, given what it has: at first with the newest version's, and
	// again after each lost race that changed it. It returns current itself, or an equal value, for no change; an error (say,
	// that the files don't fit any more) ends the commit with nothing landed. Without it, the metadata of the version that was
	// the head when Commit was called must still stand: else the commit ends with a *MetadataChangedError.
	Metadata func(current *Metadata) (*Metadata, error)
	// Operation is the commitInfo's operation; "" means STREAMING UPDATE.
	Operation string
	// OperationParameters, OperationMetrics and UserMetadata go to the commitInfo as they are. The usual metrics (files, rows,
	// bytes) are filled in where they are absent.
	OperationParameters map[string]string
	OperationMetrics    map[string]string
	UserMetadata        string
	// Info holds further keys for the commitInfo, other than those of CommitInfo's fields.
	Info map[string]json.RawMessage
}

// Move takes the progress of one application id from one version to another. From == To refreshes an idle id.
type Move struct {
	AppID string
	First bool  // the table has no progress of this id yet; From doesn't count
	From  int64 // what the table must say
	To    int64
}

// Landed tells how a commit went.
type Landed struct {
	Version  int64
	Attempts int // versions tried: 1 if no race was lost, 0 if there was nothing to commit (Version is then the newest)
	Bytes    int // of the log entry
	// Recovered says that the reply of a put was lost, or that it failed in doubt, and that reading back settled it.
	Recovered bool
	// MetadataChanged says that the commit carried metadata.
	MetadataChanged bool
}

const (
	defaultOperation = "STREAMING UPDATE"
	// maxEntry bounds a log entry, which is held in memory by every reader.
	maxEntry = 256 << 20
)

// Commit lands c on the newest version, by compare-and-set: the version that it lands on shows, for each move's application id,
// exactly the progress that the move starts from. Lost races are retried until ctx ends. The errors:
//
//   - *FencedError: another writer has moved one of the application ids.
//   - *UnsupportedError: the table's protocol or constraints forbid this package to write it (perhaps only now).
//   - *MetadataChangedError, or what c.Metadata returned.
//   - *ConflictError: another writer has removed one of the files that c removes, or committed anything where c is Exact.
//   - *UndecidedError: see there. Only then may something have landed.
//   - any other: nothing landed, and the same call may be made again.
//
// Data files are never deleted by Commit. Those of a commit that did not land are orphans.
func (t *Table) Commit(ctx context.Context, c Commit) (Landed, error) {
	if err := c.check(); err != nil {
		return Landed{}, t.wrap(err)
	}
	if err := t.syncFiles(ctx, c.Add); err != nil {
		return Landed{}, t.wrap(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.confirm(ctx); err != nil {
		return Landed{}, err
	}
	a := &attempt{table: t, commit: &c, base: t.head.Metadata, txnID: t.opts.NewID()}
	for {
		landed, again, err := a.try(ctx)
		if err != nil || !again {
			return landed, err
		}
		if err := t.backOff(ctx, a.lost); err != nil {
			return Landed{}, t.wrap(fmt.Errorf("commit given up after %d lost races, nothing landed: %w", a.lost, err))
		}
		if err := a.catchUp(ctx); err != nil {
			return Landed{}, err
		}
	}
}

// check finds what can't be right whatever the table says.
func (c *Commit) check() error {
	ids := make(map[string]bool, len(c.Moves))
	for _, m := range c.Moves {
		if m.AppID == "" || ids[m.AppID] {
			return fmt.Errorf("commit: application id %q is empty or moved twice", m.AppID)
		}
		ids[m.AppID] = true
	}
	paths := make(map[string]bool, len(c.Add))
	for i := range c.Add {
		if p := c.Add[i].Path; p == "" || paths[p] {
			return fmt.Errorf("commit: data file %q is empty or added twice", p)
		}
		paths[c.Add[i].Path] = true
	}
	for key := range c.Info {
		if slices.Contains(commitInfoKeys, key) {
			return fmt.Errorf("commit: the commitInfo key %q is set by the commit itself", key)
		}
	}
	return c.checkRewrite()
}

func (t *Table) syncFiles(ctx context.Context, adds []Add) error {
	if len(adds) == 0 {
		return nil
	}
	names := make([]string, len(adds))
	for i := range adds {
		name, err := adds[i].Name()
		if err != nil {
			return err
		}
		names[i] = name
	}
	return t.store.Sync(ctx, names...)
}

// attempt is one call of Commit on its way. Table.mu is held.
type attempt struct {
	table  *Table
	commit *Commit
	base   *Metadata // of the head when Commit was called
	txnID  string
	tries  int // versions tried
	lost   int // races lost in a row

	asked  *Metadata // what Commit.Metadata was last asked about
	wanted *Metadata // what it answered

	removals map[string]bool // keys of the files to be removed
	checked  int64           // version up to which no other writer has removed them
}

// try tries to land on the version after the head. again says that the head moved meanwhile.
func (a *attempt) try(ctx context.Context) (landed Landed, again bool, err error) {
	t, head := a.table, a.table.head
	if err := head.CheckWrite(); err != nil {
		return landed, false, err
	}
	if fenced := a.fenced(head); fenced != nil {
		// The head may be older than what the caller has read through another Table.
		newest, err := t.refresh(ctx)
		if err != nil || newest != head {
			return landed, err == nil, err
		}
		return landed, false, fenced
	}
	if err := a.askMetadata(head); err != nil {
		return landed, false, t.wrap(err)
	}
	changed := a.wanted != head.Metadata && !a.wanted.Equal(head.Metadata)
	if len(a.commit.Add)+len(a.commit.Remove) == 0 && len(a.commit.Moves) == 0 && !changed {
		return Landed{Version: head.Version}, false, nil
	}
	if a.commit.Exact && head.Version != a.commit.ReadVersion {
		return landed, false, &ConflictError{Table: head.table, Version: head.Version, exact: true}
	}
	if err := a.checkRemovals(ctx, head); err != nil {
		return landed, false, err
	}
	if err := a.checkFiles(); err != nil {
		return landed, false, t.wrap(err)
	}
	entry, err := a.entry(head, changed)
	if err != nil {
		return landed, false, t.wrap(err)
	}
	a.tries++
	out, err := t.put(ctx, head.Version+1, entry, a.txnID)
	if err != nil {
		return landed, false, err
	}
	if out.winner != nil {
		a.lost++
		return landed, true, a.readWinners(ctx, out.winner)
	}
	if _, err := t.advance(entry); err != nil {
		return landed, false, fmt.Errorf("version %d has landed: %w", head.Version+1, err)
	}
	t.maintain.committed(t.head, a.txnID)
	return Landed{t.head.Version, a.tries, len(entry), out.recovered, changed}, false, nil
}

// fenced compares the moves with a version's progress.
func (a *attempt) fenced(head *Head) error {
	for _, m := range a.commit.Moves {
		want := Progress{Version: m.From, None: m.First}
		if got := head.progress(m.AppID); got != want && !(got.None && want.None) {
			return &FencedError{head.table, m.AppID, head.Version, want, got}
		}
	}
	return nil
}

// askMetadata finds the metadata to land with.
func (a *attempt) askMetadata(head *Head) (err error) {
	if a.asked == head.Metadata {
		return nil
	}
	if a.commit.Metadata == nil {
		if head.Metadata != a.base && !head.Metadata.Equal(a.base) {
			return &MetadataChangedError{head.table, head.Version}
		}
		a.asked, a.wanted = head.Metadata, head.Metadata
		return nil
	}
	if a.wanted, err = a.commit.Metadata(head.Metadata); err != nil {
		return err
	}
	a.asked = head.Metadata
	if a.wanted != head.Metadata {
		return checkMetadata(head, a.wanted)
	}
	return nil
}

// checkMetadata refuses changes that a sink can't make in place.
func checkMetadata(head *Head, m *Metadata) error {
	old := head.Metadata
	switch {
	case m.ID != old.ID:
		return fmt.Errorf("the table's id can't change (from %s to %s)", old.ID, m.ID)
	case !slices.Equal(m.PartitionColumns, old.PartitionColumns):
		return fmt.Errorf("the partition columns can't change in place (from %v to %v); land the stream in a new table", old.PartitionColumns, m.PartitionColumns)
	case m.Flag(propICT, false) != old.Flag(propICT, false):
		return fmt.Errorf("%s can only be set when a table is created", propICT)
	}
	if lacking := head.Protocol.lacking(m); len(lacking) > 0 {
		return &UnsupportedError{head.table, "write", lacking,
			"which the table's protocol doesn't have, and it is never upgraded silently: upgrade it with an engine of yours, or land the stream in a new table"}
	}
	return checkNames("", m.Schema, m.ColumnMapping() != MappingNone)
}

// entry builds the log entry for the version after head.
func (a *attempt) entry(head *Head, changed bool) ([]byte, error) {
	now := a.table.opts.Now().UnixMilli()
	var w entryWriter
	info := a.info(head, now)
	if head.Metadata.Flag(propICT, false) {
		info.InCommitTimestamp = max(now, head.InCommitTimestamp+1)
	}
	w.commitInfo(info)
	if changed {
		w.metadata(a.wanted)
	}
	for _, m := range a.commit.Moves {
		w.txn(Txn{m.AppID, m.To, now})
	}
	for i := range a.commit.Remove {
		w.remove(a.commit.Remove[i].removal(now, !a.commit.Rearrange))
	}
	for i := range a.commit.Add {
		add := a.commit.Add[i]
		add.DataChange = !a.commit.Rearrange
		w.add(&add)
	}
	if w.err == nil && len(w.buf) > maxEntry {
		return nil, fmt.Errorf("the log entry would have %d bytes, more than %d: commit fewer files at once", len(w.buf), maxEntry)
	}
	return w.buf, w.err
}

func (a *attempt) info(head *Head, now int64) *CommitInfo {
	c := a.commit
	info := &CommitInfo{
		Timestamp: now, Operation: c.Operation, OperationParameters: c.OperationParameters, IsBlindAppend: len(c.Remove) == 0 && !c.Exact,
		EngineInfo: a.table.opts.Engine, TxnID: a.txnID, ReadVersion: head.Version, UserMetadata: c.UserMetadata, Extra: c.Info,
	}
	if info.Operation == "" {
		info.Operation = defaultOperation
	}
	var rows, bytes, removed int64
	for i := range c.Add {
		n, _ := c.Add[i].NumRecords()
		rows += n
		bytes += c.Add[i].Size
	}
	info.OperationMetrics = map[string]string{
		"numAddedFiles": strconv.Itoa(len(c.Add)), "numRemovedFiles": strconv.Itoa(len(c.Remove)), "numOutputRows": itoa(rows), "numOutputBytes": itoa(bytes),
	}
	for i := range c.Remove {
		removed += c.Remove[i].Size
	}
	if len(c.Remove) > 0 {
		info.OperationMetrics["numRemovedBytes"] = itoa(removed)
	}
	maps.Copy(info.OperationMetrics, c.OperationMetrics)
	return info
}
