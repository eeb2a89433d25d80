package verify

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/processors"
)

// Config says what is compared.
type Config struct {
	Table       string // place
	Client      []kgo.Opt
	Topic       string
	DeadLetters string // topic; empty: none
	// Progress, if it is set, is called now and then: what is read, and how much of it so far.
	Progress func(what string, n int64)
	// Waits, if it is set, is called before Table waits for the end of transactions that are open in a topic.
	Waits func(topic string)
}

// progressEvery is how many rows or records lie between two calls of Progress.
const progressEvery = 100_000

func (c *Config) progress(what string, n int64) {
	if c.Progress != nil && n%progressEvery == 0 {
		c.Progress(what, n)
	}
}

func (c *Config) waits(topic string) {
	if c.Waits != nil {
		c.Waits(topic)
	}
}

// Report is what came of it.
type Report struct {
	Records      int64 // committed records in the topic
	Rows         int64 // in the table
	Tombstones   int64 // records with a null value, which make no row
	DeadLettered int64 // records that have a dead letter
	Waiting      int64 // records behind the table's progress, which it says itself that it hasn't landed yet
	Outlived     int64 // rows whose record the topic has no more: retention or compaction took it, so nothing can be said of them
	// Faults by kind; each lists at most a few examples.
	Missing, Doubled, Unexplained Fault
}

// Fault counts records of one kind of fault.
type Fault struct {
	Count    int64
	Examples []Coordinates
}

// Coordinates name a record of the topic.
type Coordinates struct {
	Partition int32
	Offset    int64
}

func (c Coordinates) String() string {
	return fmt.Sprintf("partition %d offset %d", c.Partition, c.Offset)
}

const maxExamples = 5

func (f *Fault) add(c Coordinates) {
	f.Count++
	if len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, c)
	}
}

// OK reports whether every record is accounted for, once.
func (r *Report) OK() bool { return r.Missing.Count+r.Doubled.Count+r.Unexplained.Count == 0 }

// Table compares a table with its topic, up to where the table says that it has come. Where the table's rows come through an internal topic, its
// application's committed offsets say how far it has read, and what the internal topic has behind the table's progress waits, too. Where
// neither says anything of the topic, everything must have landed.
//
// Writers may go on meanwhile: the progress is read before the rows. Dead letters and the internal topic are read up to the ends that they have for
// anybody: where transactions are open in them, Table waits for their ends.
func Table(ctx context.Context, cfg Config) (*Report, error) {
	r := &Report{}
	bound, err := progress(ctx, cfg)
	if err != nil {
		return nil, err
	}
	waiting := offsets{}
	if bound == nil {
		b, err := lookBehind(ctx, cfg)
		if err != nil {
			return nil, err
		}
		if b != nil {
			bound, waiting = b.bound, b.waiting
		}
	}
	landed, err := readTable(ctx, cfg, r)
	if err != nil {
		return nil, err
	}
	dead, err := readDeadLetters(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for rec, err := range Committed(ctx, cfg.Client, cfg.Topic) {
		if err != nil {
			return nil, fmt.Errorf("read topic %s: %w", cfg.Topic, err)
		}
		r.account(rec, landed, dead, waiting, bound)
		cfg.progress("records of the topic", r.Records)
	}
	h, err := look(ctx, cfg)
	if err != nil {
		return nil, err
	}
	landed.each(func(c Coordinates) { // what is left was not in the topic
		if h.took(c.Partition, c.Offset) {
			r.Outlived++
			return
		}
		r.Unexplained.add(c)
	})
	return r, nil
}

func (r *Report) account(rec *kgo.Record, landed, dead, waiting offsets, bound map[int32]int64) {
	r.Records++
	c := Coordinates{rec.Partition, rec.Offset}
	switch {
	case landed.take(c):
	case dead.take(c):
		r.DeadLettered++
	case rec.Value == nil:
		r.Tombstones++
	case waits(rec, bound) || waiting.take(c):
		r.Waiting++
	default:
		r.Missing.add(c)
	}
}

func readTable(ctx context.Context, cfg Config, r *Report) (offsets, error) {
	landed := offsets{}
	for row, err := range lake.ReadRows(ctx, cfg.Table) {
		if err != nil {
			return nil, err
		}
		partition, ok := row[lake.SourcePartition].(int32)
		offset, ok2 := row[lake.SourceOffset].(int64)
		if !ok || !ok2 {
			return nil, fmt.Errorf("table %s has no columns %s and %s, which say where a row comes from: add lake.SourceColumns to its sink",
				cfg.Table, lake.SourcePartition, lake.SourceOffset)
		}
		r.Rows++
		cfg.progress("rows of the table", r.Rows)
		if c := (Coordinates{partition, offset}); !landed.add(c) {
			r.Doubled.add(c)
		}
	}
	return landed, nil
}

// readDeadLetters collects which records of the topic have a dead letter, by the headers of KIP-1034. Those of the table's progress were committed
// before it, perhaps behind a transaction that is still open.
func readDeadLetters(ctx context.Context, cfg Config) (offsets, error) {
	dead := offsets{}
	if cfg.DeadLetters == "" {
		return dead, nil
	}
	for rec, err := range committed(ctx, cfg.Client, cfg.DeadLetters, nil, cfg.waits) {
		if err != nil {
			return nil, fmt.Errorf("read topic %s: %w", cfg.DeadLetters, err)
		}
		header := func(key string) string {
			for _, h := range slices.Backward(rec.Headers) {
				if h.Key == key {
					return string(h.Value)
				}
			}
			return ""
		}
		if header(processors.HeaderErrorTopic) != cfg.Topic {
			continue
		}
		partition, err1 := strconv.ParseInt(header(processors.HeaderErrorPartition), 10, 32)
		offset, err2 := strconv.ParseInt(header(processors.HeaderErrorOffset), 10, 64)
		if err1 == nil && err2 == nil {
			dead.add(Coordinates{int32(partition), offset})
		}
	}
	return dead, nil
}

// Committed yields the committed records of a topic, from its beginning to the end that it has now.
func Committed(ctx context.Context, opts []kgo.Opt, topic string) iter.Seq2[*kgo.Record, error] {
	return committed(ctx, opts, topic, nil, nil)
}

// committed is Committed from given offsets on, where the topic still has them; partitions without one are read from their beginning. Transactions that
// are open hide what others have committed behind their beginnings: with waits it goes on through them, and calls waits first if it must wait for
// their ends. One that a killed writer leaves stays open until its timeout.
func committed(ctx context.Context, opts []kgo.Opt, topic string, from map[int32]int64, waits func(topic string)) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		client, err := kgo.NewClient(append(slices.Clone(opts), kgo.KeepControlRecords(),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
		if err != nil {
			yield(nil, err)
			return
		}
		defer client.Close()
		open, err := bounds(ctx, client, topic, from, waits)
		if err != nil {
			yield(nil, err)
			return
		}
		if len(open) == 0 {
			return
		}
		starts := map[int32]kgo.Offset{}
		for p := range open {
			starts[p] = kgo.NewOffset().AtStart()
			if at, ok := from[p]; ok {
				starts[p] = kgo.NewOffset().At(at) // purged meanwhile: the reset leads to the start
			}
		}
		client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts})
		for len(open) > 0 {
			fetches := client.PollFetches(ctx)
			if errs := fetches.Errors(); len(errs) > 0 {
				yield(nil, errs[0].Err)
				return
			}
			for it := fetches.RecordIter(); !it.Done(); {
				rec := it.Next()
				end, ok := open[rec.Partition]
				if !ok || rec.Offset >= end {
					continue
				}
				if !rec.Attrs.IsControl() && !yield(rec, nil) {
					return
				}
			}
			closeFinished(fetches, open)
		}
	}
}

// closeFinished takes out the partitions whose last fetched record reaches their end. Where a transaction ends a partition, aborted or
// not, that is its marker.
func closeFinished(fetches kgo.Fetches, open map[int32]int64) {
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if n := len(p.Records); n > 0 && p.Records[n-1].Offset+1 >= open[p.Partition] {
			delete(open, p.Partition)
		}
	})
}

// bounds returns the end of each partition that has something from the given offsets on, as committed wants it.
func bounds(ctx context.Context, client *kgo.Client, topic string, from map[int32]int64, waits func(topic string)) (map[int32]int64, error) {
	admin := kadm.NewClient(client)
	starts, err := listed(admin.ListStartOffsets(ctx, topic))
	if err != nil {
		return nil, err
	}
	ends, err := listed(admin.ListEndOffsets(ctx, topic))
	if err != nil {
		return nil, err
	}
	stable, err := listed(admin.ListCommittedOffsets(ctx, topic)) // after the ends, so that what lies between is of open transactions
	if err != nil {
		return nil, err
	}
	open, hidden := map[int32]int64{}, false
	ends.Each(func(end kadm.ListedOffset) {
		begin, _ := starts.Lookup(topic, end.Partition)
		to := end.Offset
		if s, ok := stable.Lookup(topic, end.Partition); ok && waits == nil {
			to = min(to, s.Offset)
		} else {
			hidden = hidden || ok && s.Offset < to
		}
		if max(begin.Offset, from[end.Partition]) < to {
			open[end.Partition] = to
		}
	})
	if hidden {
		waits(topic)
	}
	return open, nil
}

// listed takes the errors of partitions for that of all.
func listed(offsets kadm.ListedOffsets, err error) (kadm.ListedOffsets, error) {
	if err == nil {
		err = offsets.Error()
	}
	return offsets, err
}
