package delta

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tributary-io/tributary/lake/object"
)

// defaultInterval is the checkpoint interval of tables that this package creates: a sink commits every few seconds, so the
// specification's 10 would rewrite the file list several times a minute.
const defaultInterval = "100"

// creatable are the "delta." properties that a new table may be given: those that ask nothing of this package that it doesn't
// do. Properties that switch on table features not listed here are refused.
var creatable = []string{
	propAppendOnly, propICT, propCheckpointInterval, propLogRetention, propLogCleanup, propTxnRetention, propFileRetention, propVectors, propCheckpointPolicy,
	propStatsAsJSON, propIndexedCols, propStatsColumns, "delta.parquet.compression.codec", "delta.targetFileSize",
	"delta.autoOptimize.autoCompact", "delta.autoOptimize.optimizeWrite", "delta.tuneFileSizesForRewrites", "delta.isolationLevel",
}

// Create makes a new table at version 0, with the protocol that it needs and no more: (1,2) for most. It is an error that wraps
// ErrTableExists if there is one.
func Create(ctx context.Context, store object.Store, spec Spec, opts Options) (*Table, error) {
	t := newTable(store, opts)
	if err := spec.check(); err != nil {
		return nil, t.wrap(err)
	}
	// A table whose first versions were cleaned up has no version 0 that would be in the way.
	if _, err := t.load(ctx); err == nil {
		return nil, t.wrap(ErrTableExists)
	} else if !errors.Is(err, ErrNoTable) {
		return nil, err
	}
	metadata := &Metadata{
		ID: t.opts.NewID(), Name: spec.Name, Description: spec.Description,
		Format: Format{Provider: "parquet"}, Schema: spec.Schema, PartitionColumns: slices.Clone(spec.PartitionColumns),
		Configuration: maps.Clone(spec.Configuration), CreatedTime: t.opts.Now().UnixMilli(),
	}
	if metadata.Configuration == nil {
		metadata.Configuration = map[string]string{}
	}
	if metadata.Configuration[propCheckpointInterval] == "" {
		metadata.Configuration[propCheckpointInterval] = defaultInterval
	}
	if err := t.put0(ctx, metadata); err != nil {
		return nil, err
	}
	return t, nil
}

// put0 lands version 0.
func (t *Table) put0(ctx context.Context, metadata *Metadata) error {
	now := t.opts.Now().UnixMilli()
	info := &CommitInfo{
		Timestamp: now, Operation: "CREATE TABLE", IsBlindAppend: true, EngineInfo: t.opts.Engine, TxnID: t.opts.NewID(), ReadVersion: -1,
		OperationParameters: map[string]string{"partitionBy": quoteList(metadata.PartitionColumns), "description": metadata.Description},
	}
	protocol := required(metadata)
	if metadata.Flag(propICT, false) {
		info.InCommitTimestamp = now
	}
	var w entryWriter
	w.commitInfo(info)
	w.protocol(protocol)
	w.metadata(metadata)
	if w.err != nil {
		return t.wrap(w.err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out, err := t.put(ctx, 0, w.buf, info.TxnID)
	if err != nil {
		return err
	}
	if out.winner != nil {
		return t.wrap(ErrTableExists)
	}
	b := newHeadBuilder(t.store.String())
	if _, err := b.commit(0, w.buf, nil); err != nil {
		return t.wrap(err)
	}
	head, err := b.head()
	if err != nil {
		return err
	}
	t.state.checkpoint, t.state.checksum = -1, -1
	t.setHead(head)
	return nil
}

func quoteList(names []string) string {
	raw, _ := marshalPlain(notNil(names)) // strings always marshal
	return string(raw)
}

// check finds what a table may not be made with.
func (s *Spec) check() error {
	if s.Schema == nil || len(s.Schema.Fields) == 0 {
		return errors.New("a table needs at least one column")
	}
	errs := []error{checkNames("", s.Schema, false)}
	walkFields("", s.Schema, func(path string, f Field) {
		for _, key := range f.Metadata.Keys() {
			if strings.HasPrefix(key, "delta.") || key == "CURRENT_DEFAULT" {
				errs = append(errs, fmt.Errorf("column %s: the metadata key %s is the protocol's own", path, key))
			}
		}
	})
	walkPrimitives("", s.Schema, func(path string, p Primitive) {
		if !p.known() || p == Void {
			errs = append(errs, fmt.Errorf("column %s: type %s can't be written", path, p))
		}
	})
	for i, name := range s.PartitionColumns {
		f, ok := s.Schema.Field(name)
		p, primitive := f.Type.(Primitive)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("partition column %s is not in the schema", name))
		case !primitive || p == Binary:
			errs = append(errs, fmt.Errorf("partition column %s: a column of type %s can't partition a table", name, f.Type))
		case slices.Contains(s.PartitionColumns[:i], name):
			errs = append(errs, fmt.Errorf("partition column %s is named twice", name))
		}
	}
	if len(s.PartitionColumns) == len(s.Schema.Fields) {
		errs = append(errs, errors.New("at least one column must not be a partition column"))
	}
	for _, key := range sortedKeys(s.Configuration) {
		if strings.HasPrefix(key, "delta.") && !slices.Contains(creatable, key) {
			errs = append(errs, fmt.Errorf("the table property %s is not supported", key))
		}
	}
	return errors.Join(errs...)
}
