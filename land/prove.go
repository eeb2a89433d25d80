package land

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/serde"
)

// ProofConfig says what is proved.
type ProofConfig struct {
	Rows int    // at least 1
	Seed uint64 // the same seed makes the same rows
	Keep bool   // leaves topic, subject and table where they are
}

// Proof is what came of it.
type Proof struct {
	Topic, Table string // of the proof; gone unless they were to be kept
	Rows         int
	Batches      int64 // commits in which they landed
	Differences  []string
	Differing    int // rows with differences, missing ones and ones too many
}

// maxDifferences is how many differences are listed.
const maxDifferences = 10

// coordinates name a record of the proof's topic.
type coordinates struct {
	partition int32
	offset    int64
}

// Prove sends generated rows of a stream's declared schema through a topic, the registry, an engine and a table, all made for this
// alone, and compares what the table has with what was generated. The stream's own topic, subject and table are not touched.
func Prove(ctx context.Context, cfg Config, stream Stream, pc ProofConfig) (_ *Proof, err error) {
	g, err := newGenerator(stream.Schema, pc.Seed)
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", stream.Topic, err)
	}
	name := "prove-" + strings.ToLower(rand.Text()[:8])
	stream.Topic, stream.Table = stream.Topic+"."+name, "_ods/"+name
	stream.DeadLetters, stream.StopOnBadRows = "", true // a generated row that doesn't fit is a fault
	state, err := os.MkdirTemp("", "tributary-"+name+"-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	cfg.Streams, cfg.Group, cfg.State, cfg.HTTP, cfg.Observe = []Stream{stream}, cfg.Group+"-"+name, state, "", 0
	cfg.Batch.Every = min(cfg.Batch.Every, time.Second)
	cfg.Batch.Rows = min(cfg.Batch.Rows, max(1, pc.Rows/3)) // so that there are several commits

	s, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if !pc.Keep {
		defer func() { err = errors.Join(err, s.removeProof(context.WithoutCancel(ctx))) }()
	}
	want, err := s.produce(ctx, &stream, g, pc.Rows)
	if err != nil {
		return nil, err
	}
	if err := s.RunUntilLanded(ctx); err != nil {
		return nil, err
	}
	p := &Proof{Topic: stream.Topic, Table: cfg.TablePlace(&stream), Rows: pc.Rows}
	for _, l := range s.Stats().Lake {
		p.Batches += l.Commits
	}
	return p, p.compare(ctx, want, cfg.RunID())
}

// produce writes the rows, and returns them by where they are.
func (s *Sink) produce(ctx context.Context, stream *Stream, g *generator, rows int) (map[coordinates]map[string]any, error) {
	next, err := s.rowsOf(ctx, stream, g)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.cfg.Brokers...), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.UnknownTopicRetries(-1)}, s.cfg.Client...)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	want := map[coordinates]map[string]any{}
	for done := 0; done < rows; {
		n := min(1000, rows-done)
		records, values := make([]*kgo.Record, n), make(map[*kgo.Record]map[string]any, n)
		for i := range records {
			value, row, err := next()
			if err != nil {
				return nil, err
			}
			records[i] = &kgo.Record{Topic: stream.Topic, Value: value}
			values[records[i]] = row
		}
		if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return nil, fmt.Errorf("produce generated rows: %w", err)
		}
		for r, row := range values {
			want[coordinates{r.Partition, r.Offset}] = row
		}
		done += n
	}
	return want, nil
}

// rowsOf makes generated rows in the stream's format, each with what the table must have of it.
func (s *Sink) rowsOf(ctx context.Context, stream *Stream, g *generator) (next func() ([]byte, map[string]any, error), err error) {
	subject := serde.Subject(stream.Topic, false)
	switch stream.Format {
	case JSON:
		root, err := g.shapeOf(g.root, "")
		return func() ([]byte, map[string]any, error) {
			_, row, err := g.row(nil)
			if err != nil {
				return nil, nil, err
			}
			var value []byte
			if g.rand.IntN(2) == 0 { // some serializers write an id, which counts for nothing
				value = serde.AppendFrame(nil, 1)
			}
			value, err = g.appendJSON(value, root, row)
			return value, row, err
		}, err
	case Protobuf:
		p, err := newProtoGenerator(ctx, g)
		if err != nil {
			return nil, err
		}
		id, err := s.admin.client.RegisterSchema(ctx, subject, sr.Schema{Schema: p.text, Type: sr.TypeProtobuf}, -1, -1)
		if err != nil {
			return nil, fmt.Errorf("register the proof's schema under subject %s: %w", subject, err)
		}
		const firstMessage = 0 // its index
		return func() ([]byte, map[string]any, error) {
			_, row, err := g.row(nil)
			if err != nil {
				return nil, nil, err
			}
			return p.row(append(serde.AppendFrame(nil, int32(id)), firstMessage), row)
		}, nil
	}
	id, err := s.registry.Lookup(ctx, subject, stream.Schema)
	return func() ([]byte, map[string]any, error) { return g.row(serde.AppendFrame(nil, int32(id))) }, err
}

func (p *Proof) compare(ctx context.Context, want map[coordinates]map[string]any, run string) error {
	differ := func(format string, args ...any) {
		p.Differing++
		if len(p.Differences) < maxDifferences {
			p.Differences = append(p.Differences, fmt.Sprintf(format, args...))
		}
	}
	for row, err := range lake.ReadRows(ctx, p.Table) {
		if err != nil {
			return fmt.Errorf("read back: %w", err)
		}
		partition, _ := row[lake.SourcePartition].(int32)
		offset, _ := row[lake.SourceOffset].(int64)
		at := coordinates{partition, offset}
		expected, ok := want[at]
		if !ok {
			differ("partition %d offset %d: a row that nobody sent, or a second time", partition, offset)
			continue
		}
		delete(want, at)
		expected[lake.RunID] = run
		for _, column := range []string{lake.SourcePartition, lake.SourceOffset, lake.SourceTimestamp, lake.CreatedAt, lake.ModifiedAt} {
			expected[column] = row[column]
			if row[column] == nil {
				differ("partition %d offset %d: %s is null", partition, offset, column)
			}
		}
		if column, ok := difference(expected, row); !ok {
			differ("partition %d offset %d: %s is %#v, sent was %#v", partition, offset, column, row[column], expected[column])
		}
	}
	for at := range want {
		differ("partition %d offset %d: it has not landed", at.partition, at.offset)
	}
	return nil
}

// difference names a column in which two rows differ.
func difference(want, got map[string]any) (column string, equal bool) {
	for name := range got {
		if _, ok := want[name]; !ok {
			return name, false
		}
	}
	for name, v := range want {
		w, ok := got[name]
		if !ok || !reflect.DeepEqual(v, w) {
			return name, false
		}
	}
	return "", true
}

// removeProof takes away what was made for the proof.
func (s *Sink) removeProof(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	stream := &s.cfg.Streams[0]
	client := kadm.NewClient(s.client)
	var errs []error
	_, err := client.DeleteTopic(ctx, stream.Topic)
	errs = append(errs, err, s.admin.remove(ctx, serde.Subject(stream.Topic, false)))
	groups := []string{s.cfg.Group, s.cfg.Group + ".dead-letters"}
	if listed, err := client.ListGroups(ctx); err == nil {
		groups = slices.DeleteFunc(groups, func(name string) bool { _, ok := listed[name]; return !ok })
	}
	if len(groups) > 0 {
		_, err = client.DeleteGroups(ctx, groups...)
		errs = append(errs, err)
	}
	if place := s.cfg.TablePlace(stream); !strings.Contains(place, "://") {
		errs = append(errs, os.RemoveAll(filepath.Clean(place)))
	} else {
		s.cfg.Log.Warn("the proof's table stays: remove its folder", "table", place)
	}
	return errors.Join(errs...)
}
