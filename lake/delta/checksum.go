package delta

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tributary-io/tributary/lake/object"
)

// A version checksum (N.crc) holds the state of version N but for its files: protocol, metadata, all txns and domains, counts
// (PROTOCOL.md, "Version Checksum File"). It was made for validation; this package opens tables from it.

// wireChecksum is its JSON shape, as far as this package reads it.
type wireChecksum struct {
	TableSizeBytes  *int64          `json:"tableSizeBytes"`
	NumFiles        *int64          `json:"numFiles"`
	NumMetadata     int64           `json:"numMetadata"`
	NumProtocol     int64           `json:"numProtocol"`
	ICT             int64           `json:"inCommitTimestampOpt"`
	SetTransactions *[]wireTxn      `json:"setTransactions"`
	DomainMetadata  *[]Domain       `json:"domainMetadata"`
	Metadata        json.RawMessage `json:"metadata"`
	Protocol        *wireProtocol   `json:"protocol"`
}

// readChecksum fills b from a version's checksum.
func (t *Table) readChecksum(ctx context.Context, version int64, b *headBuilder) error {
	data, err := t.store.Get(ctx, checksumName(version))
	if err != nil {
		return err
	}
	if err := parseChecksum(data, b); err != nil {
		return fmt.Errorf("version checksum %s: %w", checksumName(version), err)
	}
	return nil
}

func parseChecksum(data []byte, b *headBuilder) error {
	var w wireChecksum
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	switch {
	case w.SetTransactions == nil:
		return errors.New("it doesn't list transactions")
	case w.Protocol == nil, len(w.Metadata) == 0, w.TableSizeBytes == nil, w.NumFiles == nil:
		return errors.New("a required field is missing")
	case w.NumMetadata != 1, w.NumProtocol != 1:
		return errors.New("it doesn't count one metaData and one protocol")
	case *w.NumFiles < 0, *w.TableSizeBytes < 0:
		return errors.New("its counts are negative")
	}
	p, err := w.Protocol.protocol()
	if err != nil {
		return err
	}
	m, err := readMetadata(w.Metadata)
	if err != nil {
		return err
	}
	txns := make(map[string]Txn, len(*w.SetTransactions))
	for _, wt := range *w.SetTransactions {
		txn, err := wt.txn()
		if err != nil {
			return err
		}
		txns[txn.AppID] = *txn
	}
	b.h.Protocol, b.h.Metadata, b.h.Txns = *p, m, txns
	b.h.NumFiles, b.h.SizeBytes, b.h.InCommitTimestamp = *w.NumFiles, *w.TableSizeBytes, w.ICT
	b.h.Domains = nil
	if w.DomainMetadata != nil {
		b.h.Domains = map[string]Domain{}
		for _, d := range *w.DomainMetadata {
			b.h.Domains[d.Domain] = d
		}
	}
	return nil
}

// checksum writes the head's version checksum. The head must know its counts.
func (h *Head) checksum(txnID string) ([]byte, error) {
	var w objectWriter
	if txnID != "" {
		w.value("txnId", txnID)
	}
	w.value("tableSizeBytes", h.SizeBytes)
	w.value("numFiles", h.NumFiles)
	w.value("numMetadata", 1)
	w.value("numProtocol", 1)
	if h.InCommitTimestamp != 0 {
		w.value("inCommitTimestampOpt", h.InCommitTimestamp)
	}
	w.value("setTransactions", sortedValues(h.Txns))
	if h.Domains != nil {
		w.value("domainMetadata", sortedValues(h.Domains))
	}
	metadata, err := h.Metadata.marshal()
	if err != nil {
		return nil, err
	}
	w.raw("metadata", metadata)
	protocol, err := h.Protocol.marshal()
	if err != nil {
		return nil, err
	}
	w.raw("protocol", protocol)
	return w.done()
}

func sortedValues[V any](m map[string]V) []V {
	out := make([]V, 0, len(m))
	for _, k := range sortedKeys(m) {
		out = append(out, m[k])
	}
	return out
}

// writeChecksum writes the checksum of a version, if there is none yet: the specification forbids to overwrite one. It isn't
// synced: a torn one is recognized and passed over, and the next version brings another.
func (t *Table) writeChecksum(ctx context.Context, h *Head, txnID string) error {
	data, err := h.checksum(txnID)
	if err != nil {
		return fmt.Errorf("version checksum of %d: %w", h.Version, err)
	}
	w, err := t.store.Create(ctx, checksumName(h.Version))
	if err == nil {
		if _, err = w.Write(data); err == nil {
			err = w.Close()
		} else {
			w.Abort()
		}
	}
	if errors.Is(err, object.ErrExists) {
		return nil
	}
	return err
}
