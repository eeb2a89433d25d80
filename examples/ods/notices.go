package ods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/land"
)

// Downstream is what follows the raw table: staging, and what is published of it. Run is told by the sink's notices.
type Downstream struct {
	*Platform
	mu sync.Mutex // one run at a time
}

// Run rebuilds staging and publishes what is new in it.
func (d *Downstream) Run(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	rebuilt, err := d.Rebuild(ctx)
	if err != nil {
		return err
	}
	published, err := d.Publish(ctx)
	d.Log.Info("rebuilt staging", "version", rebuilt.Version, "added", rebuilt.Added, "repeated", rebuilt.Repeated, "published", published)
	return err
}

// ServeHTTP takes a notice of the sink's observer (land.Notice) and runs if it is about the raw table. An answer other than 2xx makes the sink
// give the notice again, so that none is lost; one that is given twice finds nothing to do.
func (d *Downstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n land.Notice
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&n); err != nil {
		http.Error(w, "not a notice: "+err.Error(), http.StatusBadRequest)
		return
	}
	about := false
	for _, t := range n.Tables {
		about = about || t.Topic == OrderTopic
	}
	if about {
		// The sink waits for the answer for half a minute. What takes longer goes on without it.
		if err := d.Run(context.WithoutCancel(r.Context())); err != nil {
			d.Log.Warn("the notice will be given again", "error", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// Pace says how often the sink's observer looks, and how often at most it gives notice of new rows; 0 is the sink's default: a minute, and an hour.
type Pace struct{ Observe, Notice time.Duration }

// Serve runs everything until ctx ends: the sink, its observer, and what the notices set going.
func (p *Platform) Serve(ctx context.Context, pace Pace) error {
	cfg, err := p.Config(OrderTopic)
	if err != nil {
		return err
	}
	if pace.Observe > 0 {
		cfg.Observe = pace.Observe
	} else if cfg.Observe == 0 {
		cfg.Observe = time.Minute
	}
	if pace.Notice > 0 {
		cfg.Notice = pace.Notice
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for notices: %w", err)
	}
	cfg.NoticeURL = "http://" + listener.Addr().String()
	down := &Downstream{Platform: p}
	server := &http.Server{Handler: down, ReadHeaderTimeout: 10 * time.Second}
	s, err := land.Open(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			err = nil // the end came before the beginning
		}
		return errors.Join(err, listener.Close())
	}
	defer s.Close()
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return s.Run(running) })
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve notices: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-running.Done()
		return server.Close()
	})
	g.Go(func() error { // what was noticed while nothing ran here
		if err := down.Run(running); err != nil && running.Err() == nil && !errors.Is(err, lake.ErrNoTable) {
			p.Log.Warn("staging waits for the next notice", "error", err)
		}
		return nil
	})
	err = g.Wait()
	down.mu.Lock() // a run that a notice has set going ends in good order
	defer down.mu.Unlock()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Counts are what the system holds.
type Counts struct {
	Raw, Events    int64 // rows of the raw table, and different events among them
	Staged         int64
	Metadata, Data int // commits of the raw table that changed its metadata only, and that added rows
}

func (c Counts) String() string {
	return fmt.Sprintf("raw: %d rows of %d events in %d commits, and %d commits of metadata alone; staging: %d rows", c.Raw, c.Events, c.Data, c.Metadata, c.Staged)
}

// Count counts rows and commits.
func (p *Platform) Count(ctx context.Context) (c Counts, err error) {
	seen := map[string]struct{}{}
	for row, err := range lake.ReadRows(ctx, p.place(RawTable)) {
		if err != nil {
			return c, fmt.Errorf("raw table: %w", err)
		}
		id, _ := row["event_id"].(string)
		seen[id] = struct{}{}
		c.Raw++
	}
	c.Events = int64(len(seen))
	info, err := lake.Show(ctx, p.place(RawTable), 1<<20)
	if err != nil {
		return c, fmt.Errorf("raw table: %w", err)
	}
	for _, commit := range info.History {
		switch {
		case commit.Added > 0:
			c.Data++
		case commit.Metadata && !strings.HasPrefix(commit.Operation, "CREATE"):
			c.Metadata++
		}
	}
	for _, err := range lake.ReadRows(ctx, p.place(StagingTable)) {
		if errors.Is(err, lake.ErrNoTable) {
			break
		}
		if err != nil {
			return c, fmt.Errorf("staging table: %w", err)
		}
		c.Staged++
	}
	return c, nil
}
