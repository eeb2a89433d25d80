package delta

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/tributary-io/tributary/lake/object"
)

// errCheckpoint says that a checkpoint can't be used: the reader falls back to an older one and the commits after it.
var errCheckpoint = errors.New("damaged or incomplete checkpoint")

// part says which actions of a checkpoint are wanted. Reading all but the files costs next to nothing, however many files the
// table has.
type part int

const (
	headActions part = 1 << iota // protocol, metaData, txn, domainMetadata
	fileActions                  // add and remove
)

// headColumns and fileColumns are the checkpoint's top-level columns.
var (
	headColumns = []string{"protocol", "metaData", "txn", "domainMetadata", "sidecar", "checkpointMetadata"}
	fileColumns = []string{"add", "remove", "sidecar"}
)

// readCheckpoint calls fn for the wanted actions of a checkpoint of any kind, sidecars included. Errors that lie in the
// checkpoint wrap errCheckpoint; those of the store and of fn don't.
func readCheckpoint(ctx context.Context, store object.Store, c *checkpoint, want part, fn func(*action) error) error {
	var sidecars []Sidecar
	collect := func(a *action) error {
		if a.sidecar != nil {
			sidecars = append(sidecars, *a.sidecar)
			return nil
		}
		return fn(a)
	}
	for _, f := range c.files {
		if err := readCheckpointFile(ctx, store, f, want, collect); err != nil {
			return err
		}
	}
	if want&fileActions == 0 {
		return nil
	}
	for _, s := range sidecars {
		name, err := s.name()
		if err != nil {
			return fmt.Errorf("%w: %s: sidecar: %w", errCheckpoint, c, err)
		}
		if err := readParquetCheckpoint(ctx, store, name, s.SizeInBytes, fileActions, fn); err != nil {
			return err
		}
	}
	return nil
}

// name is the sidecar's name in the table's store.
func (s *Sidecar) name() (string, error) {
	name, err := (&Add{Path: s.Path}).Name()
	return sidecarDir + name, err
}

// readCheckpointFile reads one file of a checkpoint, without following sidecars.
func readCheckpointFile(ctx context.Context, store object.Store, f logFile, want part, fn func(*action) error) error {
	if strings.HasSuffix(f.name, ".json") {
		return readJSONCheckpoint(ctx, store, f.name, want, fn)
	}
	return readParquetCheckpoint(ctx, store, f.name, f.size, want, fn)
}

func readJSONCheckpoint(ctx context.Context, store object.Store, name string, want part, fn func(*action) error) error {
	data, err := store.Get(ctx, name)
	if err != nil {
		return checkpointGone(err, name)
	}
	var stop error // fn's own error, which doesn't speak against the checkpoint
	err = eachAction(data, func(a action) error {
		if a.sidecar != nil || a.isFile() && want&fileActions != 0 || !a.isFile() && want&headActions != 0 {
			stop = fn(&a)
		}
		return stop
	})
	if err != nil && stop == nil {
		return fmt.Errorf("%w: %s: %w", errCheckpoint, name, err)
	}
	return stop
}

func (a *action) isFile() bool { return a.add != nil || a.remove != nil }

// checkpointGone makes a file that vanished (another process cleans the log) a reason to fall back, too.
func checkpointGone(err error, name string) error {
	if errors.Is(err, object.ErrNotFound) {
		return fmt.Errorf("%w: %s: %w", errCheckpoint, name, err)
	}
	return fmt.Errorf("read checkpoint %s: %w", name, err)
}

func readParquetCheckpoint(ctx context.Context, store object.Store, name string, size int64, want part, fn func(*action) error) error {
	source, err := object.OpenReader(ctx, store, name, size)
	if err != nil {
		return checkpointGone(err, name)
	}
	err = scanCheckpoint(ctx, source, want, fn)
	switch {
	case err == nil || source.Err() != nil:
		return errors.Join(err, source.Err())
	case errors.Is(err, errStop):
		return errors.Unwrap(err)
	}
	return fmt.Errorf("%w: %s: %w", errCheckpoint, name, err)
}

// errStop marks errors of the callback.
var errStop = errors.New("")

type stopError struct{ err error }

func (e *stopError) Error() string        { return e.err.Error() }
func (e *stopError) Unwrap() error        { return e.err }
func (e *stopError) Is(target error) bool { return target == errStop }

// scanCheckpoint decodes a Parquet file of actions. The Parquet library panics on some damaged files; that is damage, too.
func scanCheckpoint(ctx context.Context, source parquet.ReaderAtSeeker, want part, fn func(*action) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("parquet: %v", p)
		}
	}()
	reader, err := file.NewParquetReader(source)
	if err != nil {
		return err
	}
	defer reader.Close()
	columns := wantedColumns(reader, want)
	if len(columns) == 0 {
		return nil
	}
	if err := checkFooter(reader, columns); err != nil {
		return err
	}
	arrowReader, err := pqarrow.NewFileReader(reader, pqarrow.ArrowReadProperties{BatchSize: 4096}, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	rows, err := arrowReader.GetRecordReader(ctx, columns, nil)
	if err != nil {
		return err
	}
	defer rows.Release()
	var read int64
	for rows.Next() {
		read += rows.RecordBatch().NumRows()
		if err := decodeActions(rows.RecordBatch(), fn); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if read != reader.NumRows() {
		return fmt.Errorf("it holds %d rows, not %d as its footer says", read, reader.NumRows())
	}
	return nil
}

// checkFooter sees that all column chunks lie within the file. The Parquet library allocates what the footer says before it
// reads, and does so in goroutines of its own, where its panics could not be caught.
func checkFooter(reader *file.Reader, columns []int) error {
	meta := reader.MetaData()
	size := meta.GetSourceFileSize()
	var rows int64
	for g := range meta.NumRowGroups() {
		group := meta.RowGroup(g)
		if group.NumRows() < 0 || group.NumColumns() != meta.Schema.NumColumns() {
			return fmt.Errorf("row group %d has %d rows and %d columns", g, group.NumRows(), group.NumColumns())
		}
		rows += group.NumRows()
		for _, c := range columns {
			chunk, err := group.ColumnChunk(c)
			if err != nil {
				return err
			}
			start := chunk.DataPageOffset()
			if chunk.HasDictionaryPage() && chunk.DictionaryPageOffset() > 0 {
				start = min(start, chunk.DictionaryPageOffset())
			}
			length := chunk.TotalCompressedSize()
			if start < 0 || length < 0 || start > size || length > size-start || chunk.NumValues() < 0 {
				return fmt.Errorf("row group %d, column %d: %d bytes at %d don't lie within the file's %d", g, c, length, start, size)
			}
		}
	}
	if rows != reader.NumRows() {
		return fmt.Errorf("its row groups have %d rows, not %d as its footer says", rows, reader.NumRows())
	}
	return nil
}

// wantedColumns returns the leaf columns to read. Statistics come as JSON where the checkpoint has them so, else as structs.
func wantedColumns(reader *file.Reader, want part) (columns []int) {
	schema := reader.MetaData().Schema
	top := map[string]bool{}
	if want&headActions != 0 {
		for _, c := range headColumns {
			top[c] = true
		}
	}
	if want&fileActions != 0 {
		for _, c := range fileColumns {
			top[c] = true
		}
	}
	jsonStats := schema.ColumnIndexByName("add.stats") >= 0
	for i := range schema.NumColumns() {
		path := schema.Column(i).ColumnPath()
		if !top[path[0]] || len(path) > 1 && path[0] == "add" &&
			(path[1] == "partitionValues_parsed" || path[1] == "stats_parsed" && jsonStats) {
			continue
		}
		columns = append(columns, i)
	}
	return columns
}
