package learning

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/topology"
)

// Product is a data product: an application with a cursor of its own.
type Product struct {
	Name      string // on the command line
	Principal string // the user that it runs as, on a cluster with ACLs
	Plan      *topology.Plan
	Handlers  processors.Handlers
	Writes    []string // topics that the plan doesn't know: dead letters
	Queries   bool     // its stores can be asked over HTTP
}

// Products are all of them. lake is a folder or the URL of an object store.
func Products(lake string) ([]Product, error) {
	var all []Product
	add := func(p Product, err error, declared *topology.Plan) error {
		p.Plan = declared
		all = append(all, p)
		return err
	}
	landing, err := Landing(lake)
	errs := add(Product{Name: "landing", Principal: "User:learning-landing", Handlers: deadLetters(ProgressDeadLetters), Writes: []string{ProgressDeadLetters}}, err, landing)
	activity, err := ActivityTile()
	errs = errors.Join(errs, add(Product{Name: "activity", Principal: "User:learning-activity", Handlers: skipRejected()}, err, activity))
	distinct, err := DistinctTile()
	errs = errors.Join(errs, add(Product{Name: "activity-distinct", Principal: "User:learning-activity-distinct", Handlers: skipRejected()}, err, distinct))
	cohort, err := Cohort(lake)
	errs = errors.Join(errs, add(Product{Name: "cohort", Principal: "User:learning-cohort", Handlers: deadLetters(EnrollmentDeadLetters),
		Writes: []string{EnrollmentDeadLetters}, Queries: true}, err, cohort))
	quality, err := Auditor()
	errs = errors.Join(errs, add(Product{Name: "quality", Principal: "User:learning-quality"}, err, quality))
	return all, errs
}

// Pick finds products by their names; none is all of them.
func Pick(all []Product, names ...string) ([]Product, error) {
	if len(names) == 0 {
		return all, nil
	}
	var picked []Product
	for _, name := range names {
		i := slices.IndexFunc(all, func(p Product) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no product %q", name)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// Setting is where the products run.
type Setting struct {
	Brokers []string
	Client  []kgo.Opt // TLS, SASL
	Dir     string    // local state, one folder for each product
	HTTP    string    // host and port for the products that can be asked; empty for none
	Batches time.Duration
	Log     *slog.Logger
}

// Engine makes an instance of a product.
func (s Setting) Engine(p Product) (*engine.Engine, error) {
	opts := []engine.Option{
		engine.Brokers(s.Brokers...), engine.Client(s.Client...), engine.StateDir(filepath.Join(s.Dir, "state", p.Name)), engine.ErrorHandlers(p.Handlers),
		engine.Logger(s.Log.With("product", p.Name)), engine.Lake(engine.LakeBatches{Every: s.Batches}),
	}
	if p.Queries && s.HTTP != "" {
		opts = append(opts, engine.HTTP(s.HTTP), engine.Queries())
	}
	return engine.New(p.Plan, opts...)
}

// Run runs an instance of each product until ctx ends, or one of them fails.
func (s Setting) Run(ctx context.Context, products []Product) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range products {
		e, err := s.Engine(p)
		if err != nil {
			return fmt.Errorf("product %s: %w", p.Name, err)
		}
		g.Go(func() error {
			if err := e.Run(ctx); err != nil {
				return fmt.Errorf("product %s: %w", p.Name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// Lags tell for each product how many records of its topics, internal ones included, its group has still to commit. What is behind a transaction that a killed
// product has left open counts, too.
func (s Setting) Lags(ctx context.Context, products []Product) (map[string]int64, error) {
	client, err := kgo.NewClient(clientOptions(s.Brokers, s.Client)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	out := map[string]int64{}
	for _, p := range products {
		topics := append(p.Plan.Sources(), readInternal(p.Plan)...)
		ends, err := admin.ListEndOffsets(ctx, topics...)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			return nil, fmt.Errorf("product %s: end offsets: %w", p.Name, err)
		}
		committed, err := admin.FetchOffsets(ctx, p.Plan.ApplicationID())
		if err != nil {
			return nil, fmt.Errorf("product %s: committed offsets: %w", p.Name, err)
		}
		lag := int64(0)
		ends.Each(func(end kadm.ListedOffset) {
			at := int64(0)
			if o, ok := committed.Lookup(end.Topic, end.Partition); ok {
				at = max(at, o.At)
			}
			lag += max(0, end.Offset-at)
		})
		out[p.Name] = lag
	}
	return out, nil
}

// readInternal are the internal topics that a plan reads again: those it repartitions by, and those before a table that has them to itself.
func readInternal(p *topology.Plan) (topics []string) {
	for _, t := range p.InternalTopics() {
		if strings.HasSuffix(t, "-repartition") || strings.HasSuffix(t, "-lake") {
			topics = append(topics, t)
		}
	}
	return topics
}

// AwaitCaughtUp waits until the products have committed all that is there, and nothing comes any more.
func (s Setting) AwaitCaughtUp(ctx context.Context, products []Product) error {
	const still = 3 // looks without a lag
	for quiet := 0; quiet < still; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
		lags, err := s.Lags(ctx, products)
		quiet++
		for _, lag := range lags {
			if lag > 0 {
				quiet = 0
			}
		}
		if err != nil { // topics are still being made
			s.Log.Debug("can't tell the lag yet", "error", err)
			quiet = 0
		}
	}
	return nil
}
