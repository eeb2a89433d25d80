package delta

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// UnsupportedError says which demands of a table this package can't meet, and what to do.
type UnsupportedError struct {
	Table    string
	Verb     string   // "read" or "write"
	Features []string // table features, protocol versions or constraints, by name, with the column where there is one
	Advice   string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("table %s: can't %s it: it uses %s; %s", e.Table, e.Verb, strings.Join(e.Features, ", "), e.Advice)
}

// Newest protocol versions: from there on, features are listed by name.
const (
	featureReader = 3
	featureWriter = 7
)

// Table features that need a mention in code.
const (
	featureAppendOnly   = "appendOnly"
	featureInvariants   = "invariants"
	featureTimestampNTZ = "timestampNtz"
	featureICT          = "inCommitTimestamp"
	featureVectors      = "deletionVectors"
	featureV2           = "v2Checkpoint"
	featureMapping      = "columnMapping"
)

// Table properties (PROTOCOL.md and the reference implementation).
const (
	propAppendOnly         = "delta.appendOnly"
	propICT                = "delta.enableInCommitTimestamps"
	propCheckpointInterval = "delta.checkpointInterval"
	propLogRetention       = "delta.logRetentionDuration"
	propLogCleanup         = "delta.enableExpiredLogCleanup"
	propChangeFeed         = "delta.enableChangeDataFeed"
	propVectors            = "delta.enableDeletionVectors"
	propTxnRetention       = "delta.setTransactionRetentionDuration"
	propFileRetention      = "delta.deletedFileRetentionDuration"
	propStatsAsJSON        = "delta.checkpoint.writeStatsAsJson"
	propStatsAsStruct      = "delta.checkpoint.writeStatsAsStruct"
	propCheckpointPolicy   = "delta.checkpointPolicy"
	propColumnMapping      = "delta.columnMapping.mode"
	propIndexedCols        = "delta.dataSkippingNumIndexedCols"
	propStatsColumns       = "delta.dataSkippingStatsColumns"
	prefixConstraint       = "delta.constraints."
)

// policyV2 is the value of delta.checkpointPolicy that asks for V2 checkpoints.
const policyV2 = "v2"

// readable are the reader features under which the log still means what this package takes it to mean. (Whether the data
// files can be read is another matter, and not this package's.)
var readable = []string{
	"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "typeWidening", "typeWidening-preview", "variantType",
	"variantType-preview", "variantShredding", "variantShredding-preview", "vacuumProtocolCheck", "materializePartitionColumns",
}

// writable are the writer features that an append by this package honours. checkConstraints, generatedColumns,
// identityColumns and allowColumnDefaults are harmless by themselves; what they allow is refused where it is used (see
// constraints). changeDataFeed asks nothing of an append. Domain metadata is kept by leaving it alone.
var writable = []string{
	featureAppendOnly, featureInvariants, featureTimestampNTZ, featureICT, featureVectors, "domainMetadata", featureV2,
	"vacuumProtocolCheck", "changeDataFeed", "checkConstraints", "generatedColumns", "identityColumns", "allowColumnDefaults",
	featureMapping, "typeWidening", "typeWidening-preview",
}

// checkRead returns the demands on readers that this package can't meet.
func (p Protocol) checkRead() []string {
	if p.MinReaderVersion > featureReader {
		return []string{"reader version " + strconv.Itoa(p.MinReaderVersion)}
	}
	return unknown("table feature ", p.ReaderFeatures, readable)
}

// checkWrite returns the demands on writers that this package can't meet.
func (p Protocol) checkWrite() []string {
	if p.MinWriterVersion > featureWriter {
		return []string{"writer version " + strconv.Itoa(p.MinWriterVersion)}
	}
	return unknown("table feature ", p.WriterFeatures, writable)
}

func unknown(prefix string, features, known []string) (out []string) {
	for _, f := range features {
		if !slices.Contains(known, f) {
			out = append(out, prefix+f)
		}
	}
	return out
}

// constraints returns what metadata demands of every row that this package can't check or compute. Whether the protocol has
// the feature doesn't matter, but for generated and identity columns, which older protocols don't enforce.
func (h *Head) constraints() (out []string) {
	for _, key := range sortedKeys(h.Metadata.Configuration) {
		if strings.HasPrefix(key, prefixConstraint) {
			out = append(out, fmt.Sprintf("CHECK constraint %s (%s)", key[len(prefixConstraint):], h.Metadata.Configuration[key]))
		}
	}
	if mode := strings.ToLower(h.Metadata.Configuration[propColumnMapping]); mode != "" && mode != MappingNone &&
		(h.Metadata.ColumnMapping() == MappingNone || !h.Protocol.enforces(featureMapping, 5)) {
		out = append(out, "column mapping mode "+mode+", which is unknown or not in its protocol")
	}
	walkFields("", h.Metadata.Schema, func(path string, f Field) {
		for _, key := range f.Metadata.Keys() {
			switch {
			case key == "delta.invariants":
				out = append(out, "invariant on column "+path+" ("+f.Metadata.Text(key)+")")
			case key == "delta.generationExpression" && h.Protocol.enforces("generatedColumns", 4):
				out = append(out, "generated column "+path+" ("+f.Metadata.Text(key)+")")
			case key == "delta.identity.start" && h.Protocol.enforces("identityColumns", 6):
				out = append(out, "identity column "+path)
			case key == "CURRENT_DEFAULT" && h.Protocol.enforces("allowColumnDefaults", featureWriter):
				out = append(out, "default of column "+path+" ("+f.Metadata.Text(key)+")")
			}
		}
	})
	walkPrimitives("", h.Metadata.Schema, func(path string, p Primitive) {
		if !p.known() {
			out = append(out, "type "+string(p)+" of column "+path)
		}
	})
	return append(append(out, voidShapes(h.Metadata.Schema)...), h.unknownChanges()...)
}

// known says whether a writer can make values of the type.
func (p Primitive) known() bool {
	switch p {
	case String, Long, Integer, Short, Byte, Float, Double, Boolean, Binary, Date, Timestamp, TimestampNTZ, Void:
		return true
	}
	_, _, ok := p.DecimalParts()
	return ok
}

// enforces says whether a writer must honour a feature: by name at writer version 7, by version below.
func (p Protocol) enforces(feature string, since int) bool {
	if p.MinWriterVersion >= featureWriter {
		return slices.Contains(p.WriterFeatures, feature)
	}
	return p.MinWriterVersion >= since
}

// CheckWrite returns an *UnsupportedError that names everything in the table's protocol, properties and columns that forbids
// this package to append to it; nil if it may.
func (h *Head) CheckWrite() error {
	if bad := append(h.Protocol.checkWrite(), h.constraints()...); len(bad) > 0 {
		return &UnsupportedError{h.table, "write", bad,
			"drop these from the table, write it with an engine that has them, or land the stream in a new table"}
	}
	return nil
}

// checkRead is CheckWrite's counterpart for readers.
func (h *Head) checkRead() error {
	bad := append(h.Protocol.checkRead(), h.unknownChanges()...)
	if mode := h.Metadata.Configuration[propColumnMapping]; mode != "" && !h.mapsColumns(mode) {
		bad = append(bad, "column mapping mode "+mode+", which is unknown or not in its protocol")
	}
	if len(bad) > 0 {
		return &UnsupportedError{h.table, "read", bad, "read it with an engine that has them"}
	}
	return nil
}

// mapsColumns reports whether the protocol has column mapping, and the mode is one.
func (h *Head) mapsColumns(mode string) bool {
	if strings.EqualFold(mode, MappingNone) {
		return true
	}
	has := h.Protocol.MinReaderVersion == 2 || h.Protocol.MinReaderVersion >= featureReader && slices.Contains(h.Protocol.ReaderFeatures, featureMapping)
	return has && h.Metadata.ColumnMapping() != MappingNone
}

// required returns the protocol that metadata needs, and no more: (1,2) for plain tables (PROTOCOL.md, "Writer Version
// Requirements").
func required(m *Metadata) Protocol {
	var reader, writer []string
	if hasType(m.Schema, TimestampNTZ) {
		reader = append(reader, featureTimestampNTZ)
		writer = append(writer, featureTimestampNTZ)
	}
	if m.Flag(propICT, false) {
		writer = append(writer, featureICT)
	}
	if m.Flag(propVectors, false) {
		reader = append(reader, featureVectors)
		writer = append(writer, featureVectors)
	}
	if m.Configuration[propCheckpointPolicy] == policyV2 {
		reader = append(reader, featureV2)
		writer = append(writer, featureV2)
	}
	if len(writer) == 0 {
		return Protocol{MinReaderVersion: 1, MinWriterVersion: 2}
	}
	// At writer version 7 nothing is implied any more.
	if m.Configuration[propAppendOnly] != "" {
		writer = append(writer, featureAppendOnly)
	}
	if hasNotNull(m.Schema) {
		writer = append(writer, featureInvariants)
	}
	slices.Sort(writer)
	slices.Sort(reader)
	p := Protocol{MinReaderVersion: 1, MinWriterVersion: featureWriter, WriterFeatures: writer}
	if len(reader) > 0 {
		p.MinReaderVersion, p.ReaderFeatures = featureReader, reader
	}
	return p
}

func hasNotNull(s *StructType) (found bool) {
	walkFields("", s, func(_ string, f Field) { found = found || !f.Nullable })
	return found
}

// lacking returns the features that metadata needs and the table's protocol doesn't have. The protocol is never upgraded
// silently: other writers and readers of the table would be shut out.
func (p Protocol) lacking(m *Metadata) (out []string) {
	need := required(m)
	if need.MinWriterVersion < featureWriter {
		return nil // (1,2) is in every protocol that CheckWrite lets pass, and names its features where it doesn't imply them
	}
	for _, f := range need.WriterFeatures {
		implied := (f == featureAppendOnly || f == featureInvariants) && p.MinWriterVersion >= 2
		if !(implied && p.MinWriterVersion < featureWriter) && !slices.Contains(p.WriterFeatures, f) {
			out = append(out, "table feature "+f)
		}
	}
	return out
}
