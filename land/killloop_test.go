package land

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/internal/verify"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/schemas"
)

// TestKillLoop lands rows from a real Kafka with three instances, of which one after the other is killed with -9 and started again, and has
// DuckDB look whether each row is there once. `make kill-loop` runs it for long: TRIBUTARY_KILL_ROWS rows over about
// TRIBUTARY_KILL_SECONDS, both with small defaults here.
func TestKillLoop(t *testing.T) {
	rows, seconds := number(t, "TRIBUTARY_KILL_ROWS", 40_000), number(t, "TRIBUTARY_KILL_SECONDS", 6)
	const partitions, badEvery = 6, 10_000
	kafka := realkafka.Shared(t, 1)
	r := readers.Open(t)
	w := newWorld(t, kafka.Addrs(), "")
	s, err := Of(schemas.Stream{Topic: "ods.test.kill_loop", Schema: small, Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	w.cfg.Streams, w.cfg.Group = []Stream{s}, "kill-loop"
	first, err := Open(t.Context(), w.cfg) // makes topic and subject
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	emitted := w.emitPaced(t, &s, rows, badEvery, partitions, time.Duration(seconds)*time.Second)

	args := instanceArgs{Brokers: w.cfg.Brokers, Registry: w.cfg.Registry, Lake: w.cfg.Lake, Group: w.cfg.Group, Topics: []string{s.Topic}, Partitions: partitions,
		Batch: BatchLimits{Every: 500 * time.Millisecond, Rows: 20_000}}
	var instances []*child.Process
	for i := range 3 {
		instances = append(instances, w.childWith(t, fmt.Sprint("instance", i), args))
	}
	began := time.Now()
	kills := 0
	landed := func() int64 {
		_, progress, err := lake.ReadProgress(t.Context(), w.cfg.TablePlace(&s))
		if err != nil {
			return 0 // no table yet
		}
		var sum int64
		for _, p := range progress {
			sum += p.Next
		}
		return sum
	}
	limit := time.Now().Add(10*time.Minute + 4*time.Duration(seconds)*time.Second)
	said := time.Now()
	at, moved := int64(0), time.Now() // what has landed, and when that has grown last
	var last *child.Process           // killed, and started again
	var logged int                    // what it had said until then
	for landed() < rows {
		// Over the same spans an instance is killed while it starts, restores its place, lands, and waits; over longer ones if none of them gets to landing.
		pause := 200*time.Millisecond + rand.N(3*time.Second)
		if stuck := time.Since(moved); stuck > 30*time.Second {
			pause += stuck / 4
		}
		time.Sleep(pause)
		if n := landed(); n > at {
			at, moved = n, time.Now()
		}
		victim := instances[rand.IntN(len(instances))]
		victim.Kill()
		kills++
		last, logged = victim, len(victim.Log())
		if err := victim.Restart(); err != nil {
			t.Fatal(err)
		}
		if time.Since(said) > 15*time.Second {
			said = time.Now()
			t.Logf("%d of %d rows landed, %d kills", landed(), rows, kills)
		}
		if time.Now().After(limit) {
			t.Fatalf("%d of %d rows landed in %v", landed(), rows, time.Since(began))
		}
	}
	took := time.Since(began)
	if err := <-emitted; err != nil {
		t.Fatal(err)
	}
	if last != nil { // before it takes signals, SIGTERM would end it as it ends any program
		eventually(t, "the last one started", func() bool { return len(last.Log()) > logged })
	}
	for _, c := range instances {
		if err := c.Stop(4 * time.Minute); err != nil {
			t.Errorf("ended by SIGTERM: %v", err)
		}
	}
	w.checkEachOnce(t, r, &s, rows, badEvery)
	version, _, err := lake.ReadProgress(t.Context(), w.cfg.TablePlace(&s))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows over %d kills in %.0f s, table version %d: each once", rows, kills, took.Seconds(), version)
}

// checkEachOnce has DuckDB count what is in the table, and our own verification account for each record, the bad ones among them.
func (w *world) checkEachOnce(t *testing.T, r *readers.Readers, s *Stream, rows, badEvery int64) {
	t.Helper()
	bad := rows / badEvery
	var sum int64 // of the ids of good rows
	for n := range rows {
		if n%badEvery != badEvery-1 {
			sum += n
		}
	}
	row := r.DuckDB(t, w.cfg.TablePlace(s), fmt.Sprintf(`select count(*) as n, count(distinct id) as ids, sum(id)::bigint as s, max(id) as last,
		count(distinct %s * 10000000000 + %s) as places from t`, lake.SourcePartition, lake.SourceOffset)).Rows[0]
	want := map[string]int64{"n": rows - bad, "ids": rows - bad, "s": sum, "places": rows - bad}
	for column, v := range want {
		if got := row.Int(t, column); got != v {
			t.Errorf("DuckDB: %s is %d, want %d", column, got, v)
		}
	}
	report, err := verify.Table(t.Context(), verify.Config{Table: w.cfg.TablePlace(s), Topic: s.Topic, DeadLetters: s.DeadLetters, Client: []kgo.Opt{kgo.SeedBrokers(w.cfg.Brokers...)}})
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() || report.Records != rows || report.DeadLettered != bad {
		t.Errorf("verify: %+v", report)
	}
	letters := int64(0)
	for _, err := range verify.Committed(t.Context(), []kgo.Opt{kgo.SeedBrokers(w.cfg.Brokers...)}, s.DeadLetters) {
		if err != nil {
			t.Fatal(err)
		}
		letters++
	}
	if letters != bad {
		t.Errorf("%d dead letters of %d bad records", letters, bad)
	}
}

// emitPaced writes rows with the ids 0, 1, … over about a time. One in badEvery doesn't fit. What ends it comes through the channel.
func (w *world) emitPaced(t *testing.T, s *Stream, rows, badEvery int64, partitions int32, over time.Duration) <-chan error {
	id := w.id(t, s)
	client, err := kgo.NewClient(kgo.SeedBrokers(w.cfg.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(5*time.Millisecond), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	emitted := make(chan error, 1)
	go func() {
		defer client.Close()
		const steps = 200
		began, n := time.Now(), int64(0)
		for step := range int64(steps) {
			for ; n < rows*(step+1)/steps; n++ {
				v := smallValue(id, n)
				if n%badEvery == badEvery-1 {
					v = []byte("bad")
				}
				client.Produce(t.Context(), &kgo.Record{Topic: s.Topic, Partition: int32(n) % partitions, Value: v}, nil)
			}
			time.Sleep(time.Until(began.Add(over * time.Duration(step+1) / steps)))
		}
		emitted <- client.Flush(t.Context())
	}()
	return emitted
}

func number(t *testing.T, variable string, fallback int64) int64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, not a number above zero", variable, text)
	}
	return n
}
