package delta

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tributary-io/tributary/lake/object"
)

// sidecarActions is how many actions on files a sidecar holds.
const sidecarActions = 100_000

// wantsV2 reports whether the table asks for V2 checkpoints, and has the feature.
func (h *Head) wantsV2() bool {
	return h.Metadata.Configuration[propCheckpointPolicy] == policyV2 && slices.Contains(h.Protocol.WriterFeatures, featureV2)
}

// checkpointV2 writes a checkpoint of the V2 specification (PROTOCOL.md, "V2 Spec"): a Parquet file under a name with a UUID, which holds all
// actions but those on files, and names sidecars that hold these. It takes no more memory than a sidecar does, whatever the table's size. The
// sidecars come first, then what names them; all of it is read back before _last_checkpoint points to it.
func (t *Table) checkpointV2(ctx context.Context, s *Snapshot) (*Head, *checkpointSums, error) {
	fail := func(err error) (*Head, *checkpointSums, error) {
		return nil, nil, t.wrap(fmt.Errorf("checkpoint of version %d: %w", s.Head.Version, err))
	}
	sums := &checkpointSums{}
	w := &sidecarWriter{table: t, ctx: ctx, head: s.Head}
	err := t.eachFileAction(ctx, s, func(a *action) error { sums.add(a); return w.write(a) })
	if err == nil {
		err = w.end()
	}
	if err != nil {
		return fail(err)
	}
	data, err := t.buildV2(s.Head, w.done, sums)
	if err != nil {
		return fail(err)
	}
	c := &checkpoint{s.Head.Version, []logFile{{name: logName(s.Head.Version, ".checkpoint."+t.opts.NewID()+".parquet"), version: s.Head.Version, kind: kindV2, size: int64(len(data))}}}
	if err := t.store.PutIfAbsent(ctx, c.files[0].name, data); err != nil {
		return fail(err)
	}
	var read checkpointSums
	err = readCheckpoint(ctx, t.store, c, headActions|fileActions, func(a *action) error { read.add(a); return nil })
	if err == nil && read != *sums {
		err = fmt.Errorf("what was written reads back differently: %+v instead of %+v", read, *sums)
	}
	if err != nil {
		_ = t.store.Delete(context.WithoutCancel(ctx), c.files[0].name) // readers would have to go round it
		return fail(err)
	}
	size := int64(len(data))
	for _, sc := range w.done {
		size += sc.SizeInBytes
	}
	return s.Head, sums, t.pointToCheckpoint(ctx, lastCheckpointFile{Version: s.Head.Version, Size: sums.actions, SizeInBytes: size, NumOfAddFiles: sums.adds})
}

// buildV2 writes the file that names the sidecars.
func (t *Table) buildV2(h *Head, sidecars []Sidecar, sums *checkpointSums) ([]byte, error) {
	var buf bytes.Buffer
	w, err := newCheckpointWriter(&buf, h, v2Form)
	if err != nil {
		return nil, err
	}
	if err := w.write(&action{v2: true, version: h.Version}); err != nil {
		return nil, err
	}
	if err := h.eachAction(func(a *action) error { sums.add(a); return w.write(a) }); err != nil {
		return nil, err
	}
	for i := range sidecars {
		if err := w.write(&action{sidecar: &sidecars[i]}); err != nil {
			return nil, err
		}
	}
	err = w.close()
	return buf.Bytes(), err
}

// sidecarWriter writes actions on files to sidecars.
type sidecarWriter struct {
	table *Table
	ctx   context.Context
	head  *Head
	buf   bytes.Buffer
	file  *checkpointWriter // nil: none is open
	rows  int
	done  []Sidecar
}

func (w *sidecarWriter) write(a *action) (err error) {
	if w.file == nil {
		w.buf.Reset()
		if w.file, err = newCheckpointWriter(&w.buf, w.head, sidecarForm); err != nil {
			return err
		}
	}
	if err := w.file.write(a); err != nil {
		return err
	}
	if w.rows++; w.rows == sidecarActions {
		return w.end()
	}
	return nil
}

// end stores the open sidecar.
func (w *sidecarWriter) end() error {
	if w.file == nil {
		return nil
	}
	if err := w.file.close(); err != nil {
		return err
	}
	w.file, w.rows = nil, 0
	name := w.table.opts.NewID() + ".parquet"
	if err := w.table.store.PutIfAbsent(w.ctx, sidecarDir+name, bytes.Clone(w.buf.Bytes())); err != nil {
		return err
	}
	w.done = append(w.done, Sidecar{Path: name, SizeInBytes: int64(w.buf.Len()), ModificationTime: w.table.opts.Now().UnixMilli()})
	return nil
}

// sweepSidecars deletes the sidecars that no checkpoint in the log names and that are older than any checkpoint under way can be, and calls each
// with what it deletes. A dry run only calls.
func (t *Table) sweepSidecars(ctx context.Context, dry bool, each func(object.Info)) error {
	before := t.opts.Now().Add(-tempAge)
	old := map[string]object.Info{}
	for info, err := range t.store.List(ctx, sidecarDir, "") {
		if err != nil {
			return err
		}
		if info.Modified.Before(before) {
			old[info.Name] = info
		}
	}
	if len(old) == 0 {
		return nil
	}
	l, err := listLog(ctx, t.store, 0)
	if err != nil {
		return err
	}
	for i := range l.checkpoints {
		named, err := namedSidecars(ctx, t.store, &l.checkpoints[i])
		if err != nil {
			return fmt.Errorf("sidecars are left alone, since a checkpoint can't be read: %w", err)
		}
		for _, name := range named {
			delete(old, name)
		}
	}
	for _, name := range sortedKeys(old) {
		if !dry {
			if err := t.store.Delete(ctx, name); err != nil {
				return err
			}
		}
		each(old[name])
	}
	return nil
}

// namedSidecars lists the sidecars that a checkpoint names, by their names in the store.
func namedSidecars(ctx context.Context, store object.Store, c *checkpoint) (out []string, err error) {
	for _, f := range c.files {
		if f.kind != kindV2 && f.kind != kindClassic { // a classic name may hide a V2 checkpoint
			continue
		}
		err := readCheckpointFile(ctx, store, f, headActions, func(a *action) error {
			if a.sidecar == nil {
				return nil
			}
			name, err := a.sidecar.name()
			out = append(out, name)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
