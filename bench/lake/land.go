package main

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"time"

	"github.com/tributary-io/tributary/bench/internal/measure"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// The figures beside those of package measure.
const (
	commitP50 = "commit_ms_p50"
	lateP50   = "late_commit_ms_p50" // of the last 500 commits of a soak
	memoryMB  = "rss_mb"             // resident when the run ended
	earlyMB   = "early_rss_mb"       // resident after the first tenth of a soak
	heapMB    = "heap_mb"            // reachable when the run ended
	earlyHeap = "early_heap_mb"      // reachable after the first tenth of a soak
	openMS    = "open_ms"
)

// partition is where all events come from.
var partition = sink.Partition{Topic: "orders", TopicID: [16]byte{1}}

// schemas is a registry with the one schema.
var schemas = lake.SchemaSourceFunc(func(int) (lake.WriterSchema, error) { return lake.WriterSchema{Schema: eventSchema}, nil })

// openSink opens the table in a folder as a topology's sink does.
func openSink(ctx context.Context, dir string, opts ...lake.Option) (sink.Writer, error) {
	s := lake.Delta(dir, append([]lake.Option{lake.AvroValue(eventSchema, schemas)}, opts...)...)
	if err := s.Bind(reflect.TypeFor[[]byte](), reflect.TypeFor[[]byte]()); err != nil {
		return nil, err
	}
	return s.Open(ctx, sink.Env{ApplicationID: "bench", Name: "orders", Logger: slog.New(slog.DiscardHandler), Now: time.Now})
}

// lander lands batches of events.
type lander struct {
	w    sink.Writer
	next int64
	took []float64 // ms, of each commit
}

func (l *lander) fill(events [][]byte) (sink.Batch, error) {
	b := l.w.NewBatch()
	meta := sink.Meta{Topic: partition.Topic}
	for i := range events {
		if err := b.Append(nil, &events[i], &meta); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (l *lander) commit(ctx context.Context, b sink.Batch) error {
	defer b.Release()
	to := max(l.next, 0) + int64(b.Rows())
	began := time.Now()
	if _, err := l.w.Commit(ctx, b, []sink.Move{{Partition: partition, From: l.next, To: to}}); err != nil {
		return err
	}
	l.took = append(l.took, float64(time.Since(began).Microseconds())/1000)
	l.next = to
	return nil
}

// landAll lands the events in batches of so many rows. With columns the batches are filled beforehand, off the clock. Checkpoints and
// checksums are on it: the run ends when the sink is closed.
func landAll(ctx context.Context, dir string, events [][]byte, rows int, columns bool) (measure.Result, error) {
	w, err := openSink(ctx, dir)
	if err != nil {
		return nil, err
	}
	l := &lander{w: w, next: sink.NoOffset}
	var batches [][][]byte
	for at := 0; at < len(events); at += rows {
		batches = append(batches, events[at:min(at+rows, len(events))])
	}
	var filled []sink.Batch
	if columns {
		for _, events := range batches {
			b, err := l.fill(events)
			if err != nil {
				return nil, err
			}
			filled = append(filled, b)
		}
	}
	runtime.GC()
	from := measure.Take()
	for i, events := range batches {
		var b sink.Batch
		if columns {
			b = filled[i]
		} else if b, err = l.fill(events); err != nil {
			return nil, err
		}
		if err := l.commit(ctx, b); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	r := measure.Result{commitP50: measure.Median(l.took)}
	r.Add(from, measure.Take(), int64(len(events)))
	return r, checkRows(ctx, dir, int64(len(events)))
}

// soak makes so many commits of the events, again and again. The reported medians are of the first and of the last 500.
func soak(ctx context.Context, dir string, events [][]byte, commits int) (measure.Result, error) {
	w, err := openSink(ctx, dir)
	if err != nil {
		return nil, err
	}
	l := &lander{w: w, next: sink.NoOffset}
	r := measure.Result{}
	from := measure.Take()
	for i := range commits {
		b, err := l.fill(events)
		if err != nil {
			return nil, err
		}
		if err := l.commit(ctx, b); err != nil {
			return nil, err
		}
		if i+1 == max(commits/10, 1) {
			r[earlyMB], r[earlyHeap] = measure.Memory(), liveHeap()
		}
	}
	r[heapMB] = liveHeap() // with what the writer holds
	if err := w.Close(); err != nil {
		return nil, err
	}
	const some = 500
	r.Add(from, measure.Take(), int64(commits*len(events)))
	r[memoryMB] = measure.Memory()
	r[commitP50] = measure.Median(l.took[:min(some, len(l.took))])
	r[lateP50] = measure.Median(l.took[max(0, len(l.took)-some):])
	return r, checkRows(ctx, dir, int64(commits*len(events)))
}

// liveHeap is what is reachable, in MB.
func liveHeap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// checkRows makes sure that what was measured is what was to be done.
func checkRows(ctx context.Context, dir string, want int64) error {
	info, err := lake.Show(ctx, dir, 0)
	if err != nil {
		return err
	}
	if info.Rows != want || len(info.Progress) != 1 || info.Progress[0].Next != want {
		return fmt.Errorf("the table has %d rows and progress %+v after %d rows were landed", info.Rows, info.Progress, want)
	}
	return nil
}
