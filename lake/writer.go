package lake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// writer writes one table for one instance. It implements sink.Writer.
type writer struct {
	sink   *deltaSink
	env    sink.Env
	log    *slog.Logger
	table  *delta.Table
	schema *delta.StructType // what the sink declares
	upkeep *upkeep
	index  *stateIndex // of a table of current state; nil for one that rows are appended to
	chores *chores

	handed  map[sink.Partition]*handedOver // partitions with progress in the other form, too
	commits int64                          // of this writer: the epoch in the commits' records

	// free holds emptied builders, whose memory the next batches use. The garbage collector takes those of an idle sink: a
	// process may have hundreds.
	free sync.Pool
}

// txnRetention is the table property after which readers of the log may drop progress that nobody has renewed.
const txnRetention = "delta.setTransactionRetentionDuration"

func openWriter(ctx context.Context, s *deltaSink, env sink.Env) (*writer, error) {
	if env.Logger == nil {
		env.Logger = slog.New(slog.DiscardHandler)
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	w := &writer{sink: s, env: env, log: env.Logger.With("sink", env.Name, "table", s.place), schema: deltaSchema(s.layout.Schema.Fields)}
	store, err := s.openStore(ctx)
	if err != nil {
		return nil, err
	}
	table, created, err := delta.OpenOrCreate(ctx, store, s.spec(&env), delta.Options{Now: env.Now, Logger: w.log})
	if err != nil {
		return nil, w.refused(err)
	}
	w.table = table
	if created {
		w.log.Info("made the table")
	} else if err := table.Head().CheckWrite(); err != nil {
		return nil, w.refused(err)
	}
	if err := w.checkState(table.Head().Metadata.Configuration); err != nil {
		return nil, err
	}
	if err := w.publish(ctx); err != nil {
		return nil, err
	}
	var sweep *sweeper
	if s.layout.state != nil {
		if w.index, err = w.openIndex(); err != nil {
			return nil, err
		}
		if err := w.firstSync(ctx); err != nil {
			return nil, errors.Join(w.stateRefused(err), w.index.close())
		}
		sweep = &sweeper{now: env.Now}
	}
	w.upkeep = startUpkeep(table, w.log, s.opts.inlineUpkeep, sweep)
	w.chores = startChores(s.opts.chores, table, w.log, env.Now, s.opts.inlineUpkeep)
	return w, nil
}

// openStore opens the store, and makes sure that it honours put-if-absent before anything rests on it.
func (s *deltaSink) openStore(ctx context.Context) (object.Store, error) {
	store := s.opts.store
	if store == nil {
		var err error
		if store, err = object.Open(ctx, s.place); err != nil {
			return nil, fmt.Errorf("table %s: %w", s.place, err)
		}
	}
	if err := object.CheckPutIfAbsent(ctx, store, "_delta_log/.check"); err != nil {
		if errors.Is(err, object.ErrNotConditional) {
			return nil, &sink.RefusedError{Table: s.place, Reason: err.Error(), Advice: "use a store that honours conditional writes"}
		}
		return nil, fmt.Errorf("table %s: %w", s.place, err)
	}
	return store, nil
}

// refused turns what only a person can mend into a *sink.RefusedError; other errors are named and stay as they are.
func (w *writer) refused(err error) error {
	var unsupported *delta.UnsupportedError
	var change *delta.SchemaChangeError
	var refused *sink.RefusedError
	switch {
	case errors.As(err, &refused):
		return err
	case errors.As(err, &unsupported):
		return &sink.RefusedError{Table: w.sink.place, Reason: fmt.Sprintf("can't %s it: it uses %v", unsupported.Verb, unsupported.Features), Advice: unsupported.Advice}
	case errors.As(err, &change):
		return &sink.RefusedError{Table: w.sink.place, Reason: fmt.Sprintf("column %s: %s", change.Path, change.Reason),
			Advice: "land the stream in a new table, or keep the column as the table has it"}
	case errors.Is(err, delta.ErrReplaced):
		return &sink.RefusedError{Table: w.sink.place, Reason: err.Error(), Advice: "restart the sink once the table's owner has settled what becomes of the rows"}
	}
	return fmt.Errorf("table %s: %w", w.sink.place, err)
}

// Progress implements sink.Writer.
func (w *writer) Progress(ctx context.Context, parts []sink.Partition) (map[sink.Partition]int64, error) {
	head, err := w.table.Refresh(ctx)
	if err != nil {
		return nil, w.refused(err)
	}
	out := make(map[sink.Partition]int64, len(parts))
	for _, p := range parts {
		out[p] = w.progressOf(head, p)
		if out[p] == sink.NoOffset {
			w.warnOtherTopic(head, p)
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

// recycle keeps the memory of a finished batch.
func (w *writer) recycle(b *columns.Builder) {
	b.Reset()
	w.free.Put(b)
}

// Commit implements sink.Writer.
func (w *writer) Commit(ctx context.Context, sb sink.Batch, moves []sink.Move) (sink.Commit, error) {
	start := w.env.Now()
	b, ok := sb.(*batch)
	if !ok || b.w != w || b.b == nil {
		return sink.Commit{}, fmt.Errorf("table %s: the batch is not one of this writer's, or was released", w.sink.place)
	}
	rows := int64(b.Rows())
	due, advances := w.due(moves)
	if rows > 0 && !advances {
		return sink.Commit{}, fmt.Errorf("table %s: %d rows without a move of any partition's progress would land again at the next start", w.sink.place, rows)
	}
	if len(due) == 0 {
		return sink.Commit{Version: w.table.Head().Version}, nil
	}
	if w.index != nil {
		done, landed, err := w.commitState(ctx, b, moves, due)
		if err != nil {
			return sink.Commit{}, w.fenced(err, moves)
		}
		return w.landed(start, rows, done.adds, landed, moves), nil
	}
	landed, err := b.land(ctx, moves, due)
	for tries := 1; errors.Is(err, errColumnsMoved) && tries < maxEncodings; tries++ {
		w.log.Info("the table's columns have changed: the batch's files are written anew")
		b.encoded = false
		landed, err = b.land(ctx, moves, due)
	}
	if err != nil {
		return sink.Commit{}, w.fenced(err, moves)
	}
	return w.landed(start, rows, b.adds, landed, moves), nil
}

// maxEncodings bounds how often a batch's files are written because the table's columns change meanwhile.
const maxEncodings = 5

// land writes the batch's files and commits them.
func (b *batch) land(ctx context.Context, moves []sink.Move, due []delta.Move) (delta.Landed, error) {
	if err := b.encode(ctx); err != nil {
		return delta.Landed{}, err
	}
	w := b.w
	return w.table.Commit(ctx, delta.Commit{Add: b.adds, Moves: due, Metadata: b.fits,
		OperationParameters: map[string]string{"outputMode": "Append", "queryId": w.env.ApplicationID + "/" + w.env.Name, "epochId": strconv.FormatInt(w.commits, 10)},
		OperationMetrics:    b.metrics(moves), Info: w.info(b, moves)})
}

// landed notes a commit that has landed, and tells of it.
func (w *writer) landed(start time.Time, rows int64, adds []delta.Add, landed delta.Landed, moves []sink.Move) sink.Commit {
	w.commits++
	w.moved(moves)
	w.upkeep.wake()
	w.chores.wake()
	c := sink.Commit{Version: landed.Version, Rows: rows, Files: len(adds), Attempts: landed.Attempts, Took: w.env.Now().Sub(start)}
	for i := range adds {
		c.Bytes += adds[i].Size
	}
	return c
}

// due translates the moves that must be written: those that advance, and those of idle partitions whose progress would soon
// be old enough to be forgotten.
func (w *writer) due(moves []sink.Move) (out []delta.Move, advances bool) {
	head := w.table.Head()
	renew := head.Metadata.Interval(txnRetention, 0) / 2
	for _, m := range moves {
		dms := w.moves(m)
		if len(dms) == 0 {
			continue
		}
		if m.From == m.To {
			age := w.env.Now().UnixMilli() - head.Txns[dms[0].AppID].LastUpdated
			if renew == 0 || age < renew.Milliseconds() {
				continue
			}
		} else {
			advances = true
		}
		out = append(out, dms...)
	}
	return out, advances
}

// metrics are what the commit's record counts beside rows, files and bytes. "sourceOffsets" is for people who look at the table's
// history: from (inclusive) and to (exclusive) of each partition.
func (b *batch) metrics(moves []sink.Move) map[string]string {
	var offsets strings.Builder
	for i, m := range moves {
		if i > 0 {
			offsets.WriteByte(' ')
		}
		fmt.Fprintf(&offsets, "%s:%d-%d", m.Partition, max(m.From, 0), m.To)
	}
	m := map[string]string{"sourceOffsets": offsets.String()}
	if b.tombstones > 0 {
		m["numSkippedTombstones"] = strconv.FormatInt(b.tombstones, 10)
	}
	return m
}

// sourceMove is one partition's move as the commit's record has it.
type sourceMove struct {
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"` // next offset to read before the commit, -1 for none
	To        int64  `json:"to"`   // next offset to read after it
}

// info records in the commit where its rows came from.
func (w *writer) info(b *batch, moves []sink.Move) map[string]json.RawMessage {
	type source struct {
		Application     string       `json:"application"`
		Run             string       `json:"run,omitempty"`
		Sink            string       `json:"sink"`
		Sources         []sourceMove `json:"sources"`
		OldestTimestamp *int64       `json:"oldestSourceTimestamp,omitempty"` // ms
		NewestTimestamp *int64       `json:"newestSourceTimestamp,omitempty"` // ms
		// About how many different values each column has, by a sample; nulls and bounds are in the files' statistics.
		Distinct map[string]int64 `json:"distinctEstimates,omitempty"`
	}
	s := source{Application: w.env.ApplicationID, Sink: w.env.Name, Run: w.sink.opts.RunID, Distinct: b.distinct}
	for _, m := range moves {
		s.Sources = append(s.Sources, sourceMove{m.Partition.Topic, topicID(m.Partition.TopicID), m.Partition.Partition, m.From, m.To})
	}
	if b.Rows() > 0 {
		s.OldestTimestamp, s.NewestTimestamp = &b.oldest, &b.newest
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil // can't be: the struct holds strings and numbers only
	}
	return map[string]json.RawMessage{"tributary": text}
}

// fenced translates the errors of a commit.
func (w *writer) fenced(err error, moves []sink.Move) error {
	var f *delta.FencedError
	if !errors.As(err, &f) {
		return w.refused(err)
	}
	i := slices.IndexFunc(moves, func(m sink.Move) bool {
		return slices.ContainsFunc(w.moves(m), func(dm delta.Move) bool { return dm.AppID == f.AppID })
	})
	if i < 0 {
		return w.refused(err)
	}
	out := &sink.FencedError{Table: w.sink.place, Partition: moves[i].Partition, Want: moves[i].From, Got: sink.NoOffset}
	if !f.Got.None {
		out.Got = formOf(f.AppID).next(f.Got.Version)
	}
	return out
}

// Close implements sink.Writer. It waits for upkeep of the log that is under way, and ends compaction and vacuum.
func (w *writer) Close() error {
	w.chores.stop()
	w.upkeep.stop()
	if w.index != nil {
		return w.index.close()
	}
	return nil
}
