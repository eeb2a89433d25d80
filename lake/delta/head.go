package delta

// Head is a version of a table as a writer needs it. It is immutable and may be shared.
type Head struct {
	Version  int64
	Protocol Protocol
	Metadata *Metadata
	// Txns holds the progress of every application id, by id.
	Txns map[string]Txn
	// Domains holds the live domain metadata by name; nil if not known (the checksum read lacked them).
	Domains map[string]Domain
	// NumFiles and SizeBytes count the table's live files; both are -1 if not known.
	NumFiles  int64
	SizeBytes int64
	// InCommitTimestamp is the version's own time in ms; 0 if the table has none.
	InCommitTimestamp int64
}

// Txn returns the progress of an application id, ok=false if the table has none.
func (h *Head) Txn(appID string) (version int64, ok bool) {
	t, ok := h.Txns[appID]
	return t.Version, ok
}
