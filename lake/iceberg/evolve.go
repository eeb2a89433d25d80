package iceberg

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/rows"
	"github.com/tributary-io/tributary/lake/sink"
)

// tableProperties are those of a new table. Each commit writes the table's metadata anew, so what a stream would let grow without
// end is bounded: old metadata files are deleted, and manifests are merged.
func (s *tableSink) tableProperties(l *rows.Layout) icebergo.Properties {
	p := icebergo.Properties{
		table.PropertyFormatVersion:               "2",
		table.ManifestMergeEnabledKey:             "true",
		table.MetadataDeleteAfterCommitEnabledKey: "true",
		table.MetadataPreviousVersionsMaxKey:      "100",
		table.ParquetCompressionKey:               "zstd",
	}
	maps.Copy(p, s.declaredProperties(l))
	maps.Copy(p, s.opts.properties)
	return p
}

// declaredProperties say what schema fields can't: the table's comment, the columns' tags, the schema's version.
func (s *tableSink) declaredProperties(l *rows.Layout) icebergo.Properties {
	p := icebergo.Properties{}
	if c := s.opts.comment; c != "" {
		p[commentProperty] = c
	} else if l.Doc != "" {
		p[commentProperty] = l.Doc
	}
	if s.opts.schemaVersion > 0 {
		p[schemaVersionKey] = strconv.FormatInt(s.opts.schemaVersion, 10)
	}
	addTags(p, "", l.Schema.Fields)
	return p
}

func addTags(p icebergo.Properties, path string, fields []columns.Field) {
	for i := range fields {
		f := &fields[i]
		at := columns.Join(path, f.Name)
		for key, value := range f.Metadata {
			if text, err := json.Marshal(value); err == nil && key != "comment" {
				p[tagPrefix+at+"."+key] = string(text)
			}
		}
		switch f.Type.Kind {
		case columns.Struct:
			addTags(p, at, f.Type.Fields)
		case columns.List:
			addTags(p, at, []columns.Field{{Name: "element", Type: f.Type.Elem.Type, Metadata: f.Type.Elem.Metadata}})
		case columns.Map:
			addTags(p, at, []columns.Field{{Name: "value", Type: f.Type.Elem.Type, Metadata: f.Type.Elem.Metadata}})
		}
	}
}

// isOld reports whether the table has seen a newer declared schema than this instance's.
func (w *writer) isOld() bool {
	v := w.sink.opts.schemaVersion
	return v > 0 && v < int64(w.table.Properties().GetInt(schemaVersionKey, 0))
}

// maxPublishes bounds how often the publication of columns loses against other writers.
const maxPublishes = 20

// publish brings the table's columns, comments and tags up to what the sink declares, in one commit of metadata alone, if anything
// differs at all. An instance with an old schema changes nothing.
func (w *writer) publish(ctx context.Context) error {
	for try := range maxPublishes {
		if try > 0 {
			if err := pause(ctx, try); err != nil {
				return w.refused(err)
			}
			if err := w.refresh(ctx); err != nil {
				return w.refused(err)
			}
		}
		changed, err := w.publishOnce(ctx)
		if err == nil {
			if changed {
				w.log.Info("published the declared columns, comments and tags")
			}
			return nil
		}
		if !isLost(err) {
			return w.refused(err)
		}
	}
	return w.refused(fmt.Errorf("the declared columns could not be published: %d other commits came first", maxPublishes))
}

func (w *writer) publishOnce(ctx context.Context) (changed bool, err error) {
	missing, docs, err := compare(w.table.Schema().Fields(), w.schema.Fields())
	if err != nil {
		return false, err
	}
	if w.isOld() {
		if missing {
			return false, &sink.RefusedError{Table: w.sink.name,
				Reason: fmt.Sprintf("it lacks columns of the sink, and remembers a newer schema (version %d) than this instance declares (%d)", w.table.Properties().GetInt(schemaVersionKey, 0), w.sink.opts.schemaVersion),
				Advice: "stop this instance, or declare the newer schema"}
		}
		return false, nil
	}
	properties := w.sink.declaredProperties(w.sink.layout)
	for _, key := range slices.Collect(maps.Keys(properties)) {
		if have, ok := w.table.Properties()[key]; ok && have == properties[key] {
			delete(properties, key)
		}
	}
	if !missing && !docs && len(properties) == 0 {
		return false, nil
	}
	stage := w.stage(w.table.FS)
	tx := stage.table.NewTransaction()
	if missing || docs {
		if err := tx.UpdateSchema(true, false).UnionByNameWith(w.schema).Commit(); err != nil {
			return false, err
		}
	}
	if err := tx.SetProperties(properties); err != nil {
		return false, err
	}
	t, err := tx.Commit(ctx)
	if err != nil {
		return false, stage.outcome(err)
	}
	w.table = w.adopt(t)
	return true, nil
}

// fit finds how the sink's columns are stored in the table as it is now. Columns that the table lacks (someone has dropped them) are
// added again, except by an instance with an old schema.
func (w *writer) fit(ctx context.Context) (*fit, error) {
	missing, _, err := compare(w.table.Schema().Fields(), w.schema.Fields())
	if err != nil {
		return nil, err
	}
	if missing {
		if err := w.publish(ctx); err != nil {
			return nil, err
		}
	}
	return newFit(w.sink.layout.Schema, w.table.Metadata())
}
