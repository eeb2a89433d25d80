package delta

import (
	"fmt"
	"maps"
)

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

	table string // for messages
}

// Txn returns the progress of an application id, ok=false if the table has none.
func (h *Head) Txn(appID string) (version int64, ok bool) {
	t, ok := h.Txns[appID]
	return t.Version, ok
}

func (h *Head) progress(appID string) Progress {
	v, ok := h.Txn(appID)
	return Progress{Version: v, None: !ok}
}

// headBuilder replays commits onto a version, oldest first.
type headBuilder struct {
	h Head
}

// newHeadBuilder starts before version 0.
func newHeadBuilder(table string) *headBuilder {
	return &headBuilder{h: Head{Version: -1, Txns: map[string]Txn{}, Domains: map[string]Domain{}, table: table}}
}

// next starts from a version, which stays as it is.
func (h *Head) next() *headBuilder {
	b := &headBuilder{h: *h}
	b.h.Txns = maps.Clone(h.Txns)
	b.h.Domains = maps.Clone(h.Domains)
	return b
}

// commitFacts is what a writer wants to know of a commit besides the state that it leads to.
type commitFacts struct {
	info            *CommitInfo // nil if the commit has none
	txns            map[string]Txn
	metadata        bool
	protocol        bool
	adds, removes   int
	addBytes        int64
	rearranged      bool // adds that only rewrite or re-describe data
	unsizedRemovals bool
}

func (f *commitFacts) txnID() string {
	if f.info == nil {
		return ""
	}
	return f.info.TxnID
}

// readFacts parses a log entry, calling fn for each action.
func readFacts(data []byte, fn func(action)) (*commitFacts, error) {
	f := &commitFacts{txns: map[string]Txn{}}
	err := eachAction(data, func(a action) (err error) {
		switch {
		case len(a.commitInfo) > 0 && !isNull(a.commitInfo):
			f.info, err = readCommitInfo(a.commitInfo)
		case a.txn != nil:
			f.txns[a.txn.AppID] = *a.txn
		case a.metadata != nil:
			f.metadata = true
		case a.protocol != nil:
			f.protocol = true
		case a.add != nil:
			f.adds++
			f.addBytes += a.add.Size
			f.rearranged = f.rearranged || !a.add.DataChange
		case a.remove != nil:
			f.removes++
			f.unsizedRemovals = f.unsizedRemovals || a.remove.Size < 0
		}
		fn(a)
		return err
	})
	return f, err
}

// commit applies the log entry of the next version. each, if not nil, is called with every action.
func (b *headBuilder) commit(version int64, data []byte, each func(action)) (*commitFacts, error) {
	facts, err := readFacts(data, func(a action) {
		b.apply(&a)
		b.count(&a)
		if each != nil {
			each(a)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("log entry %s: %w", commitName(version), err)
	}
	if facts.unsizedRemovals || facts.rearranged && facts.removes == 0 {
		// A removal of unknown size, or files added again with new statistics: only a full replay tells the sums.
		b.h.NumFiles, b.h.SizeBytes = -1, -1
	}
	b.h.Version = version
	b.h.InCommitTimestamp = 0
	if facts.info != nil {
		b.h.InCommitTimestamp = facts.info.InCommitTimestamp
	}
	return facts, nil
}

// apply takes everything but files from an action.
func (b *headBuilder) apply(a *action) {
	switch {
	case a.protocol != nil:
		b.h.Protocol = *a.protocol
	case a.metadata != nil:
		b.h.Metadata = a.metadata
	case a.txn != nil:
		b.h.Txns[a.txn.AppID] = *a.txn
	case a.domain != nil && b.h.Domains != nil:
		if a.domain.Removed {
			delete(b.h.Domains, a.domain.Domain)
		} else {
			b.h.Domains[a.domain.Domain] = *a.domain
		}
	}
}

func (b *headBuilder) count(a *action) {
	if b.h.NumFiles < 0 {
		return
	}
	switch {
	case a.add != nil:
		b.h.NumFiles++
		b.h.SizeBytes += a.add.Size
	case a.remove != nil && a.remove.Size >= 0:
		b.h.NumFiles--
		b.h.SizeBytes -= a.remove.Size
	}
}

// head returns the version reached, or an error if the log doesn't describe a table.
func (b *headBuilder) head() (*Head, error) {
	switch {
	case b.h.Metadata == nil:
		return nil, fmt.Errorf("table %s, version %d: the log has no metaData action: it is damaged or not a Delta log", b.h.table, b.h.Version)
	case b.h.Protocol.MinReaderVersion == 0:
		return nil, fmt.Errorf("table %s, version %d: the log has no protocol action: it is damaged or not a Delta log", b.h.table, b.h.Version)
	}
	h := b.h
	return &h, nil
}
