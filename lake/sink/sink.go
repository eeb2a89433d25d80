package sink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"
)

// Sink is a table that a stream can end in: what ToLake takes, made by lake.Delta and its like.
type Sink interface {
	// String names format and place for people, such as "delta:/data/curated/orders".
	String() string
	// Bind checks at Build, without I/O, that rows can be made of the stream's Go types. The types given are those of K and V.
	// It returns every problem found, naming the field.
	Bind(key, value reflect.Type) error
	// Open opens or creates the table. It is called once an instance and sink.
	Open(ctx context.Context, env Env) (Writer, error)
}

// Checker is a Sink with a rule of its own about rows, beside what its columns can hold. The harness asks it, so that a test shows the
// rejects that production has.
type Checker interface {
	Sink
	// CheckRow returns a *RowError for a row that the sink's batches would reject by that rule. Arguments are those of Batch.Append.
	CheckRow(key, value any, meta *Meta) error
}

// Truncater is a Sink whose table can be emptied, and made to forget how far its inputs have landed, in one step: for an application that is to
// land everything anew.
type Truncater interface {
	Sink
	// Truncate does that, or without execute says what it would do and changes nothing. inputs are the topics that the sink reads. What was done
	// already is not done again. Writers that still have the table open are fenced.
	// Errors: *RefusedError if this table may not be emptied; any other error leaves the table as it was or emptied, never in between. (Where progress is kept
	// for each partition apart, that holds for each.)
	Truncate(ctx context.Context, env Env, inputs []string, execute bool) (Truncation, error)
}

// Truncation is what emptying a table means, or has meant.
type Truncation struct {
	Version    int64 // the table's: -1 if there is none
	Files      int   // that it loses; the objects stay until a vacuum deletes them
	Rows       int64 // -1 if the table doesn't say
	Bytes      int64 // of the files
	Partitions int   // whose progress it forgets
	Changed    bool  // false: there is nothing to empty or to forget
}

// Env is what the process gives a sink.
type Env struct {
	ApplicationID string // of the topology
	Name          string // the sink's name in the topology; part of its progress keys
	Logger        *slog.Logger
	Now           func() time.Time // wall clock
}

// Partition names one input partition of a sink. It is the unit of progress.
type Partition struct {
	Topic     string
	TopicID   [16]byte // Kafka's topic id: a topic made anew under the same name is another input
	Partition int32
}

func (p Partition) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// NoOffset stands for "the table has no progress for this partition".
const NoOffset int64 = -1

// Move says that a batch takes a partition's progress from From (NoOffset: none yet) to To. Both are next offsets to read:
// consumer positions, past markers, aborted, filtered, tombstone and dead-lettered records.
type Move struct {
	Partition Partition
	From, To  int64
	Gap       Gap // the first offsets of the move, if they were never read
}

// Gap is a range of offsets, To exclusive, that a sink's input was never read at, and why. The zero value is no gap. As part of a Move
// it begins where the move does (at 0 where the table had no progress).
type Gap struct {
	From, To int64
	Reason   string // one of the Gap… constants, or a person's words
}

// Reasons of gaps that the engine tells of.
const (
	GapRetention = "retention" // the log starts behind them
	GapStart     = "start"     // the application was told to begin behind them
)

// Empty reports whether there is no gap.
func (g Gap) Empty() bool { return g.To <= g.From }

// Meta describes where a row came from. For a row behind an internal topic these are the coordinates of the record that
// entered the topology, as the internal topic carries them in headers.
type Meta struct {
	Topic     string
	Partition int32
	Offset    int64
	Timestamp int64 // ms; the record's event time as the topology sees it
	// BrokerTimestamp is the record's timestamp in the source topic in ms (the append time where the topic is LogAppendTime).
	BrokerTimestamp int64
	Headers         []Header
	// Input is the record that the sink's own task read: what moves speak of. It differs from the coordinates above behind an
	// internal topic only. The topic's id is not given.
	InputTopic     string
	InputPartition int32
	InputOffset    int64
}

// Header is one record header.
type Header struct {
	Key   string
	Value []byte
}

// Writer writes one table. Its methods are called by one goroutine at a time, except that rows may be appended to a Batch
// while an earlier Batch is being committed.
type Writer interface {
	// Progress returns the next offset to read for each of the partitions, NoOffset where the table has none.
	// It reads the table anew.
	Progress(ctx context.Context, parts []Partition) (map[Partition]int64, error)
	// NewBatch starts an empty batch.
	NewBatch() Batch
	// Commit lands b's rows and moves all at once, or nothing at all. A batch may be empty: then only progress moves.
	// Errors: *FencedError if the table's progress is not what the moves start from (drop the batch, call Progress, seek);
	// *RefusedError if the table can't be written by this process as it is now (a person must act); any other error leaves
	// nothing landed, and the same call may be made again: unknown outcomes are settled before Commit returns.
	Commit(ctx context.Context, b Batch, moves []Move) (Commit, error)
	// Close releases what the writer holds. Batches not committed are lost, and will be read again.
	Close() error
}

// Batch collects rows for one commit.
type Batch interface {
	// Append adds one row. key and value are *K and *V of the bound types (nil for a Kafka null) and are not kept.
	// A *RowError says that this row can't be stored; the batch is as before the call.
	Append(key, value any, meta *Meta) error
	// Rows and Bytes tell the batch's size so far; Bytes estimates its memory.
	Rows() int
	Bytes() int64
	// Release frees the batch without committing it.
	Release()
}

// Commit describes a landed batch.
type Commit struct {
	Version  int64 // the table's version
	Rows     int64
	Files    int
	Bytes    int64 // of data files
	Attempts int   // 1 if no race was lost
	Took     time.Duration
}

// FencedError says that another writer has moved a partition's progress: this writer's batch is stale.
type FencedError struct {
	Table     string
	Partition Partition
	Want, Got int64 // the progress the batch started from, and what the table says
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("table %s: progress of %s is %d, but this batch starts at %d: another writer owns the partition",
		e.Table, e.Partition, e.Got, e.Want)
}

// RefusedError says why a table can't be written and what to do.
type RefusedError struct {
	Table  string
	Reason string
	Advice string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("table %s: %s; %s", e.Table, e.Reason, e.Advice)
}

// RowError says why one row can't be stored. The row belongs into the dead letters.
type RowError struct {
	Field string // path of the field; empty for the whole row
	Err   error
}

func (e *RowError) Error() string {
	if e.Field == "" {
		return e.Err.Error()
	}
	return "field " + e.Field + ": " + e.Err.Error()
}

func (e *RowError) Unwrap() error { return e.Err }

// NotYetError says that a row can't be stored for now, through no fault of its own: something that its making takes, such as a schema in a
// registry, is awaited. The batch is as before the call. The record is offered again later, and may not be skipped.
type NotYetError struct{ Err error }

func (e *NotYetError) Error() string { return "not yet: " + e.Err.Error() }

func (e *NotYetError) Unwrap() error { return e.Err }

// IsFenced reports whether err is a *FencedError.
func IsFenced(err error) bool {
	var f *FencedError
	return errors.As(err, &f)
}
