package jsonl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// hintEvery is after how many manifests of a partition the way to the newest one is noted.
const hintEvery = 50

// putParallel bounds the requests of one commit in flight at once.
const putParallel = 8

// keptText is the largest buffer that is kept for the next batches.
const keptText = 8 << 20

// writer lands for one instance. It implements sink.Writer.
type writer struct {
	landing *landing
	env     sink.Env
	log     *slog.Logger
	store   object.Store
	codec   codec

	ends    map[sink.Partition]int64 // what the chains say, as last seen; sink.NoOffset for none
	rounds  map[sink.Partition]round // of the ends
	links   map[sink.Partition]int   // manifests put since the hint was written
	commits int64

	sections sync.Pool // emptied ones, whose memory the next batches use
}

func openWriter(ctx context.Context, l *landing, env sink.Env) (*writer, error) {
	if env.Logger == nil {
		env.Logger = slog.New(slog.DiscardHandler)
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	w := &writer{landing: l, env: env, log: env.Logger.With("sink", env.Name, "landing", l.place), codec: codecs[l.opts.compression],
		store: l.opts.store, ends: map[sink.Partition]int64{}, rounds: map[sink.Partition]round{}, links: map[sink.Partition]int{}}
	if w.store == nil {
		var err error
		if w.store, err = object.Open(ctx, l.place); err != nil {
			return nil, fmt.Errorf("landing %s: %w", l.place, err)
		}
	}
	if err := object.CheckPutIfAbsent(ctx, w.store, manifestFolder+".check"); err != nil {
		if errors.Is(err, object.ErrNotConditional) {
			return nil, &sink.RefusedError{Table: l.place, Reason: err.Error(), Advice: "use a store that honours conditional writes"}
		}
		return nil, fmt.Errorf("landing %s: %w", l.place, err)
	}
	return w, nil
}

// Progress implements sink.Writer.
func (w *writer) Progress(ctx context.Context, parts []sink.Partition) (map[sink.Partition]int64, error) {
	out := make(map[sink.Partition]int64, len(parts))
	for _, p := range parts {
		end, err := w.end(ctx, p)
		if err != nil {
			return nil, err
		}
		out[p] = end
	}
	return out, nil
}

// end reads where a partition's chain ends, and remembers it.
func (w *writer) end(ctx context.Context, p sink.Partition) (int64, error) {
	m, r, err := newest(ctx, w.store, p)
	if err != nil {
		return 0, fmt.Errorf("landing %s: %w", w.landing.place, err)
	}
	w.ends[p], w.rounds[p] = sink.NoOffset, r
	if m == nil {
		return sink.NoOffset, nil
	}
	if err := w.mayFollow(m, p); err != nil {
		return 0, err
	}
	w.ends[p] = m.Next()
	return m.Next(), nil
}

// mayFollow refuses what another sink has landed.
func (w *writer) mayFollow(m *Manifest, p sink.Partition) error {
	if m.Sink != "" && !w.landed(m) {
		return &sink.RefusedError{Table: w.landing.place,
			Reason: fmt.Sprintf("sink %s of application %s has landed %s here, not sink %s of %s", m.Sink, m.Application, p, w.env.Name, w.env.ApplicationID),
			Advice: "give each sink a place of its own, or keep the names of the one that began here"}
	}
	return nil
}

// landed tells whether a manifest is this sink's.
func (w *writer) landed(m *Manifest) bool {
	return m.Application == w.env.ApplicationID && m.Sink == w.env.Name
}

// NewBatch implements sink.Writer.
func (w *writer) NewBatch() sink.Batch {
	return &batch{w: w, sections: map[sectionKey]*section{}, counts: map[input]*counts{}}
}

func (w *writer) newSection() *section {
	if s, ok := w.sections.Get().(*section); ok {
		return s
	}
	return &section{}
}

func (w *writer) recycle(s *section) {
	if cap(s.text) <= keptText {
		*s = section{text: s.text[:0]}
		w.sections.Put(s)
	}
}

// Commit implements sink.Writer. The batch lands whole for each input partition, by one manifest each. Partitions that have landed before an
// error are not landed again by another call.
func (w *writer) Commit(ctx context.Context, sb sink.Batch, moves []sink.Move) (sink.Commit, error) {
	start := w.env.Now()
	b, ok := sb.(*batch)
	if !ok || b.w != w || b.released {
		return sink.Commit{}, fmt.Errorf("landing %s: the batch is not one of this writer's, or was released", w.landing.place)
	}
	b.sealed = true
	due, err := w.due(ctx, b, moves)
	if err != nil {
		return sink.Commit{}, err
	}
	if err := w.writeFiles(ctx, b); err != nil {
		return sink.Commit{}, fmt.Errorf("landing %s: %w", w.landing.place, err)
	}
	attempts, err := w.land(ctx, b, due)
	if err != nil {
		return sink.Commit{}, err
	}
	w.commits++
	w.hints(ctx, due)
	c := sink.Commit{Version: w.commits, Rows: int64(b.rows), Attempts: attempts, Took: w.env.Now().Sub(start)}
	for _, s := range b.sections {
		if s.file != nil {
			c.Files++
			c.Bytes += s.file.Bytes
		}
	}
	return c, nil
}

// due are the moves that need a manifest: those that go on. Each must start where its chain ends, and each partition with rows or rejects
// must move.
func (w *writer) due(ctx context.Context, b *batch, moves []sink.Move) ([]sink.Move, error) {
	var due []sink.Move
	moved := map[input]bool{}
	for _, m := range moves {
		if m.To <= max(m.From, 0) {
			continue // nothing has gone by: a chain with no link has come to offset 0, too
		}
		moved[input{m.Partition.Topic, m.Partition.Partition}] = true
		due = append(due, m)
		if b.landed(m.Partition) {
			continue
		}
		end, known := w.ends[m.Partition]
		if !known {
			var err error
			if end, err = w.end(ctx, m.Partition); err != nil {
				return nil, err
			}
		}
		if max(end, 0) != max(m.From, 0) {
			return nil, &sink.FencedError{Table: w.landing.place, Partition: m.Partition, Want: m.From, Got: end}
		}
	}
	for in, c := range b.counts {
		if c.rows+c.rejects > 0 && !moved[in] {
			return nil, fmt.Errorf("landing %s: %d rows and %d rejects of %s-%d without a move of its progress would land again at the next start",
				w.landing.place, c.rows, c.rejects, in.topic, in.partition)
		}
	}
	return due, nil
}

// landed tells whether the batch's part of a partition has landed in an earlier call.
func (b *batch) landed(p sink.Partition) bool {
	m := b.manifests[p]
	return m != nil && m.landed
}

// writeFiles writes the sections that aren't written yet, and makes all durable.
func (w *writer) writeFiles(ctx context.Context, b *batch) error {
	var names []string
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	sections := b.inOrder()
	for _, s := range sections {
		if s.file != nil {
			continue
		}
		g.Go(func() (err error) {
			s.file, err = writeFile(gctx, w.store, s, w.codec)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if b.manifests != nil { // the files were made durable before the first manifest was put
		return nil
	}
	for _, s := range sections {
		names = append(names, s.file.Name)
	}
	if len(names) == 0 {
		return nil
	}
	return w.store.Sync(ctx, names...)
}

// land puts the manifests of all due moves. It returns the greatest number of puts that one of them took.
func (w *writer) land(ctx context.Context, b *batch, due []sink.Move) (attempts int, err error) {
	if err := b.makeManifests(due); err != nil {
		return 0, err
	}
	tries := make([]int, len(due))
	errs := make([]error, len(due))
	var g errgroup.Group
	g.SetLimit(putParallel)
	for i, m := range due {
		if b.landed(m.Partition) {
			continue
		}
		g.Go(func() error {
			p := b.manifests[m.Partition] // its round is the one that it was made in, whatever the chain has come to since
			tries[i], errs[i] = w.put(ctx, round{m.Partition, p.manifest.Round}, p)
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs: each partition counts for itself
	attempts = 1
	for i, m := range due {
		attempts = max(attempts, tries[i])
		switch p := b.manifests[m.Partition]; {
		case errs[i] == nil:
			p.landed = true
			w.ends[m.Partition] = m.To
		case errors.Is(errs[i], errLost):
			errs[i] = w.fenced(ctx, m, p)
		}
	}
	return attempts, firstOf(errs)
}

// firstOf picks the error that tells the caller what to do: that it was fenced comes before that it may try again.
func firstOf(errs []error) error {
	for _, err := range errs {
		if sink.IsFenced(err) {
			return err
		}
	}
	return errors.Join(errs...)
}

// fenced says that another writer has landed what a move starts from. The files of the part that lost can never be named any more, and go.
func (w *writer) fenced(ctx context.Context, m sink.Move, p *pending) error {
	for _, f := range p.manifest.Files {
		if err := w.store.Delete(ctx, f.Name); err != nil {
			w.log.Debug("a file that did not land stays behind", "file", f.Name, "error", err)
		}
	}
	end, err := w.end(ctx, m.Partition)
	if err != nil {
		return err
	}
	return &sink.FencedError{Table: w.landing.place, Partition: m.Partition, Want: m.From, Got: end}
}

// makeManifests makes the manifests, once: a repeated call must put the same bytes.
func (b *batch) makeManifests(due []sink.Move) error {
	if b.manifests != nil {
		return nil
	}
	made := map[sink.Partition]*pending{}
	for _, m := range due {
		manifest := b.manifest(m)
		text, err := manifest.encode()
		if err != nil {
			return err
		}
		made[m.Partition] = &pending{manifest: manifest, text: text}
	}
	b.manifests = made
	return nil
}

// hints notes where the chains end, now and then.
func (w *writer) hints(ctx context.Context, moves []sink.Move) {
	for _, m := range moves {
		if w.links[m.Partition]++; w.links[m.Partition] < hintEvery {
			continue
		}
		if err := writeHint(ctx, w.store, w.rounds[m.Partition], max(m.From, 0)); err != nil {
			w.log.Debug("the way to the newest manifest could not be noted; it is found by a longer listing", "partition", m.Partition.String(), "error", err)
			continue
		}
		w.links[m.Partition] = 0
	}
}

// Close implements sink.Writer.
func (w *writer) Close() error { return nil }
