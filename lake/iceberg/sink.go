package iceberg

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/tributary-io/tributary/lake/rows"
	"github.com/tributary-io/tributary/lake/sink"
)

// tableSink is what Table returns. It is bound once, when the topology is built, and may be opened by many instances.
type tableSink struct {
	name    string
	ident   []string
	catalog Catalog
	opts    options
	// Set by Bind:
	layout     *rows.Layout
	partitions []Transform // of the options and of struct tags
}

// Table makes a sink of an Iceberg table. name is the table's name in the catalog with its namespace, such as
// "streaming.playback_events". Namespace and table are made when the sink is first opened, if they aren't there.
//
// Columns are the fields of the stream's value type (see package lake/columns/gorows for names, tags and types), or those of an
// Avro schema given by AvroValue. Options add columns and say how the table is made.
func Table(name string, catalog Catalog, opts ...Option) sink.Sink {
	s := &tableSink{name: name, ident: strings.Split(name, "."), catalog: catalog, opts: options{Options: rows.Options{ValueName: "value"}}}
	for _, o := range opts {
		o(&s.opts)
	}
	return s
}

// String implements sink.Sink.
func (s *tableSink) String() string { return "iceberg:" + s.catalog.String() + "/" + s.name }

// Bind implements sink.Sink.
func (s *tableSink) Bind(key, value reflect.Type) error {
	l, errs := rows.New(&s.opts.Options, key, value)
	errs = append(errs, s.opts.errs...)
	if len(s.ident) < 2 || strings.Contains("."+s.name+".", "..") {
		errs = append(errs, fmt.Errorf("the name %q lacks a namespace: write namespace.table", s.name))
	}
	if l != nil {
		errs = append(errs, s.declarePartitions(l)...)
	}
	if len(errs) > 0 {
		return fmt.Errorf("table %s can't hold the stream's rows:\n%w", s.name, errors.Join(errs...))
	}
	s.layout = l
	return nil
}

// declarePartitions adds what struct tags say, and checks that the transforms suit their columns.
func (s *tableSink) declarePartitions(l *rows.Layout) (errs []error) {
	var all []Transform
	for _, column := range l.Partitions {
		all = append(all, Identity(column))
	}
	all = append(all, s.opts.partitions...)
	for _, t := range all {
		i := l.Schema.Index(t.column)
		if i < 0 {
			errs = append(errs, fmt.Errorf("PartitionBy: there is no column %q", t.column))
			continue
		}
		if typ := &l.Schema.Fields[i].Type; !t.suits(typ) {
			errs = append(errs, fmt.Errorf("PartitionBy: %s doesn't work on column %s of type %s", t, t.column, typ))
		}
	}
	if s.partitions = all; len(errs) > 0 {
		return errs
	}
	return s.checkNewTable(l)
}

// checkNewTable lets iceberg-go check what a new table would be.
func (s *tableSink) checkNewTable(l *rows.Layout) []error {
	schema := newSchema(l.Schema.Fields)
	spec, err := partitionSpec(schema, s.partitions)
	if err == nil {
		_, err = table.NewMetadata(schema, spec, table.UnsortedSortOrder, "file:///", s.tableProperties(l))
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

// Open implements sink.Sink.
func (s *tableSink) Open(ctx context.Context, env sink.Env) (sink.Writer, error) {
	if s.layout == nil {
		return nil, fmt.Errorf("table %s is opened before it is bound to the stream's types", s.name)
	}
	return openWriter(ctx, s, env)
}
