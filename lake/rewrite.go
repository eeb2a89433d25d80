package lake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/sink"
)

// RewriteOptions say what Rewrite drops.
type RewriteOptions struct {
	// Properties is the prefix of table properties that are dropped where the sink doesn't give them by Published, such as "ods."; empty: none.
	Properties string
	// Execute does it. Without, the table is only looked at.
	Execute bool
}

// Rewritten is what Rewrite drops, or has dropped.
type Rewritten struct {
	Version    int64    // the table's, after it
	Tags       []string // "column: key", the comment's key among them
	Properties []string
	Done       bool
}

// Rewrite makes a Delta table's metadata what a sink declares, which must have been bound or come from a topology: comments, tags and published
// properties that the declaration has dropped go, which a sink that opens the table leaves alone, since it can't tell them from those of others.
// It is one commit of metadata, no file is touched, and sinks may run meanwhile. Columns that the sink doesn't declare stay as they are.
func Rewrite(ctx context.Context, s sink.Sink, o RewriteOptions) (*Rewritten, error) {
	d, ok := s.(*deltaSink)
	if !ok {
		return nil, fmt.Errorf("table %s: only Delta tables' metadata is rewritten", s)
	}
	if d.layout == nil {
		return nil, fmt.Errorf("table %s: the sink is not bound to a stream's types", d.place)
	}
	w := &writer{sink: d, log: slog.New(slog.DiscardHandler), schema: deltaSchema(d.layout.Schema.Fields), env: sink.Env{Now: time.Now}}
	store := d.opts.store
	var err error
	if store == nil {
		if store, err = openToRead(ctx, d.place); err != nil {
			return nil, err
		}
	}
	if w.table, err = delta.Open(ctx, store, delta.Options{Logger: w.log}); err != nil {
		return nil, w.refused(err)
	}
	out := &Rewritten{Version: w.table.Head().Version}
	rewrite := func(current *delta.Metadata) (*delta.Metadata, error) {
		if w.isOld(current) {
			return nil, &sink.RefusedError{Table: d.place, Reason: "it remembers a newer schema than the one that is declared", Advice: "declare the newer one"}
		}
		wanted, err := w.declared(current)
		if err != nil {
			return nil, err
		}
		schema, tags := delta.DropUndeclared(wanted.Schema, w.schema)
		out.Tags, out.Properties = tags, nil
		if len(tags) > 0 {
			wanted = wanted.WithSchema(schema)
		}
		for _, name := range slices.Sorted(maps.Keys(wanted.Configuration)) {
			if _, given := d.opts.published[name]; o.Properties != "" && strings.HasPrefix(name, o.Properties) && !given {
				out.Properties = append(out.Properties, name)
			}
		}
		if len(out.Properties) > 0 {
			wanted = wanted.Clone()
			for _, name := range out.Properties {
				delete(wanted.Configuration, name)
			}
		}
		if !o.Execute {
			return nil, errDryRun
		}
		return wanted, nil
	}
	landed, err := w.table.Commit(ctx, delta.Commit{Metadata: rewrite, Operation: "REWRITE METADATA"})
	if errors.Is(err, errDryRun) {
		return out, nil
	}
	if err != nil {
		return nil, w.refused(err)
	}
	out.Version, out.Done = landed.Version, true
	return out, nil
}

// errDryRun ends a commit that is only looked at.
var errDryRun = errors.New("only looked at")
