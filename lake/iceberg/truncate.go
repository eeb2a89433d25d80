package iceberg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/sink"
)

// maxTruncations bounds the tries of an emptying. Each is lost to another writer's commit, and nobody should write the table now, or to a fault.
const maxTruncations = 20

// Truncate implements sink.Truncater: one commit of the catalog has a snapshot without files, and takes the sink's progress out of the table's properties. There is always a
// snapshot, also of an empty table: only so is a batch that was made before refused.
func (s *tableSink) Truncate(ctx context.Context, env sink.Env, _ []string, execute bool) (out sink.Truncation, err error) {
	w := &writer{sink: s, env: env, log: env.Logger}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if w.env.Now == nil {
		w.env.Now = time.Now
	}
	if w.cat, err = s.catalog.open(ctx); err != nil {
		return out, fmt.Errorf("table %s: %w", s.name, err)
	}
	defer w.Close()
	w.table, err = w.cat.LoadTable(ctx, s.ident)
	if errors.Is(err, catalog.ErrNoSuchTable) || errors.Is(err, catalog.ErrNoSuchNamespace) {
		return sink.Truncation{Version: -1}, nil
	}
	if err != nil {
		return out, fmt.Errorf("table %s: %w", s.name, err)
	}
	w.id = w.table.Metadata().TableUUID()
	if err := w.checkFormat(); err != nil {
		return out, err
	}
	for try := 1; ; try++ {
		now, err := w.truncate(ctx, execute)
		out.Changed = out.Changed || now.Changed
		switch {
		case err == nil:
			now.Changed = out.Changed
			return now, nil
		case !isLost(err) && !isDoubtful(err):
			return out, w.refused(err)
		case try == maxTruncations:
			return out, w.refused(fmt.Errorf("given up after %d tries to empty it: %w", try, err))
		}
		if err := pause(ctx, try); err != nil {
			return out, err
		}
		if err := w.refresh(ctx); err != nil { // where the outcome was in doubt this tells: then there is nothing left to do
			return out, w.refused(err)
		}
	}
}

// truncate empties the version that the writer has seen, if nobody comes in between.
func (w *writer) truncate(ctx context.Context, execute bool) (out sink.Truncation, err error) {
	out.Version = version(w.table)
	own, err := w.ownProgress()
	if err != nil {
		return out, err
	}
	files, err := w.liveFiles(ctx)
	if err != nil {
		return out, err
	}
	for _, f := range files {
		out.Files, out.Rows, out.Bytes = out.Files+1, out.Rows+f.Count(), out.Bytes+f.FileSizeBytes()
	}
	out.Partitions = len(own)
	if out.Changed = len(files)+len(own) > 0; !execute || !out.Changed {
		return out, nil
	}
	fsys, err := w.files(ctx)
	if err != nil {
		return out, err
	}
	manifests := &recorder{WriteFileIO: fsys}
	stage := w.stage(func(context.Context) (iceio.IO, error) { return manifests, nil })
	tx, err := w.emptying(ctx, stage.table, files, own)
	if err != nil {
		return out, err
	}
	t, err := tx.Commit(ctx)
	if err != nil {
		if err = stage.outcome(err); !isDoubtful(err) {
			if _, err := manifests.remove(); err != nil {
				w.log.Warn("some manifests of a refused commit could not be removed; they are orphans", "error", err)
			}
		}
		return out, err
	}
	w.table = w.adopt(t)
	out.Version = version(t)
	return out, nil
}

// ownProgress lists the properties with the sink's progress. Those of others are a reason to refuse: their rows would go without coming again.
func (w *writer) ownProgress() (own []string, err error) {
	var others []string
	for key, value := range w.table.Properties() {
		if !strings.HasPrefix(key, progressPrefix) {
			continue
		}
		if p, ok := parseProgress(key, value); ok && p.Application == w.env.ApplicationID && p.Sink == w.env.Name {
			own = append(own, key)
			continue
		}
		others = append(others, strings.TrimPrefix(key, progressPrefix))
	}
	if len(others) > 0 {
		slices.Sort(others)
		return nil, &sink.RefusedError{Table: w.sink.name,
			Reason: fmt.Sprintf("others land in it, too (%s), and their rows would go without coming again", strings.Join(others[:min(len(others), 5)], ", ")),
			Advice: "keep the table, or delete this application's rows with an engine of yours"}
	}
	slices.Sort(own)
	return own, nil
}

// liveFiles lists the newest version's data files.
func (w *writer) liveFiles(ctx context.Context) (files []icebergo.DataFile, err error) {
	if w.table.CurrentSnapshot() == nil {
		return nil, nil
	}
	tasks, err := w.table.Scan().PlanFiles(ctx)
	for _, t := range tasks {
		files = append(files, t.File)
	}
	return files, err
}

// emptying stages a snapshot without the files, and properties without the progress.
func (w *writer) emptying(ctx context.Context, t *table.Table, files []icebergo.DataFile, own []string) (*table.Transaction, error) {
	tx := t.NewTransaction()
	if err := tx.AssertRefSnapshotID(table.MainBranch); err != nil {
		return nil, err
	}
	if err := tx.RemoveProperties(own); err != nil {
		return nil, err
	}
	summary := icebergo.Properties{summaryCommit: uuid.NewString(), summaryTruncated: w.env.ApplicationID + "/" + w.env.Name}
	if len(files) > 0 {
		return tx, tx.ReplaceDataFilesWithDataFiles(ctx, files, nil, summary, table.WithoutAutoNameMapping())
	}
	none, err := array.NewRecordReader(arrow.NewSchema(nil, nil), nil)
	if err != nil {
		return nil, err
	}
	return tx, tx.Append(ctx, none, summary)
}
