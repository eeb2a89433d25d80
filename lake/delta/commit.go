package delta

import (
	"encoding/json"
	"fmt"
)

// Commit is what one call of Table.Commit lands, all at once or not at all.
type Commit struct {
	// Add lists data files that are in the store, written with Create and not yet synced: Commit syncs them together.
	Add []Add
	// Moves is the progress that the files contain.
	Moves []Move
	// Metadata is asked for the metadata that the table shall have, given what it has: at first with the newest version's, and
	// again after each lost race that changed it. It returns current itself, or an equal value, for no change; an error (say,
	// that the files don't fit any more) ends the commit with nothing landed. Without it, the metadata of the version that was
	// the head when Commit was called must still stand: else the commit ends with a *MetadataChangedError.
	Metadata func(current *Metadata) (*Metadata, error)
	// Operation is the commitInfo's operation; "" means STREAMING UPDATE.
	Operation string
	// OperationParameters, OperationMetrics and UserMetadata go to the commitInfo as they are.
	OperationParameters map[string]string
	OperationMetrics    map[string]string
	UserMetadata        string
	// Info holds further keys for the commitInfo.
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
	Attempts int // versions tried; 1 if no race was lost
	Bytes    int // of the log entry
	// Recovered says that the reply of a put was lost, or that it failed in doubt, and that reading back settled it.
	Recovered bool
	// MetadataChanged says that the commit carried metadata.
	MetadataChanged bool
}

// FencedError says that the table's progress isn't what the commit starts from: another writer has moved it. Nothing landed.
type FencedError struct {
	Table   string
	AppID   string
	Version int64 // the table version that says so
	Want    Progress
	Got     Progress
}

// Progress is a version of an application id, or none.
type Progress struct {
	Version int64
	None    bool
}

func (p Progress) String() string {
	if p.None {
		return "none"
	}
	return itoa(p.Version)
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("table %s: at version %d the progress of %q is %s, but this commit starts from %s: another writer has moved it; "+
		"drop the batch, read the progress and go on from there", e.Table, e.Version, e.AppID, e.Got, e.Want)
}

// MetadataChangedError says that another writer changed the table's metadata and that the commit brought no function to
// answer it. Nothing landed.
type MetadataChangedError struct {
	Table   string
	Version int64 // that changed it
}

func (e *MetadataChangedError) Error() string {
	return fmt.Sprintf("table %s: version %d changed the table's metadata while this commit was made; check that the data still fits and commit again", e.Table, e.Version)
}

// UndecidedError says that the commit may or may not have landed: the store failed in doubt until the context ended. The data
// files must stay. Reading the table's progress later tells what became of it; committing the same moves again is safe, since
// one of the two will be fenced.
type UndecidedError struct {
	Table   string
	Version int64 // that was tried
	TxnID   string
	Err     error
}

func (e *UndecidedError) Error() string {
	return fmt.Sprintf("table %s: it is not known whether version %d (txnId %s) was written: %v; read the table's progress before going on", e.Table, e.Version, e.TxnID, e.Err)
}

func (e *UndecidedError) Unwrap() error { return e.Err }
