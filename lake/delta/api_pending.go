package delta

import (
	"context"
	"iter"
	"math/big"
	"time"

	"github.com/tributary-io/tributary/lake/object"
)

type state struct{}
type maintenance struct{}

func Create(ctx context.Context, store object.Store, spec Spec, opts Options) (*Table, error) {
	panic("x")
}

// Refresh reads the commits that were made since the Head and returns the newest version.
func (t *Table) Refresh(ctx context.Context) (*Head, error) { panic("x") }

// Commit lands c on the newest version ...
func (t *Table) Commit(ctx context.Context, c Commit) (Landed, error) { panic("x") }

// Maintain ... off the commit path; call it after commits, from one goroutine.
func (t *Table) Maintain(ctx context.Context) error { panic("x") }

// Snapshot is a version with its files.
type Snapshot struct{ Head *Head }

// Snapshot refreshes and returns the newest version with its file list.
func (t *Table) Snapshot(ctx context.Context) (*Snapshot, error) { panic("x") }

// SnapshotAt is Snapshot for an older version that the log still holds.
func (t *Table) SnapshotAt(ctx context.Context, version int64) (*Snapshot, error) { panic("x") }

// Files streams the live files.
func (s *Snapshot) Files(ctx context.Context) iter.Seq2[Add, error] { panic("x") }

// HistoryEntry is one commit of the log.
type HistoryEntry struct {
	Version         int64
	Modified        time.Time
	Info            *CommitInfo
	Txns            []Txn
	Adds, Removes   int
	MetadataChanged bool
}

// History streams the commits that the log still holds, newest first.
func (t *Table) History(ctx context.Context) iter.Seq2[HistoryEntry, error] { panic("x") }

// CheckWrite refuses ...
func (h *Head) CheckWrite() error { panic("x") }

// Evolve returns old extended by what wanted has more: columns added (nullable) at any depth, comments and field metadata of
// wanted set over old's. Foreign metadata keys and columns of old that wanted lacks stay. It returns old itself if equal.
func Evolve(old, wanted *StructType) (*StructType, error) { panic("x") }

func ParseSchema(text string) (*StructType, error) { panic("x") }

// MarshalJSON
func (s *StructType) MarshalJSON() ([]byte, error) { panic("x") }

// StatsColumns: leaves that need statistics under md's properties (dataSkippingNumIndexedCols, dataSkippingStatsColumns), physical order; partition columns excluded
func StatsColumns(md *Metadata) []StatsColumn                           { panic("x") }
func (s *FileStats) AppendJSON(dst []byte) []byte                       { panic("x") }
func AppendIntStat(dst []byte, v int64) []byte                          { panic("x") }
func AppendFloatStat(dst []byte, v float64, bits int, max bool) []byte  { panic("x") }
func AppendDecimalStat(dst []byte, unscaled *big.Int, scale int) []byte { panic("x") }
func AppendDateStat(dst []byte, days int32) []byte                      { panic("x") }
func AppendTimestampStat(dst []byte, micros int64, utc bool) []byte     { panic("x") }

// min: truncated prefix, max: with tie breaker; ok=false: leave out
func AppendStringMinStat(dst []byte, s string) []byte                { panic("x") }
func AppendStringMaxStat(dst []byte, s string) (out []byte, ok bool) { panic("x") }

// Partition values
func PartitionInt(v int64) *string                          { panic("x") }
func PartitionFloat(v float64, bits int) *string            { panic("x") }
func PartitionBool(v bool) *string                          { panic("x") }
func PartitionDate(days int32) *string                      { panic("x") }
func PartitionTimestamp(micros int64, utc bool) *string     { panic("x") }
func PartitionDecimal(unscaled *big.Int, scale int) *string { panic("x") }
func PartitionString(s string) (*string, error)             { panic("x") }
func PartitionBinary(b []byte) (*string, error)             { panic("x") }

// NewDataFileName returns a fresh flat ASCII name for a data file.
func NewDataFileName(codec string) string { panic("x") }
