package lake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/sink"
)

// schemaVersionKey is the table property that remembers the newest declared schema of a sink.
const schemaVersionKey = "tributary.schemaVersion"

// spec describes the table for the case that it has to be made.
func (s *deltaSink) spec(env *sink.Env) delta.Spec {
	spec := delta.Spec{Schema: deltaSchema(s.layout.Schema.Fields), Name: s.opts.tableName, Description: s.description(),
		Configuration: maps.Clone(s.opts.properties)}
	for _, i := range s.layout.partitions {
		spec.PartitionColumns = append(spec.PartitionColumns, s.layout.Schema.Fields[i].Name)
	}
	if len(s.opts.published) > 0 {
		if spec.Configuration == nil {
			spec.Configuration = map[string]string{}
		}
		maps.Copy(spec.Configuration, s.opts.published)
	}
	if s.layout.state != nil {
		if spec.Configuration == nil {
			spec.Configuration = map[string]string{}
		}
		maps.Copy(spec.Configuration, s.layout.state.properties(env))
		if s.opts.state.vectors {
			spec.Configuration[vectorsProperty] = "true"
		}
	}
	if s.opts.schemaVersion > 0 {
		if spec.Configuration == nil {
			spec.Configuration = map[string]string{}
		}
		spec.Configuration[schemaVersionKey] = strconv.FormatInt(s.opts.schemaVersion, 10)
	}
	return spec
}

func (s *deltaSink) description() string {
	if s.opts.comment != "" {
		return s.opts.comment
	}
	return s.layout.Doc
}

// publish brings the table's comments, tags and columns up to what the sink declares, in one commit of metadata alone, if
// anything differs at all.
func (w *writer) publish(ctx context.Context) error {
	landed, err := w.table.Commit(ctx, delta.Commit{Metadata: w.declared, Operation: "UPDATE SCHEMA"})
	if err != nil {
		return w.refused(err)
	}
	if landed.MetadataChanged {
		w.log.Info("published the declared columns, comments and tags", "version", landed.Version)
	}
	return nil
}

// declared returns the metadata that the sink wants, given what the table has: current itself if that will do.
func (w *writer) declared(current *delta.Metadata) (*delta.Metadata, error) {
	if w.isOld(current) {
		return w.fits(current)
	}
	schema, err := w.evolve(current)
	if err != nil {
		return nil, err
	}
	out := current
	if schema != current.Schema {
		out = current.WithSchema(schema)
	}
	if d := w.sink.description(); d != "" && d != current.Description {
		out = out.Clone()
		out.Description = d
	}
	for _, name := range slices.Sorted(maps.Keys(w.sink.opts.published)) {
		value := w.sink.opts.published[name]
		if has, ok := out.Configuration[name]; ok && has == value {
			continue
		}
		out = out.Clone()
		if out.Configuration == nil {
			out.Configuration = map[string]string{}
		}
		out.Configuration[name] = value
	}
	if v := w.sink.opts.schemaVersion; v > current.Number(schemaVersionKey, 0) {
		out = out.Clone()
		if out.Configuration == nil {
			out.Configuration = map[string]string{}
		}
		out.Configuration[schemaVersionKey] = strconv.FormatInt(v, 10)
	}
	return out, nil
}

// isOld reports whether the table has seen a newer declared schema than this instance's.
func (w *writer) isOld(current *delta.Metadata) bool {
	v := w.sink.opts.schemaVersion
	return v > 0 && v < current.Number(schemaVersionKey, 0)
}

// fits checks that files of the sink's rows may be added under the table's metadata. Whatever others have added to it, columns,
// comments or properties, stays. Columns that the table lacks (someone has replaced its schema) are added again, except by an
// instance with an old schema.
func (w *writer) fits(current *delta.Metadata) (*delta.Metadata, error) {
	schema, err := w.evolve(current)
	if err != nil || schema == current.Schema {
		return current, err
	}
	if missing := missingColumn("", current.Schema, w.schema); missing != "" {
		if w.isOld(current) {
			return nil, &sink.RefusedError{Table: w.sink.place,
				Reason: fmt.Sprintf("it lacks column %s, and remembers a newer schema (version %d) than this instance declares (%d)", missing, current.Number(schemaVersionKey, 0), w.sink.opts.schemaVersion),
				Advice: "stop this instance, or declare the newer schema"}
		}
		if current.ColumnMapping() != delta.MappingNone {
			// The files that are about to land were written without it: it may have been renamed, or dropped.
			return nil, &sink.RefusedError{Table: w.sink.place, Reason: "it has column mapping, and has lost column " + missing + ", which was renamed or dropped",
				Advice: "declare the new name, or start the sink again to have the column added anew"}
		}
		return current.WithSchema(schema), nil
	}
	return current, nil // only comments and tags differ: they are published when a sink opens, not by batches
}

// evolve returns the table's schema extended by the sink's, or a refusal.
func (w *writer) evolve(current *delta.Metadata) (*delta.StructType, error) {
	if want := w.sink.spec(&w.env).PartitionColumns; !slices.Equal(want, current.PartitionColumns) {
		return nil, &sink.RefusedError{Table: w.sink.place,
			Reason: fmt.Sprintf("its partition columns are %v, but the sink declares %v", current.PartitionColumns, want),
			Advice: "declare the table's partition columns, or land the stream in a new table"}
	}
	if s := w.sink.layout.state; s != nil {
		if _, err := s.physicalColumns(current); err != nil {
			return nil, w.stateRefused(err)
		}
	}
	return delta.Evolve(current.Schema, w.schema)
}

// missingColumn returns the path of a column that the table lacks, "" if it has all.
func missingColumn(path string, table, wanted delta.Type) string {
	switch w := wanted.(type) {
	case *delta.StructType:
		t, ok := table.(*delta.StructType)
		if !ok {
			return path
		}
		for _, f := range w.Fields {
			at := f.Name
			if path != "" {
				at = path + "." + f.Name
			}
			have, ok := t.Field(f.Name)
			if !ok {
				return at
			}
			if m := missingColumn(at, have.Type, f.Type); m != "" {
				return m
			}
		}
	case *delta.ArrayType:
		if t, ok := table.(*delta.ArrayType); ok {
			return missingColumn(path+".element", t.Element, w.Element)
		}
	case *delta.MapType:
		if t, ok := table.(*delta.MapType); ok {
			return missingColumn(path+".value", t.Value, w.Value)
		}
	}
	return ""
}
