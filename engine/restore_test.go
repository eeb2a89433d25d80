package engine

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// changelogWriter writes what former instances may have left in a changelog.
type changelogWriter struct {
	t      *testing.T
	a      *app
	topic  string
	client *kgo.Client
}

func (w *changelogWriter) write(partition int32, end kgo.TransactionEndTry, records ...*kgo.Record) {
	w.t.Helper()
	begin := w.end(partition)
	if err := w.client.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records {
		r.Topic, r.Partition = w.topic, partition
	}
	if err := w.client.ProduceSync(w.t.Context(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.EndTransaction(w.t.Context(), end); err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, "the transaction's marker is written", func() bool { return w.end(partition) == begin+int64(len(records))+1 })
}

func (w *changelogWriter) end(partition int32) int64 {
	w.t.Helper()
	ends, err := kadm.NewClient(w.client).ListEndOffsets(w.t.Context(), w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	o, _ := ends.Lookup(w.topic, partition)
	return o.Offset
}

func (w *changelogWriter) deleteBefore(partition int32, offset int64) {
	w.t.Helper()
	cut := kadm.Offsets{}
	cut.AddOffset(w.topic, partition, offset, -1)
	resps, err := kadm.NewClient(w.client).DeleteRecords(w.t.Context(), cut)
	if err == nil {
		err = resps.Error()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// compacted waits until a partition has gaps. Brokers don't compact what was written last.
func (w *changelogWriter) compacted(partition int32) {
	w.t.Helper()
	if b := w.a.c.Embedded; b != nil {
		b.Cluster().Compact()
	}
	eventually(w.t, "the changelog is compacted", func() bool {
		reader := w.a.c.Client(w.t, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topic: {partition: kgo.NewOffset().At(0)}}))
		defer reader.Close()
		rs := reader.PollFetches(w.t.Context()).Records()
		return len(rs) > 0 && int64(len(rs)) < rs[len(rs)-1].Offset+1
	})
}

func count(key string, n uint64) *kgo.Record {
	return &kgo.Record{Key: []byte(key), Value: binary.BigEndian.AppendUint64(nil, n)}
}

func tombstone(key string) *kgo.Record { return &kgo.Record{Key: []byte(key)} }

// changelogShapes are what changelogs look like from time to time. The count of k after one more record is 1 more than what is restored.
var changelogShapes = []struct {
	name  string
	make  func(w *changelogWriter, partition int32)
	after uint64
}{
	{"empty", func(*changelogWriter, int32) {}, 1},
	{"all deleted", func(w *changelogWriter, p int32) {
		w.write(p, kgo.TryCommit, count("k", 1), count("k", 2))
		w.deleteBefore(p, w.end(p))
	}, 1},
	{"compacted, with gaps", func(w *changelogWriter, p int32) {
		for n := range uint64(40) {
			w.write(p, kgo.TryCommit, count("k", n+1), count("other", n))
			if n == 20 {
				time.Sleep(150 * time.Millisecond) // brokers compact what is in segments that are over
			}
		}
		w.compacted(p)
	}, 41},
	{"only tombstones", func(w *changelogWriter, p int32) {
		w.write(p, kgo.TryCommit, tombstone("k"), tombstone("other"))
	}, 1},
	{"only a transaction's marker", func(w *changelogWriter, p int32) {
		w.write(p, kgo.TryCommit, count("k", 7))
		w.deleteBefore(p, w.end(p)-1)
	}, 1},
	{"ends in an aborted transaction", func(w *changelogWriter, p int32) {
		w.write(p, kgo.TryCommit, count("k", 5))
		w.write(p, kgo.TryAbort, count("k", 100), tombstone("k"))
	}, 6},
	{"only aborted", func(w *changelogWriter, p int32) {
		w.write(p, kgo.TryAbort, count("k", 100))
	}, 1},
}

// Whatever a changelog looks like, its restore ends at once, with what was committed.
func TestRestoreOfEveryShape(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "shapes")
		partitions := int32(len(changelogShapes))
		a.create("in", partitions)
		a.create("out", 1)
		a.createWith("counts-changelog", partitions, map[string]string{
			"cleanup.policy": "compact,delete", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "86400000"})
		w := &changelogWriter{t, a, a.topic("counts-changelog"), c.Client(t, kgo.TransactionalID("shapes-writer"), kgo.RecordPartitioner(kgo.ManualPartitioner()))}
		for p, shape := range changelogShapes {
			shape.make(w, int32(p))
		}
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.String).GroupByKey().
			Count(topology.Store("counts"), topology.ChangelogConfig("cleanup.policy", "compact,delete")). // so that the test may delete
			ToStream().To(a.topic("out"))
		out := a.read("out")
		i := a.start(build(b), "i1")
		i.await(t, "all restores have ended", func(s Stats) bool {
			for _, task := range s.Tasks {
				if !task.Running || task.Restore.Active || task.Restore.Left > 0 {
					return false
				}
			}
			return len(s.Tasks) == int(partitions)
		})
		client := c.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		for p, shape := range changelogShapes {
			had := len(out.all())
			r := &kgo.Record{Topic: a.topic("in"), Partition: int32(p), Key: []byte("k"), Value: []byte("v")}
			if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
			eventually(t, shape.name+": the count comes out", func() bool { return len(out.all()) > had })
			if got := binary.BigEndian.Uint64(out.all()[had].Value); got != shape.after {
				t.Errorf("%s: the count is %d, want %d", shape.name, got, shape.after)
			}
		}
		i.stop(t)
	})
}

// countsOfTwo is a topology whose tasks have two stores.
func countsOfTwo(name string) *topology.Plan {
	b := topology.NewBuilder(name)
	in := b.Stream(name+"-in", serde.String, serde.String).GroupByKey()
	in.Count(topology.Store("counts")).ToStream().To(name + "-out")
	in.Count(topology.Store("others"), topology.ChangelogConfig("cleanup.policy", "compact,delete")).ToStream().Filter(func(k string, _ int64) bool { return k == "k0" }).To(name + "-others")
	return build(b)
}

// A store whose changelog begins behind where the store is is built anew, and no other one of the task.
func TestStoreBelowItsChangelogIsBuiltAnewAlone(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "below")
		for _, topic := range []string{"in", "out", "others"} {
			a.create(topic, 1)
		}
		i := a.start(countsOfTwo(a.name), "i1")
		out, others := a.read("out"), a.read("others")
		a.produce("in", 1, numbered(50, 50)...)
		eventually(t, "all is counted", func() bool { return total(out.lastCounts()) == 50 && total(others.lastCounts()) == 1 })
		i.stop(t)

		w := &changelogWriter{t, a, a.name + "-others-changelog", c.Client(t, kgo.TransactionalID("below-writer"), kgo.RecordPartitioner(kgo.ManualPartitioner()))}
		w.write(0, kgo.TryCommit, count("k0", 1), count("k0", 41))
		w.deleteBefore(0, w.end(0)-2) // the last record, and the marker, are left
		var log events
		i = a.start(countsOfTwo(a.name), "i1", OnRestore(log.add))
		a.produce("in", 1, "again") // of k0
		eventually(t, "it is counted", func() bool { return others.lastCounts()["k0"] == 42 && out.lastCounts()["k0"] == 2 })
		i.stop(t)
		if n, records := log.count(RestoreEnded, false); n != 1 || records != 1 {
			t.Errorf("%d restores with %d records, want one with the record that is left", n, records)
		}
	})
}

// A restore that is broken off in order goes on where it was, and says meanwhile how far it is.
func TestRestoreGoesOnAfterAStop(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "brokenoff")
	a.create("in", 1)
	a.create("out", 1)
	a.createWith("counts-changelog", 1, map[string]string{"cleanup.policy": "compact"})
	client := a.c.Client(t, kgo.ProducerBatchCompression(kgo.NoCompression()))
	const keys = 12_000
	padding := strings.Repeat("x", 1000) // of the keys: several fetches
	for n := range keys {
		r := count(fmt.Sprint("k", n, padding), uint64(n))
		r.Topic = a.topic("counts-changelog")
		client.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	plan := func() *topology.Plan {
		b := topology.NewBuilder(a.name)
		b.Stream(a.topic("in"), serde.String, serde.String).GroupBy(func(_, v string) string { return v + padding }, topology.Name("by")).
			Count(topology.Store("counts")).ToStream().To(a.topic("out"))
		return build(b)
	}
	everyBatch := func(c *config) { c.reportEvery = 0 }

	first := make(chan RestoreEvent, 1000)
	var i *instance
	var served map[string]float64 // at the first event
	started := make(chan struct{})
	lines := &logLines{}
	i = a.start(plan(), "i1", everyBatch, Logger(slog.New(slog.NewTextHandler(lines, nil))), OnRestore(func(e RestoreEvent) {
		if e.Phase == RestoreGoesOn {
			<-started
			if served == nil {
				eventually(t, "the restore is seen", func() bool { served = serves(t, i); return served["tributary_restored_records{1_0}"] > 0 })
			}
			i.cancel()
			first <- e
		}
	}))
	close(started)
	e := <-first
	i.stop(t)
	checkServed(t, served, e)
	line := lines.first("state is being restored")
	for _, said := range []string{"task=1_0", fmt.Sprint("records=", e.Records), fmt.Sprint("bytes=", e.Bytes), "records_per_second=", fmt.Sprint("offsets_left=", e.Left), "time_left="} {
		if !strings.Contains(line, said) {
			t.Errorf("the log lacks %s: %s", said, line)
		}
	}
	if e.Records < 1 || e.Left < 1 || e.Records+e.Left != keys || e.Bytes < e.Records*1000 || e.Rate <= 0 || e.TimeLeft <= 0 || e.Took <= 0 {
		t.Errorf("in the middle of the restore: %+v", e)
	}

	var log events
	i = a.start(plan(), "i1", OnRestore(log.add))
	out := a.read("out")
	a.produce("in", 1, "k0", fmt.Sprint("k", keys-1))
	eventually(t, "both are counted", func() bool { return len(out.lastCounts()) == 2 })
	i.stop(t)
	for _, n := range []int{0, keys - 1} {
		if got := out.lastCounts()[fmt.Sprint("k", n, padding)]; got != int64(n+1) {
			t.Errorf("k%d: %d, want %d", n, got, n+1)
		}
	}
	if _, records := log.count(RestoreEnded, false); records < 1 || records > keys-e.Records {
		t.Errorf("%d records are restored after %d of %d were before", records, e.Records, keys)
	}
	for _, e := range log.all {
		if e.Phase == RestoreEnded && e.Records > 0 && (e.Bytes < e.Records*1000 || e.Rate <= 0 || e.Left != 0 || e.TimeLeft != 0) {
			t.Errorf("at the end: %+v", e)
		}
	}
}

// Tasks whose stores are restored keep no other task from going on.
func TestOthersGoOnDuringARestore(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a := newApp(t, c, "beside")
		for _, topic := range []string{"in", "out", "plain", "passed"} {
			a.create(topic, 1)
		}
		plan := func() *topology.Plan {
			b := topology.NewBuilder(a.name)
			b.Stream(a.topic("in"), serde.String, serde.String).GroupByKey().Count(topology.Store("counts")).ToStream().To(a.topic("out"))
			b.Stream(a.topic("plain"), serde.String, serde.String).To(a.topic("passed"))
			return build(b)
		}
		out, passed := a.read("out"), a.read("passed")
		i := a.start(plan(), "i1")
		a.produce("in", 1, "v", "v")
		eventually(t, "counted", func() bool { return len(out.all()) > 0 })
		i.stop(t)

		restoring, goOn := make(chan struct{}), make(chan struct{})
		begun := sync.OnceFunc(func() { close(restoring) })
		i = a.start(plan(), "i2", OnRestore(func(e RestoreEvent) { // with nothing on its disk
			if e.Phase == RestoreBegan {
				begun()
				<-goOn
			}
		}))
		<-restoring
		a.produce("plain", 1, "beside it")
		eventually(t, "the other task goes on", func() bool { return len(passed.all()) == 1 })
		before := len(out.all())
		close(goOn)
		a.produce("in", 1, "v")
		eventually(t, "the restored one follows", func() bool { return len(out.all()) > before })
		i.stop(t)
	})
}
