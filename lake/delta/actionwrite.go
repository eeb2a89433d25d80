package delta

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// entryWriter builds a log entry line by line.
type entryWriter struct {
	buf []byte
	err error
}

// line appends {"kind": value}.
func (w *entryWriter) line(kind string, value []byte, err error) {
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%s: %w", kind, err)
		return
	}
	w.buf = append(w.buf, `{"`...)
	w.buf = append(w.buf, kind...)
	w.buf = append(w.buf, `":`...)
	w.buf = append(w.buf, value...)
	w.buf = append(w.buf, "}\n"...)
}

func (w *entryWriter) commitInfo(c *CommitInfo) {
	raw, err := c.marshal()
	w.line("commitInfo", raw, err)
}

func (w *entryWriter) protocol(p Protocol) {
	raw, err := p.marshal()
	w.line("protocol", raw, err)
}

func (w *entryWriter) metadata(m *Metadata) {
	raw, err := m.marshal()
	w.line("metaData", raw, err)
}

func (w *entryWriter) txn(t Txn) {
	raw, err := marshalPlain(t)
	w.line("txn", raw, err)
}

func (w *entryWriter) add(a *Add) {
	raw, err := a.marshal()
	w.line("add", raw, err)
}

func (p Protocol) marshal() ([]byte, error) {
	var w objectWriter
	w.value("minReaderVersion", p.MinReaderVersion)
	w.value("minWriterVersion", p.MinWriterVersion)
	// The lists must be there, even if empty, exactly at versions 3 and 7.
	if p.MinReaderVersion >= 3 {
		w.value("readerFeatures", notNil(p.ReaderFeatures))
	}
	if p.MinWriterVersion >= 7 {
		w.value("writerFeatures", notNil(p.WriterFeatures))
	}
	return w.done()
}

func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func (a *Add) marshal() ([]byte, error) {
	values := a.PartitionValues
	if values == nil {
		values = map[string]*string{} // required by the specification
	}
	return marshalPlain(wireAdd{&a.Path, values, a.Size, a.ModificationTime, a.DataChange, a.Stats, a.Tags, a.DeletionVector,
		a.BaseRowID, a.RowCommitVersion, a.ClusteringBy})
}

// marshal writes the metaData action. Keys that were read but have no field are written back as they came.
func (m *Metadata) marshal() ([]byte, error) {
	var w objectWriter
	w.value("id", m.ID)
	if m.Name != "" || m.hasName {
		w.value("name", m.Name)
	}
	if m.Description != "" || m.hasDesc {
		w.value("description", m.Description)
	}
	format := m.Format
	if format.Options == nil {
		format.Options = map[string]string{}
	}
	w.value("format", format)
	schema, err := m.schemaString()
	if err != nil {
		return nil, err
	}
	w.value("schemaString", schema)
	w.value("partitionColumns", notNil(m.PartitionColumns))
	w.sortedMap("configuration", m.Configuration)
	if m.CreatedTime != 0 {
		w.value("createdTime", m.CreatedTime)
	}
	w.extra(m.extra)
	return w.done()
}

// schemaString returns the schema as text: the text that was read, if the schema is still that one.
func (m *Metadata) schemaString() (string, error) {
	if m.schemaText != "" && m.Schema == m.schemaRead {
		return m.schemaText, nil
	}
	raw, err := m.Schema.MarshalJSON()
	return string(raw), err
}

// sortedMap writes a map by sorted keys, so that equal maps give equal bytes.
func (w *objectWriter) sortedMap(key string, m map[string]string) {
	var inner objectWriter
	for _, k := range slices.Sorted(maps.Keys(m)) {
		inner.value(k, m[k])
	}
	raw, _ := inner.done() // strings always marshal
	w.raw(key, raw)
}

// commitInfoKeys are the keys of CommitInfo's own fields.
var commitInfoKeys = []string{"inCommitTimestamp", "timestamp", "operation", "operationParameters", "readVersion", "isBlindAppend",
	"operationMetrics", "userMetadata", "engineInfo", "txnId"}

func (c *CommitInfo) marshal() ([]byte, error) {
	var w objectWriter
	if c.InCommitTimestamp != 0 {
		w.value("inCommitTimestamp", c.InCommitTimestamp)
	}
	w.value("timestamp", c.Timestamp)
	w.value("operation", c.Operation)
	w.sortedMap("operationParameters", c.OperationParameters)
	if c.ReadVersion >= 0 {
		w.value("readVersion", c.ReadVersion)
	}
	w.value("isBlindAppend", c.IsBlindAppend)
	if c.OperationMetrics != nil {
		w.sortedMap("operationMetrics", c.OperationMetrics)
	}
	if c.UserMetadata != "" {
		w.value("userMetadata", c.UserMetadata)
	}
	w.value("engineInfo", c.EngineInfo)
	w.value("txnId", c.TxnID)
	for _, k := range slices.Sorted(maps.Keys(c.Extra)) {
		if !json.Valid(c.Extra[k]) {
			return nil, fmt.Errorf("key %q is not valid JSON", k)
		}
		compact, err := marshalPlain(c.Extra[k]) // one line
		if err != nil {
			return nil, err
		}
		w.raw(k, compact)
	}
	return w.done()
}
