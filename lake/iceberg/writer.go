package iceberg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/sink"
)

// writer writes one table for one instance. It implements sink.Writer.
type writer struct {
	sink   *tableSink
	env    sink.Env
	log    *slog.Logger
	cat    catalog.Catalog
	table  *table.Table // the newest version that this writer has seen
	id     uuid.UUID    // of the table that was opened
	schema *icebergo.Schema

	// free holds emptied builders, whose memory the next batches use. The garbage collector takes those of an idle sink.
	free sync.Pool
}

func openWriter(ctx context.Context, s *tableSink, env sink.Env) (*writer, error) {
	if env.Logger == nil {
		env.Logger = slog.New(slog.DiscardHandler)
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	w := &writer{sink: s, env: env, log: env.Logger.With("sink", env.Name, "table", s.name), schema: newSchema(s.layout.Schema.Fields)}
	cat, err := s.catalog.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", s.name, err)
	}
	w.cat = cat
	if err := w.open(ctx); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// open loads the table, or makes it, and publishes what the sink declares.
func (w *writer) open(ctx context.Context) error {
	t, err := w.cat.LoadTable(ctx, w.sink.ident)
	if errors.Is(err, catalog.ErrNoSuchTable) || errors.Is(err, catalog.ErrNoSuchNamespace) {
		t, err = w.create(ctx)
	}
	if err != nil {
		return w.refused(err)
	}
	w.table, w.id = t, t.Metadata().TableUUID()
	if err := w.checkFormat(); err != nil {
		return err
	}
	w.warnOtherPartitions()
	return w.publish(ctx)
}

// create makes namespace and table. Another instance may do so at the same time: then its table is taken.
func (w *writer) create(ctx context.Context) (*table.Table, error) {
	namespace := catalog.NamespaceFromIdent(w.sink.ident)
	if ok, err := w.cat.CheckNamespaceExists(ctx, namespace); err != nil || !ok {
		if err := w.cat.CreateNamespace(ctx, namespace, nil); err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
			return nil, fmt.Errorf("make namespace: %w", err)
		}
	}
	spec, err := partitionSpec(w.schema, w.sink.partitions)
	if err != nil {
		return nil, err
	}
	opts := []catalog.CreateTableOpt{catalog.WithPartitionSpec(spec), catalog.WithProperties(w.sink.tableProperties(w.sink.layout))}
	if w.sink.opts.location != "" {
		opts = append(opts, catalog.WithLocation(w.sink.opts.location))
	}
	t, err := w.cat.CreateTable(ctx, w.sink.ident, w.schema, opts...)
	if err == nil {
		w.log.Info("made the table", "location", t.Location())
		return t, nil
	}
	if there, loadErr := w.cat.LoadTable(ctx, w.sink.ident); loadErr == nil {
		return there, nil
	}
	return nil, fmt.Errorf("make the table: %w", err)
}

// checkFormat refuses tables of a format that asks more of a writer than this one does: version 3 wants ids of rows. And those with partitions that it can't write
// so that others can read them.
func (w *writer) checkFormat() error {
	if v := w.table.Metadata().Version(); v > 2 {
		return &sink.RefusedError{Table: w.sink.name, Reason: fmt.Sprintf("it has format version %d, and this writer knows versions 1 and 2", v),
			Advice: "land the stream in a table of format version 2"}
	}
	return w.checkPartitions()
}

// warnOtherPartitions tells that the table is partitioned otherwise than declared: its own way counts.
func (w *writer) warnOtherPartitions() {
	declared, err := partitionSpec(w.table.Schema(), w.sink.partitions)
	spec := w.table.Spec()
	if err == nil && !spec.CompatibleWith(declared) {
		w.log.Warn("the table is partitioned otherwise than the sink declares; rows are landed as the table wants them", "table_has", spec.String(), "sink_declares", declared.String())
	}
}

// refused turns what only a person can mend into a *sink.RefusedError; other errors are named and stay as they are.
func (w *writer) refused(err error) error {
	var refused *sink.RefusedError
	var fenced *sink.FencedError
	var c *change
	switch {
	case errors.As(err, &refused), errors.As(err, &fenced):
		return err
	case errors.As(err, &c):
		return &sink.RefusedError{Table: w.sink.name, Reason: c.Error(), Advice: "land the stream in a new table, or keep the column as the table has it"}
	case w.table != nil && (errors.Is(err, catalog.ErrNoSuchTable) || errors.Is(err, catalog.ErrNoSuchNamespace)):
		return &sink.RefusedError{Table: w.sink.name, Reason: "it has been dropped from the catalog",
			Advice: "restart the sink once the table's owner has settled what becomes of the rows"}
	}
	return fmt.Errorf("table %s: %w", w.sink.name, err)
}

// refresh reads the newest version of the table.
func (w *writer) refresh(ctx context.Context) error {
	t, err := w.cat.LoadTable(ctx, w.sink.ident)
	if err != nil {
		return err
	}
	if id := t.Metadata().TableUUID(); id != w.id {
		return &sink.RefusedError{Table: w.sink.name, Reason: fmt.Sprintf("another table (%s) has taken the place of the one that was opened (%s)", id, w.id),
			Advice: "restart the sink once the table's owner has settled what becomes of the rows"}
	}
	w.table = t
	return w.checkFormat()
}

// Progress implements sink.Writer.
func (w *writer) Progress(ctx context.Context, parts []sink.Partition) (map[sink.Partition]int64, error) {
	if err := w.refresh(ctx); err != nil {
		return nil, w.refused(err)
	}
	properties := w.table.Properties()
	out := make(map[sink.Partition]int64, len(parts))
	for _, p := range parts {
		next, err := w.offset(properties, p)
		if err != nil {
			return nil, err
		}
		if out[p] = next; next == sink.NoOffset {
			w.warnOtherTopic(properties, p)
		}
	}
	return out, nil
}

// NewBatch implements sink.Writer.
func (w *writer) NewBatch() sink.Batch {
	if b, ok := w.free.Get().(*columns.Builder); ok {
		return &batch{w: w, b: b}
	}
	return &batch{w: w, b: columns.NewBuilder(w.sink.layout.Schema)}
}

// Close implements sink.Writer.
func (w *writer) Close() error {
	if c, ok := w.cat.(catalog.Closer); ok {
		return c.Close()
	}
	return nil
}
