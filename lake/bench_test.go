package lake

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-io/tributary/lake/sink"
)

// The benchmarks land order events of ten columns in batches of 50,000 rows (or as said) in a table on the local disk, with
// everything that a commit has: files and log synced, progress, statistics, checkpoints and checksums beside it. They count the
// CPU time of the whole process, which stays fair on a busy machine; bench/lake compares with delta-rs in the same run.

const eventSchema = `{"type":"record","name":"OrderEvent","fields":[
 {"name":"event_id","type":"string"},{"name":"order_id","type":"string"},{"name":"customer_id","type":"string"},
 {"name":"status","type":"string"},{"name":"currency","type":"string"},{"name":"amount","type":"double"},{"name":"quantity","type":"int"},
 {"name":"event_time","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"ingest_time","type":{"type":"long","logicalType":"timestamp-micros"}},
 {"name":"kafka_offset","type":"long"}]}`

// event encodes the i-th order event, with the value distributions of the peer's benchmark.
func event(i int) []byte {
	mix := func(x uint64) uint64 {
		x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
		x = (x ^ x>>27) * 0x94D049BB133111EB
		return x ^ x>>31
	}
	h, l, r := mix(uint64(3*i+1)*0x9E3779B97F4A7C15), mix(uint64(3*i+2)*0x9E3779B97F4A7C15), mix(uint64(3*i+3)*0x9E3779B97F4A7C15)
	order := i * 611953 % 1000000
	out := []byte{0, 0, 0, 0, 1}
	text := func(s string) { out = append(binary.AppendVarint(out, int64(len(s))), s...) }
	text(fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", h>>32, h>>16&0xffff, h&0xffff, l>>48, l&0xffffffffffff))
	text(fmt.Sprintf("o-%d", order))
	text(fmt.Sprintf("c-%d", order%100000))
	text([]string{"placed", "shipped", "delivered", "returned"}[r&3])
	text([]string{"EUR", "USD", "GBP"}[(r>>8)%3])
	out = binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(100+(r>>16)%50000)/100))
	out = binary.AppendVarint(out, int64(1+(r>>40)%9))
	at := 1767225600000000 + int64(i)*1800
	out = binary.AppendVarint(out, at)
	out = binary.AppendVarint(out, at+int64((r>>44)%500000))
	return binary.AppendVarint(out, int64(i))
}

type eventSource struct{}

func (eventSource) SchemaByID(int) (WriterSchema, error) {
	return WriterSchema{Schema: eventSchema}, nil
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// lander commits batches of the same events with ever new offsets.
type lander struct {
	b      *testing.B
	w      sink.Writer
	events [][]byte
	next   int64
	took   []time.Duration
}

func newLander(b *testing.B, rows int) *lander {
	l := &lander{b: b, next: sink.NoOffset}
	l.w = openSink[[]byte, []byte](b, Delta(b.TempDir(), AvroValue(eventSchema, eventSource{})))
	for i := range rows {
		l.events = append(l.events, event(i))
	}
	return l
}

func (l *lander) fill() sink.Batch {
	batch := l.w.NewBatch()
	m := &sink.Meta{Topic: "orders"}
	for i := range l.events {
		var v any = &l.events[i]
		if err := batch.Append(nil, v, m); err != nil {
			l.b.Fatal(err)
		}
	}
	return batch
}

func (l *lander) commit(batch sink.Batch) {
	to := max(l.next, 0) + int64(len(l.events))
	start := time.Now()
	if _, err := l.w.Commit(ctx, batch, []sink.Move{move(0, l.next, to)}); err != nil {
		l.b.Fatal(err)
	}
	l.took = append(l.took, time.Since(start))
	l.next = to
	batch.Release()
}

// report gives CPU time per row, rows/s and the median commit. from and to are CPU times; the clock is the benchmark's.
func (l *lander) report(cpu time.Duration) {
	rows := float64(len(l.events) * l.b.N)
	l.b.ReportMetric(float64(cpu.Nanoseconds())/1000/rows, "cpu-µs/row")
	l.b.ReportMetric(rows/l.b.Elapsed().Seconds(), "rows/s")
	slices.Sort(l.took)
	l.b.ReportMetric(float64(l.took[len(l.took)/2].Microseconds())/1000, "ms/commit-p50")
}

// BenchmarkColumnsToTable starts from filled columns: encode and commit.
func BenchmarkColumnsToTable(b *testing.B) {
	l := newLander(b, 50_000)
	l.commit(l.fill())
	l.took = nil
	var cpu time.Duration
	for b.Loop() {
		b.StopTimer()
		batch := l.fill()
		start := cpuTime()
		b.StartTimer()
		l.commit(batch)
		cpu += cpuTime() - start
	}
	l.report(cpu)
}

// BenchmarkAvroToTable starts from Avro bytes in Confluent's wire format.
func BenchmarkAvroToTable(b *testing.B) {
	l := newLander(b, 50_000)
	l.commit(l.fill())
	l.took = nil
	start := cpuTime()
	for b.Loop() {
		l.commit(l.fill())
	}
	l.report(cpuTime() - start)
}

// BenchmarkSmallCommits lands 1,000 rows at a time.
func BenchmarkSmallCommits(b *testing.B) {
	l := newLander(b, 1000)
	start := cpuTime()
	for b.Loop() {
		l.commit(l.fill())
	}
	l.report(cpuTime() - start)
}
