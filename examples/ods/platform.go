package ods

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/land"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
)

// Platform is where the parts of the example find one another. It is not changed once it is in use, and may then be used by several goroutines.
type Platform struct {
	Brokers      []string // host:port
	Registry     string   // URL of a Confluent-compatible schema registry
	Lake         string   // folder, or URL of an object store
	Declarations string   // folder, as Init fills it
	State        string   // folder for the sink's identity; one for each instance
	HTTP         string   // address of the sink's metrics and health; empty: none
	Log          *slog.Logger
	// Getenv gives the ODS_SINK_… variables for what isn't set here, such as os.Getenv.
	Getenv func(string) string
}

// Config is the sink's configuration for some of the declared topics.
func (p *Platform) Config(topics ...string) (land.Config, error) {
	declared, err := land.LoadFolder(p.Declarations)
	if err != nil {
		return land.Config{}, err
	}
	cfg := land.Config{Brokers: p.Brokers, Registry: p.Registry, Lake: p.Lake, State: p.State, HTTP: p.HTTP, Log: p.Log}
	for _, topic := range topics {
		i := slices.IndexFunc(declared, func(s land.Stream) bool { return s.Topic == topic })
		if i < 0 {
			return land.Config{}, fmt.Errorf("topic %s is not declared in %s", topic, p.Declarations)
		}
		cfg.Streams = append(cfg.Streams, declared[i])
	}
	return cfg, cfg.Environment(p.Getenv)
}

// Declare makes the topics and subjects of declared streams, or checks those that are there: a schema that its subject's compatibility level
// forbids is refused here.
func (p *Platform) Declare(ctx context.Context, topics ...string) error {
	cfg, err := p.Config(topics...)
	if err != nil {
		return err
	}
	s, err := land.Open(ctx, cfg)
	if err != nil {
		return err
	}
	s.Close()
	return nil
}

// Land lands a topic until ctx ends or, if it is told so, until all that the topic holds now has landed.
func (p *Platform) Land(ctx context.Context, topic string, untilLanded bool) error {
	cfg, err := p.Config(topic)
	if err != nil {
		return err
	}
	if untilLanded {
		cfg.Batch.Every = min(cfg.Batch.Every, time.Second) // nobody waits for a batch to fill
	}
	s, err := land.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	if untilLanded {
		return s.RunUntilLanded(ctx)
	}
	return s.Run(ctx)
}

// Prove sends generated rows of a declared stream through everything and compares each value that comes back.
func (p *Platform) Prove(ctx context.Context, topic string, rows int) (*land.Proof, error) {
	cfg, err := p.Config(topic)
	if err != nil {
		return nil, err
	}
	return land.Prove(ctx, cfg, cfg.Streams[0], land.ProofConfig{Rows: rows, Seed: 1})
}

// Status tells how far a topic has landed.
func (p *Platform) Status(ctx context.Context, topic string) (land.StreamStatus, error) {
	cfg, err := p.Config(topic)
	if err != nil {
		return land.StreamStatus{}, err
	}
	all, err := land.Status(ctx, cfg)
	if err != nil {
		return land.StreamStatus{}, err
	}
	return all[0], nil
}

// place is where a table of the lake is.
func (p *Platform) place(table string) string {
	cfg := land.Config{Lake: p.Lake}
	return cfg.TablePlace(&land.Stream{Table: table})
}

// declared is a stream's declaration.
func (p *Platform) declared(topic string) (schemas.Stream, error) {
	cfg, err := p.Config(topic)
	if err != nil {
		return schemas.Stream{}, err
	}
	return cfg.Streams[0].Stream, nil
}

// producer connects a client that writes to partitions of the caller's choice.
func (p *Platform) producer(opts ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(p.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.ProducerLinger(5 * time.Millisecond), kgo.UnknownTopicRetries(-1)}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("producer for %s: %w", strings.Join(p.Brokers, ","), err)
	}
	return client, nil
}

// registry connects a client of the schema registry.
func (p *Platform) registry() (*serde.Registry, error) { return serde.NewRegistry(p.Registry) }
