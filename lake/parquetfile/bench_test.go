package parquetfile

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sys/unix"

	"github.com/tributary-io/tributary/lake/columns"
)

const benchRows = 50_000

// orderEvents is a batch of ten columns with the value distributions of order events.
func orderEvents(b *testing.B) arrow.RecordBatch {
	names := []string{"event_id", "order_id", "customer_id", "status", "currency"}
	schema := &columns.Schema{}
	for _, n := range names {
		schema.Fields = append(schema.Fields, leaf(n, columns.String))
	}
	schema.Fields = append(schema.Fields, leaf("amount", columns.Double), leaf("quantity", columns.Integer), leaf("event_time", columns.Timestamp),
		leaf("ingest_time", columns.Timestamp), leaf("kafka_offset", columns.Long))
	bl := columns.NewBuilder(schema)
	c := bl.Columns()
	for i := range benchRows {
		h, l, r := mix(uint64(3*i+1)), mix(uint64(3*i+2)), mix(uint64(3*i+3))
		o := i * 611953 % 1000000
		c[0].AppendString(fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", h>>32, h>>16&0xffff, h&0xffff, l>>48, l&0xffffffffffff))
		c[1].AppendString(fmt.Sprintf("o-%d", o))
		c[2].AppendString(fmt.Sprintf("c-%d", o%100000))
		c[3].AppendString([]string{"placed", "shipped", "delivered", "returned"}[r&3])
		c[4].AppendString([]string{"EUR", "USD", "GBP"}[(r>>8)%3])
		c[5].AppendFloat64(float64(100+(r>>16)%50000) / 100)
		c[6].AppendInt32(int32(1 + (r>>40)%9))
		c[7].AppendInt64(1767225600000000 + int64(i)*1800)
		c[8].AppendInt64(1767225600000000 + int64(i)*1800 + int64((r>>44)%500000))
		c[9].AppendInt64(int64(i))
		if err := bl.EndRow(); err != nil {
			b.Fatal(err)
		}
	}
	return bl.Record()
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// cpu is the CPU time of the process in microseconds: what counts on a busy machine.
func cpu() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano()/1000 + u.Stime.Nano()/1000
}

func BenchmarkWrite(b *testing.B) {
	rec := orderEvents(b)
	var n counter
	before := cpu()
	for b.Loop() {
		n = 0
		if err := Write(&n, rec, Measure(rec), Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N)/benchRows, "cpu-µs/row")
	b.ReportMetric(float64(n)/benchRows, "bytes/row")
}

func BenchmarkMeasure(b *testing.B) {
	rec := orderEvents(b)
	before := cpu()
	for b.Loop() {
		Measure(rec)
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N)/benchRows, "cpu-µs/row")
}
