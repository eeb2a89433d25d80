package engine

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// logLines keeps what is logged.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// first is the first line with some text in it.
func (l *logLines) first(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}

// serves gives the metrics of an instance: by name, and where they have a task, "name{task}".
func serves(t *testing.T, i *instance) map[string]float64 {
	t.Helper()
	families, err := i.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() == "task" || l.GetName() == "part" {
					name += "{" + l.GetValue() + "}"
				}
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// checkServed compares the metrics in the middle of the restore of task 1_0 with what the listener was told at that moment.
func checkServed(t *testing.T, served map[string]float64, e RestoreEvent) {
	t.Helper()
	for name, want := range map[string]float64{
		"tributary_restored_records{1_0}": float64(e.Records), "tributary_restored_bytes{1_0}": float64(e.Bytes),
		"tributary_restore_left_offsets{1_0}": float64(e.Left),
		"tributary_restore_records_total":     float64(e.Records), "tributary_restore_bytes_total": float64(e.Bytes),
	} {
		if got := served[name]; got != want || want == 0 {
			t.Errorf("%s is %v, and the listener was told %v", name, got, want)
		}
	}
	if got := served["tributary_restore_time_left_seconds{1_0}"]; got < e.TimeLeft.Seconds() || got > e.TimeLeft.Seconds()+60 {
		t.Errorf("%v s are left by the metrics, and the listener was told %v", got, e.TimeLeft)
	}
}

// Reading global tables at the start is a restore like others.
func TestReadingGlobalTablesTellsHowFarItIs(t *testing.T) {
	a := newGlobals(t, brokertest.Embedded(t), "globalprogress")
	b := topology.NewBuilder(a.name)
	b.GlobalTable(a.topic("rates"), serde.String, serde.String, topology.Store("rates"))
	b.Stream(a.topic("in"), serde.String, serde.String).To(a.topic("out"))
	const records, size = 50, 1000
	values := make([]string, records)
	for n := range values {
		values[n] = strings.Repeat("x", size)
	}
	a.produce("rates", 2, values...)
	var log events
	i := a.start(build(b), "i1", OnRestore(log.add), func(c *config) { c.reportEvery = 0 })
	i.await(t, "runs", func(s Stats) bool { return s.State == Running })
	served := serves(t, i)
	i.stop(t)
	if n := served["tributary_restore_bytes_total"]; served["tributary_restore_records_total"] != records || n < records*size || n != served["tributary_restored_bytes{global}"] {
		t.Errorf("%v records and %v bytes by the metrics", served["tributary_restore_records_total"], n)
	}
	if left := served["tributary_restore_left_offsets{global}"]; left != 0 {
		t.Errorf("%v offsets are left", left)
	}
	seen := map[RestorePhase]RestoreEvent{}
	for _, e := range log.all {
		seen[e.Phase] = e
	}
	if e := seen[RestoreBegan]; e.Task != "global" || e.Left != records {
		t.Errorf("began with %+v", e)
	}
	if e := seen[RestoreGoesOn]; e.Records != records || e.Left != 0 {
		t.Errorf("last report: %+v", e)
	}
	if e := seen[RestoreEnded]; e.Records != records || e.Bytes < records*size || e.Took <= 0 || e.Rate <= 0 {
		t.Errorf("ended with %+v", e)
	}
}

// How long a restore still takes is told from how long it took so far; an ended one has nothing left, one that was broken off no pace any more.
func TestRestoreEstimate(t *testing.T) {
	var p restoreProgress
	at := time.Unix(1000, 0)
	p.start(1000, at)
	if s := p.seen(at.Add(time.Second)); !s.Active || s.Left != 1000 || s.TimeLeft != 0 || s.Rate != 0 {
		t.Errorf("before anything is read: %+v", s)
	}
	p.add(100, 5000, 250, at.Add(2*time.Second), time.Minute) // compaction has taken some
	s := p.seen(at.Add(2 * time.Second))
	if s.Records != 100 || s.Bytes != 5000 || s.Left != 750 || s.Rate != 50 || s.TimeLeft != 6*time.Second {
		t.Errorf("after a quarter in 2 s: %+v", s)
	}
	p.end(at.Add(4 * time.Second))
	if s := p.seen(at.Add(time.Hour)); s.Active || s.Left != 750 || s.Took != 4*time.Second || s.Rate != 25 || s.TimeLeft != 0 {
		t.Errorf("broken off: %+v", s)
	}
	p.start(750, at)
	p.add(700, 35_000, 750, at.Add(time.Second), time.Minute)
	p.finish(at.Add(2 * time.Second))
	p.end(at.Add(3 * time.Second))
	if s := p.seen(at.Add(time.Hour)); s.Active || s.Left != 0 || s.Took != 2*time.Second || s.Rate != 350 || s.TimeLeft != 0 {
		t.Errorf("ended: %+v", s)
	}
}
