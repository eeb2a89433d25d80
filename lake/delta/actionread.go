package delta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// action is one line of the log, or one row of a checkpoint: exactly one of the fields is set. Lines of kinds that this
// package doesn't know have none.
type action struct {
	protocol   *Protocol
	metadata   *Metadata
	add        *Add
	remove     *Remove
	txn        *Txn
	domain     *Domain
	sidecar    *Sidecar
	commitInfo json.RawMessage
	v2         bool  // checkpointMetadata: the checkpoint follows the V2 specification
	version    int64 // of it; set for writing only
}

// wireAction is the JSON shape of a line. Kinds that need more than a plain decode are kept raw.
type wireAction struct {
	Protocol   *wireProtocol   `json:"protocol"`
	Metadata   json.RawMessage `json:"metaData"`
	Add        *wireAdd        `json:"add"`
	Remove     *wireRemove     `json:"remove"`
	Txn        *wireTxn        `json:"txn"`
	Domain     *Domain         `json:"domainMetadata"`
	Sidecar    *wireSidecar    `json:"sidecar"`
	CommitInfo json.RawMessage `json:"commitInfo"`
	V2         json.RawMessage `json:"checkpointMetadata"`
}

type wireProtocol struct {
	MinReaderVersion *int     `json:"minReaderVersion"`
	MinWriterVersion *int     `json:"minWriterVersion"`
	ReaderFeatures   []string `json:"readerFeatures,omitempty"`
	WriterFeatures   []string `json:"writerFeatures,omitempty"`
}

type wireTxn struct {
	AppID       *string `json:"appId"`
	Version     *int64  `json:"version"`
	LastUpdated *int64  `json:"lastUpdated"`
}

type wireAdd struct {
	Path             *string            `json:"path"`
	PartitionValues  map[string]*string `json:"partitionValues"`
	Size             int64              `json:"size"`
	ModificationTime int64              `json:"modificationTime"`
	DataChange       bool               `json:"dataChange"`
	Stats            string             `json:"stats,omitempty"`
	Tags             map[string]string  `json:"tags,omitempty"`
	DeletionVector   *DeletionVector    `json:"deletionVector,omitempty"`
	BaseRowID        *int64             `json:"baseRowId,omitempty"`
	RowCommitVersion *int64             `json:"defaultRowCommitVersion,omitempty"`
	ClusteringBy     string             `json:"clusteringProvider,omitempty"`
}

type wireRemove struct {
	Path              *string            `json:"path"`
	DeletionTimestamp int64              `json:"deletionTimestamp"`
	DataChange        bool               `json:"dataChange"`
	ExtendedMetadata  bool               `json:"extendedFileMetadata"`
	PartitionValues   map[string]*string `json:"partitionValues"`
	Size              *int64             `json:"size"`
	DeletionVector    *DeletionVector    `json:"deletionVector"`
	BaseRowID         *int64             `json:"baseRowId"`
	RowCommitVersion  *int64             `json:"defaultRowCommitVersion"`
}

type wireSidecar struct {
	Path             string `json:"path"`
	SizeInBytes      int64  `json:"sizeInBytes"`
	ModificationTime int64  `json:"modificationTime"`
}

// readAction decodes one line. A line of an unknown kind gives an empty action.
func readAction(line []byte) (action, error) {
	var w wireAction
	if err := json.Unmarshal(line, &w); err != nil {
		return action{}, fmt.Errorf("not an action: %w", err)
	}
	a := action{commitInfo: w.CommitInfo, domain: w.Domain, v2: len(w.V2) > 0 && !isNull(w.V2)}
	var err error
	switch {
	case w.Protocol != nil:
		a.protocol, err = w.Protocol.protocol()
	case len(w.Metadata) > 0 && !isNull(w.Metadata):
		a.metadata, err = readMetadata(w.Metadata)
	case w.Add != nil:
		a.add, err = w.Add.add()
	case w.Remove != nil:
		a.remove, err = w.Remove.remove()
	case w.Txn != nil:
		a.txn, err = w.Txn.txn()
	case w.Sidecar != nil:
		a.sidecar = (*Sidecar)(w.Sidecar)
	}
	return a, err
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(raw, []byte("null")) }

func (w *wireProtocol) protocol() (*Protocol, error) {
	if w.MinReaderVersion == nil || w.MinWriterVersion == nil {
		return nil, fmt.Errorf("protocol without minReaderVersion or minWriterVersion")
	}
	return &Protocol{*w.MinReaderVersion, *w.MinWriterVersion, w.ReaderFeatures, w.WriterFeatures}, nil
}

func (w *wireTxn) txn() (*Txn, error) {
	if w.AppID == nil || w.Version == nil {
		return nil, fmt.Errorf("txn without appId or version")
	}
	t := &Txn{AppID: *w.AppID, Version: *w.Version}
	if w.LastUpdated != nil {
		t.LastUpdated = *w.LastUpdated
	}
	return t, nil
}

func (w *wireAdd) add() (*Add, error) {
	if w.Path == nil || *w.Path == "" {
		return nil, fmt.Errorf("add without path")
	}
	return &Add{*w.Path, w.PartitionValues, w.Size, w.ModificationTime, w.DataChange, w.Stats, w.Tags, w.DeletionVector,
		w.BaseRowID, w.RowCommitVersion, w.ClusteringBy}, nil
}

func (w *wireRemove) remove() (*Remove, error) {
	if w.Path == nil || *w.Path == "" {
		return nil, fmt.Errorf("remove without path")
	}
	r := &Remove{*w.Path, w.DeletionTimestamp, w.DataChange, w.ExtendedMetadata, w.PartitionValues, -1, w.DeletionVector,
		w.BaseRowID, w.RowCommitVersion}
	if w.Size != nil {
		r.Size = *w.Size
	}
	return r, nil
}

// readMetadata decodes a metaData action and keeps what it doesn't know.
func readMetadata(data []byte) (*Metadata, error) {
	entries, err := readObject(data)
	if err != nil {
		return nil, fmt.Errorf("metaData: %w", err)
	}
	m := &Metadata{}
	for _, e := range entries {
		err = nil
		switch e.key {
		case "id":
			err = json.Unmarshal(e.value, &m.ID)
		case "name":
			m.hasName = !isNull(e.value)
			err = json.Unmarshal(e.value, &m.Name)
		case "description":
			m.hasDesc = !isNull(e.value)
			err = json.Unmarshal(e.value, &m.Description)
		case "format":
			err = json.Unmarshal(e.value, &m.Format)
		case "schemaString":
			err = json.Unmarshal(e.value, &m.schemaText)
		case "partitionColumns":
			err = json.Unmarshal(e.value, &m.PartitionColumns)
		case "configuration":
			err = json.Unmarshal(e.value, &m.Configuration)
		case "createdTime":
			err = json.Unmarshal(e.value, &m.CreatedTime)
		default:
			m.extra = append(m.extra, e)
		}
		if err != nil {
			return nil, fmt.Errorf("metaData: %s: %w", e.key, err)
		}
	}
	return m, m.parseSchema()
}

func (m *Metadata) parseSchema() (err error) {
	if m.schemaText == "" {
		return fmt.Errorf("metaData without schemaString")
	}
	if m.Schema, err = ParseSchema(m.schemaText); err != nil {
		return fmt.Errorf("metaData: schemaString: %w", err)
	}
	m.schemaRead = m.Schema
	return nil
}

// readCommitInfo decodes the keys that engines agree on; values that should be strings but aren't keep their JSON text.
func readCommitInfo(data []byte) (*CommitInfo, error) {
	entries, err := readObject(data)
	if err != nil {
		return nil, fmt.Errorf("commitInfo: %w", err)
	}
	c := &CommitInfo{ReadVersion: -1, Extra: map[string]json.RawMessage{}}
	for _, e := range entries {
		// Free-form by the specification: a value of another type than usual is kept as it is.
		if c.known(e.key, e.value) != nil {
			c.Extra[e.key] = e.value
		}
	}
	return c, nil
}

func (c *CommitInfo) known(key string, value json.RawMessage) error {
	switch key {
	case "timestamp":
		return json.Unmarshal(value, &c.Timestamp)
	case "inCommitTimestamp":
		return json.Unmarshal(value, &c.InCommitTimestamp)
	case "operation":
		return json.Unmarshal(value, &c.Operation)
	case "operationParameters":
		return readTexts(value, &c.OperationParameters)
	case "operationMetrics":
		return readTexts(value, &c.OperationMetrics)
	case "isBlindAppend":
		return json.Unmarshal(value, &c.IsBlindAppend)
	case "engineInfo":
		return json.Unmarshal(value, &c.EngineInfo)
	case "txnId":
		return json.Unmarshal(value, &c.TxnID)
	case "readVersion":
		return json.Unmarshal(value, &c.ReadVersion)
	case "userMetadata":
		return json.Unmarshal(value, &c.UserMetadata)
	}
	return fmt.Errorf("unknown key")
}

// readTexts reads an object whose values should be strings, as delta-rs doesn't always make them.
func readTexts(data json.RawMessage, out *map[string]string) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*out = make(map[string]string, len(raw))
	for k, v := range raw {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		(*out)[k] = s
	}
	return nil
}

// eachAction calls fn for each line of a log entry. A line that doesn't parse is an error for the whole entry.
func eachAction(data []byte, fn func(action) error) error {
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		a, err := readAction(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := fn(a); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

// Equal says whether two metadata values mean the same table: whatever is written to the log counts, order of properties
// aside.
func (m *Metadata) Equal(o *Metadata) bool {
	return m.ID == o.ID && m.Name == o.Name && m.Description == o.Description &&
		m.Format.Provider == o.Format.Provider && maps.Equal(m.Format.Options, o.Format.Options) &&
		slices.Equal(m.PartitionColumns, o.PartitionColumns) && maps.Equal(m.Configuration, o.Configuration) &&
		m.CreatedTime == o.CreatedTime && m.Schema.Equal(o.Schema)
}
