package delta

import "fmt"

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
	Version int64 // at which that was seen
}

func (e *MetadataChangedError) Error() string {
	return fmt.Sprintf("table %s: by version %d the table's metadata changed while this commit was made; check that the data still fits and commit again", e.Table, e.Version)
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
