package land

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/sink"
	"github.com/tributary-io/tributary/serde"
)

// preparation makes or checks what streams need before they land: topics and subjects. What fails of one stream concerns no other: its table
// isn't opened before it is prepared, and the engine tries that again and again.
type preparation struct {
	client *kadm.Client
	raw    *kgo.Client
	admin  *admin
	log    *slog.Logger

	mu   sync.Mutex
	done map[string]int // versions of the schemas in the registry, by topic
}

func newPreparation(client *kgo.Client, a *admin, log *slog.Logger) *preparation {
	return &preparation{client: kadm.NewClient(client), raw: client, admin: a, log: log, done: map[string]int{}}
}

const preparedAtOnce = 8

// all prepares what can be. The error, of all streams, is nil if that are some.
func (p *preparation) all(ctx context.Context, streams []Stream) error {
	errs := make([]error, len(streams))
	var g errgroup.Group
	g.SetLimit(preparedAtOnce)
	for i := range streams {
		g.Go(func() error {
			_, errs[i] = p.stream(ctx, &streams[i])
			return nil
		})
	}
	_ = g.Wait() // they are in errs
	for i := range streams {
		if errs[i] == nil && ctx.Err() == nil {
			return nil
		}
	}
	return errors.Join(errs...)
}

// stream prepares one, unless that is done, and returns the version of its schema in the registry; 0 if it has none there.
func (p *preparation) stream(ctx context.Context, s *Stream) (version int, err error) {
	p.mu.Lock()
	version, done := p.done[s.Topic]
	p.mu.Unlock()
	if done {
		return version, nil
	}
	if err := p.topics(ctx, s); err != nil {
		return 0, fmt.Errorf("stream %s: %w", s.Topic, err)
	}
	subject := serde.Subject(s.Topic, false)
	if s.Format == Avro {
		version, err = p.admin.register(ctx, subject, s.Schema, s.Compatibility)
	} else {
		err = p.admin.keepLevel(ctx, subject, s.Compatibility)
	}
	if err != nil {
		return 0, fmt.Errorf("stream %s: %w", s.Topic, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[s.Topic] = version
	return version, nil
}

// prepared is the sink of a stream: its table, opened when all that it needs is there.
type prepared struct {
	sink.Sink  // as declared
	cfg        *Config
	stream     *Stream
	source     schemaSource
	with       *preparation
	key, value reflect.Type
}

// Bind implements sink.Sink.
func (p *prepared) Bind(key, value reflect.Type) error {
	p.key, p.value = key, value
	return p.Sink.Bind(key, value)
}

// Open implements sink.Sink.
func (p *prepared) Open(ctx context.Context, env sink.Env) (sink.Writer, error) {
	version, err := p.with.stream(ctx, p.stream)
	if err != nil {
		return nil, err
	}
	table := p.cfg.table(p.stream, p.source, version)
	if err := table.Bind(p.key, p.value); err != nil {
		return nil, err
	}
	return table.Open(ctx, env)
}
