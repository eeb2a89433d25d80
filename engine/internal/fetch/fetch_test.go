package fetch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) { realkafka.Main(m) }

var readConfig = ReadConfig{MaxBytes: 1 << 20, MaxWait: 50 * time.Millisecond}

// write produces values in one transaction and ends it; an id for each topic.
func write(t *testing.T, c *brokertest.Cluster, topic string, commit kgo.TransactionEndTry, values ...string) {
	t.Helper()
	client := c.Client(t, kgo.TransactionalID("writer-"+topic))
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte(v), Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.EndTransaction(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
	client.Close()
}

func high(t *testing.T, c *brokertest.Cluster, p Partition) int64 {
	t.Helper()
	got, err := Bounds(t.Context(), c.Client(t), High, []Partition{p})
	if err != nil {
		t.Fatal(err)
	}
	return got[p]
}

// A span ends by position: behind a marker, behind aborted records, and where only markers are.
func TestReadEndsByPosition(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		p := Partition{"read", 0}
		id := c.CreateTopic(t, p.Topic, 1)
		write(t, c, p.Topic, kgo.TryAbort, "lost")
		write(t, c, p.Topic, kgo.TryCommit, "a", "b")
		write(t, c, p.Topic, kgo.TryAbort, "lost", "lost")
		end := high(t, c, p)
		client := c.Client(t)
		for from := range end + 1 {
			var got []string
			var next int64
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := Read(ctx, client, readConfig, Span{p, id, from, end}, func(rs []*kgo.Record, n int64) error {
				for _, r := range rs {
					got = append(got, string(r.Value))
				}
				next = n
				return nil
			})
			cancel()
			if err != nil || from < end && next != end {
				t.Fatalf("from %d: %v, at %d of %d", from, err, next, end)
			}
			if want := []string{"a", "b"}; from <= 2 && !cmp.Equal(got, want) {
				t.Errorf("from %d: %v, want %v", from, got, want)
			}
		}
	})
}

// Aborted records are left out however little of the log an answer has.
func TestReadInPiecesLeavesOutAborted(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		p := Partition{"pieces", 0}
		id := c.CreateTopic(t, p.Topic, 1)
		write(t, c, p.Topic, kgo.TryCommit, "a")
		write(t, c, p.Topic, kgo.TryAbort, "lost", "lost", "lost")
		write(t, c, p.Topic, kgo.TryCommit, "b")
		for _, bytes := range []int32{1, 100, 200, 300, 400} {
			var got []string
			err := Read(t.Context(), c.Client(t), ReadConfig{MaxBytes: bytes, MaxWait: 50 * time.Millisecond}, Span{p, id, 0, high(t, c, p)}, func(rs []*kgo.Record, _ int64) error {
				for _, r := range rs {
					got = append(got, string(r.Value))
				}
				return nil
			})
			if want := []string{"a", "b"}; err != nil || !cmp.Equal(got, want) {
				t.Errorf("%d bytes at a time: %v, %v, want %v", bytes, got, err, want)
			}
		}
	})
}

// What an open transaction holds back is waited for.
func TestReadWaitsForOpenTransactions(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		p := Partition{"open", 0}
		id := c.CreateTopic(t, p.Topic, 1)
		writer := c.Client(t, kgo.TransactionalID("open"))
		if err := writer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := writer.ProduceSync(t.Context(), &kgo.Record{Topic: p.Topic, Value: []byte("a")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		end := high(t, c, p)
		if end != 1 {
			t.Fatalf("high watermark %d", end)
		}
		done := make(chan error, 1)
		var got []string
		go func() {
			done <- Read(t.Context(), c.Client(t), readConfig, Span{p, id, 0, end}, func(rs []*kgo.Record, _ int64) error {
				for _, r := range rs {
					got = append(got, string(r.Value))
				}
				return nil
			})
		}()
		select {
		case err := <-done:
			t.Fatalf("ended before the transaction did: %v", err)
		case <-time.After(300 * time.Millisecond):
		}
		if err := writer.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || !cmp.Equal(got, []string{"a"}) {
			t.Fatalf("%v %v", got, err)
		}
	})
}

// Fetches after each other lend apply the same records; what keys and values were is not written over.
func TestReadUsesTheRecordsAgain(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		p := Partition{"again", 0}
		id := c.CreateTopic(t, p.Topic, 1)
		var want []string
		for i := range 5 {
			values := []string{fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)}
			want = append(want, values...)
			write(t, c, p.Topic, kgo.TryCommit, values...)
		}
		small := ReadConfig{MaxBytes: 1, MaxWait: 50 * time.Millisecond} // a batch in each fetch
		var kept [][]byte
		lent := map[*kgo.Record]int{}
		err := Read(t.Context(), c.Client(t), small, Span{p, id, 0, high(t, c, p)}, func(rs []*kgo.Record, _ int64) error {
			for _, r := range rs {
				kept = append(kept, r.Value)
				lent[r]++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range kept {
			got = append(got, string(v))
		}
		if !cmp.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if len(lent) == len(want) {
			t.Errorf("%d records of %d fetches had memory of their own each", len(lent), len(want))
		}
	})
}

func TestReadBelowTheLogIsAnError(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		p := Partition{"below", 0}
		id := c.CreateTopic(t, p.Topic, 1)
		client := c.Client(t)
		for range 4 {
			if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: p.Topic, Value: []byte("a")}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		cut := kadm.Offsets{}
		cut.AddOffset(p.Topic, 0, 2, -1)
		if _, err := kadm.NewClient(client).DeleteRecords(t.Context(), cut); err != nil {
			t.Fatal(err)
		}
		nothing := func([]*kgo.Record, int64) error { return nil }
		err := Read(t.Context(), client, readConfig, Span{p, id, 1, 4}, nothing)
		var outside *OutOfRangeError
		if !errors.As(err, &outside) || outside.Start != 2 {
			t.Fatalf("got %v, want out of range with the log's start 2", err)
		}
		starts, err := Bounds(t.Context(), client, Start, []Partition{p, p})
		if err != nil || starts[p] != 2 {
			t.Fatalf("start %v, %v", starts, err)
		}
		stop := errors.New("stop")
		if err := Read(t.Context(), client, readConfig, Span{p, id, 2, 4}, func([]*kgo.Record, int64) error { return stop }); err != stop {
			t.Fatalf("apply's error: got %v", err)
		}
	})
}

// received collects what Inputs deliver.
type received struct {
	mu     sync.Mutex
	values map[Partition][]string
	next   map[Partition]int64
	errs   map[Partition]error
}

func newReceived() *received {
	return &received{values: map[Partition][]string{}, next: map[Partition]int64{}, errs: map[Partition]error{}}
}

func (r *received) deliver(bs []Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range bs {
		for _, rec := range b.Records {
			r.values[b.Partition] = append(r.values[b.Partition], string(rec.Value))
		}
		r.next[b.Partition] = max(r.next[b.Partition], b.Next)
		if b.Err != nil {
			r.errs[b.Partition] = b.Err
		}
	}
}

func (r *received) wait(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		ok := f()
		r.mu.Unlock()
		if ok {
			return
		}
	}
	t.Fatalf("not within a minute: %s; values %v, next %v", what, r.values, r.next)
}

func startInputs(t *testing.T, c *brokertest.Cluster, r *received) *Inputs {
	t.Helper()
	return startInputsWith(t, c, r, 100*time.Millisecond)
}

func startInputsWith(t *testing.T, c *brokertest.Cluster, r *received, wait time.Duration) *Inputs {
	t.Helper()
	in, err := NewInputs(InputsConfig{Client: []kgo.Opt{kgo.SeedBrokers(c.Addrs...), kgo.MetadataMinAge(100 * time.Millisecond)}, MaxBytes: 1 << 20, MaxPartitionBytes: 1 << 20, MaxWait: wait})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { in.Run(ctx, r.deliver); close(done) }()
	t.Cleanup(func() { cancel(); <-done; in.Close() })
	return in
}

func TestInputsReadFromTheirPositions(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		a, b := Partition{"inputs-a", 0}, Partition{"inputs-b", 0}
		c.CreateTopic(t, a.Topic, 1)
		c.CreateTopic(t, b.Topic, 1)
		write(t, c, a.Topic, kgo.TryCommit, "a0", "a1", "a2")
		write(t, c, b.Topic, kgo.TryCommit, "b0")
		r := newReceived()
		in := startInputs(t, c, r)
		in.Add(map[Partition]int64{a: 1})
		r.wait(t, "a from 1, past the marker", func() bool { return r.next[a] == 4 && cmp.Equal(r.values[a], []string{"a1", "a2"}) })
		in.Add(map[Partition]int64{b: 0})
		r.wait(t, "b as well", func() bool { return r.next[b] == 2 && len(r.values[b]) == 1 })
		write(t, c, b.Topic, kgo.TryAbort, "lost")
		r.wait(t, "past aborted records", func() bool { return r.next[b] == 4 && len(r.values[b]) == 1 })
	})
}

// A broker holds a fetch of partitions without records. One that has some doesn't wait for that, and the others are read as well.
func TestIdlePartitionsHoldNobodyUp(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		idle, full, gone := Partition{"idle-none", 0}, Partition{"idle-some", 0}, Partition{"idle-gone", 0}
		for _, p := range []Partition{idle, full, gone} {
			c.CreateTopic(t, p.Topic, 1)
		}
		write(t, c, full.Topic, kgo.TryCommit, "0")
		const held = time.Minute
		r := newReceived()
		in := startInputsWith(t, c, r, held)
		began := time.Now()
		in.AddIdle(map[Partition]int64{gone: 0})
		in.Remove(gone)
		in.AddIdle(map[Partition]int64{idle: 0})
		time.Sleep(idleWait / 2)
		in.Add(map[Partition]int64{full: 0})
		r.wait(t, "what is there", func() bool { return len(r.values[full]) == 1 })
		if took := time.Since(began); took > held/2 {
			t.Errorf("it took %v", took)
		}
		write(t, c, gone.Topic, kgo.TryCommit, "0")
		write(t, c, idle.Topic, kgo.TryCommit, "0")
		removed := 0
		r.wait(t, "what came later", func() bool { removed = len(r.values[gone]); return len(r.values[idle]) == 1 })
		if removed > 0 {
			t.Error("a partition is read that was removed")
		}
	})
}

// Partitions without records are read although nothing else is added.
func TestIdlePartitionsAlone(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		p := Partition{"idle-alone", 0}
		c.CreateTopic(t, p.Topic, 1)
		r := newReceived()
		in := startInputs(t, c, r)
		in.AddIdle(map[Partition]int64{p: 0})
		write(t, c, p.Topic, kgo.TryCommit, "0")
		r.wait(t, "what came later", func() bool { return len(r.values[p]) == 1 })
	})
}

func TestInputsPauseAndRemove(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		p := Partition{"pause", 0}
		c.CreateTopic(t, p.Topic, 1)
		r := newReceived()
		in := startInputs(t, c, r)
		in.Add(map[Partition]int64{p: 0})
		write(t, c, p.Topic, kgo.TryCommit, "0")
		r.wait(t, "the first", func() bool { return len(r.values[p]) == 1 })
		in.Pause(p)
		write(t, c, p.Topic, kgo.TryCommit, "1")
		time.Sleep(300 * time.Millisecond)
		r.wait(t, "nothing while paused", func() bool { return len(r.values[p]) == 1 })
		in.Resume(p)
		r.wait(t, "the second", func() bool { return len(r.values[p]) == 2 })
		in.Remove(p)
		write(t, c, p.Topic, kgo.TryCommit, "2")
		time.Sleep(300 * time.Millisecond)
		r.wait(t, "nothing after the removal", func() bool { return len(r.values[p]) == 2 })
	})
}

// Seeks under load: after each, delivery goes on exactly from there.
func TestSeekLeavesNothingStale(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		p := Partition{"seek", 0}
		c.CreateTopic(t, p.Topic, 1)
		client := c.Client(t, kgo.DefaultProduceTopic(p.Topic))
		const n = 5000
		for i := range n {
			client.Produce(t.Context(), kgo.StringRecord(strconv.Itoa(i)), nil)
		}
		if err := client.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := newReceived()
		in := startInputs(t, c, r)
		in.Add(map[Partition]int64{p: 0})
		for round := range 20 {
			time.Sleep(time.Duration(round%4) * 3 * time.Millisecond)
			at := (round * 37) % 1000
			in.Remove(p) // with Add, what Seek does
			r.mu.Lock()
			r.values[p], r.next[p] = nil, 0
			r.mu.Unlock()
			in.Add(map[Partition]int64{p: int64(at)})
			r.wait(t, fmt.Sprint("records after seek ", round), func() bool { return len(r.values[p]) > 0 })
			r.mu.Lock()
			for i, v := range r.values[p] {
				if v != strconv.Itoa(at+i) {
					t.Fatalf("round %d: record %d after the seek to %d is %s", round, i, at, v)
				}
			}
			r.mu.Unlock()
		}
	})
}

func TestOffsetOutOfRangeIsShown(t *testing.T) {
	brokertest.Each(t, func(t *testing.T, c *brokertest.Cluster) {
		p := Partition{"range", 0}
		c.CreateTopic(t, p.Topic, 1)
		r := newReceived()
		in := startInputs(t, c, r)
		in.Add(map[Partition]int64{p: 77})
		r.wait(t, "an error", func() bool { return r.errs[p] != nil })
	})
}
