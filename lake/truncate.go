package lake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// A txn action can't be taken out of a table's log: each writer carries it on. So a table that is emptied says of its inputs the version that
// stands for "no progress" in the form of their application ids (see progressScheme.none). A writer whose batch was made before is fenced, as
// by any other commit of another, and the next one begins where one begins that finds no progress at all.

// Truncate implements sink.Truncater.
func (s *deltaSink) Truncate(ctx context.Context, env sink.Env, inputs []string, execute bool) (sink.Truncation, error) {
	w := &writer{sink: s, env: env, log: env.Logger}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	if s.opts.state != nil && s.layout == nil {
		return sink.Truncation{}, fmt.Errorf("table %s: the sink is not bound to a stream's types", s.place)
	}
	store, err := s.storeToTruncate(ctx, execute)
	if errors.Is(err, ErrNoTable) {
		return sink.Truncation{Version: -1}, nil
	}
	if err != nil {
		return sink.Truncation{}, err
	}
	w.table, err = delta.Open(ctx, store, delta.Options{Now: env.Now, Logger: w.log})
	if errors.Is(err, delta.ErrNoTable) {
		return sink.Truncation{Version: -1}, nil
	}
	if err != nil {
		return sink.Truncation{}, w.refused(err)
	}
	for lost := 0; ; lost++ {
		if err := w.pauseAfter(ctx, lost); err != nil {
			return sink.Truncation{}, w.refused(err)
		}
		out, err := w.truncate(ctx, inputs, execute)
		var conflict *delta.ConflictError
		var fenced *delta.FencedError
		switch {
		case err == nil:
			return out, nil
		case !errors.As(err, &conflict) && !errors.As(err, &fenced):
			return out, w.refused(err)
		case lost == maxTruncations:
			return out, &sink.RefusedError{Table: s.place, Reason: fmt.Sprintf("others write it all the time: %d tries to empty it were overtaken (%v)", lost, err),
				Advice: "stop what writes it, and do it again"}
		}
	}
}

// maxTruncations bounds the races that an emptying loses. Each is lost to another writer's commit, and nobody should write the table now.
const maxTruncations = 20

// storeToTruncate opens the table's store, and makes sure of it only where something is to be written.
func (s *deltaSink) storeToTruncate(ctx context.Context, execute bool) (object.Store, error) {
	if execute {
		return s.openStore(ctx)
	}
	if s.opts.store != nil {
		return s.opts.store, nil
	}
	return openToRead(ctx, s.place)
}

// truncate empties the newest version, if nobody comes in between.
func (w *writer) truncate(ctx context.Context, inputs []string, execute bool) (sink.Truncation, error) {
	snap, err := w.table.Snapshot(ctx)
	if err != nil {
		return sink.Truncation{}, err
	}
	if err := w.mayTruncate(snap.Head, inputs); err != nil {
		return sink.Truncation{}, err
	}
	out := sink.Truncation{Version: snap.Head.Version}
	c := delta.Commit{ReadVersion: snap.Head.Version, Exact: true, Operation: "TRUNCATE",
		Metadata: func(m *delta.Metadata) (*delta.Metadata, error) { return m, nil }}
	told := true // the number of rows
	for add, err := range snap.Files(ctx) {
		if err != nil {
			return out, err
		}
		n, ok := add.NumRecords()
		told = told && ok
		out.Rows += n
		if add.DeletionVector != nil {
			out.Rows -= add.DeletionVector.Cardinality
		}
		out.Bytes += add.Size
		c.Remove = append(c.Remove, add)
	}
	if out.Files = len(c.Remove); !told {
		out.Rows = -1
	}
	for _, id := range slices.Sorted(maps.Keys(snap.Head.Txns)) {
		txn := snap.Head.Txns[id]
		none := formOf(id).none()
		if w.isOwn(txn, inputs) && txn.Version != none {
			c.Moves = append(c.Moves, delta.Move{AppID: id, From: txn.Version, To: none})
		}
	}
	out.Partitions = len(c.Moves)
	out.Changed = out.Files+out.Partitions > 0
	if w.sink.opts.state != nil {
		remembered := w.forgetState(snap.Head, &c)
		out.Changed = out.Changed || remembered
	}
	if !execute || !out.Changed {
		return out, nil
	}
	if c.Info, err = w.truncationInfo(&out); err != nil {
		return out, err
	}
	landed, err := w.table.Commit(ctx, c)
	out.Version = landed.Version
	return out, err
}

// forgetState makes the emptying of a table of current state forget what was deleted, too, and reports whether anything was remembered. Indexes of
// the table as it was are told by a property that they don't go with it any more: they know of deletions that nobody can count as late any more.
func (w *writer) forgetState(h *delta.Head, c *delta.Commit) (remembered bool) {
	id, ok := h.Txn(deletionsApp)
	if remembered = ok && id != noSegment; remembered {
		c.Moves = append(c.Moves, delta.Move{AppID: deletionsApp, From: id, To: noSegment})
	}
	c.Metadata = func(m *delta.Metadata) (*delta.Metadata, error) {
		m = m.Clone()
		m.Configuration[stateEmptiedKey] = strconv.FormatInt(h.Version+1, 10)
		return m, nil
	}
	return remembered
}

// mayTruncate refuses what would lose the rows of others for good, since their progress would stay.
func (w *writer) mayTruncate(h *delta.Head, inputs []string) error {
	if w.sink.layout != nil {
		if err := w.checkState(h.Metadata.Configuration); err != nil {
			return err
		}
	}
	var others []string
	for id, txn := range h.Txns {
		if !w.isOwn(txn, inputs) && id != deletionsApp && !strings.HasPrefix(id, claimPrefix) {
			others = append(others, id)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		return &sink.RefusedError{Table: w.sink.place,
			Reason: fmt.Sprintf("others land in it, too (%s), and their rows would go without coming again", strings.Join(others[:min(len(others), 5)], ", ")),
			Advice: "keep the table, or delete this application's rows with an engine of yours"}
	}
	for _, property := range []string{"delta.appendOnly", "delta.enableChangeDataFeed"} {
		if h.Metadata.Flag(property, false) {
			return &sink.RefusedError{Table: w.sink.place, Reason: "it has the property " + property + ", under which its rows can't be taken out",
				Advice: "unset it, or land the stream in a new table"}
		}
	}
	return h.CheckWrite()
}

// isOwn reports whether progress is that of the sink: in its own form, or in the other one of the same topics, which a sink that has handed the
// table over has left.
func (w *writer) isOwn(txn delta.Txn, inputs []string) bool {
	p := parseProgress(txn)
	if _, platform := w.sink.scheme().(platformScheme); platform || p.Sink == platformName && p.Application == "" {
		return p.Topic != "" && slices.Contains(inputs, p.Topic)
	}
	return p.Application == w.env.ApplicationID && p.Sink == w.env.Name
}

// truncationInfo records in the commit who has emptied the table.
func (w *writer) truncationInfo(t *sink.Truncation) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(map[string]any{"application": w.env.ApplicationID, "sink": w.env.Name, "truncatedRows": t.Rows, "forgottenPartitions": t.Partitions})
	return map[string]json.RawMessage{"tributary": text}, err
}
