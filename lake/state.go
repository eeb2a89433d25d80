package lake

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/keyed"
	"github.com/tributary-io/tributary/lake/rows"
	"github.com/tributary-io/tributary/lake/sink"
)

// LSN is a position in PostgreSQL's log: a number, written as two hex halves such as 16/B374D848. In a struct's field it becomes a column of text
// that OrderBy compares as numbers.
type LSN = keyed.LSN

// ParseLSN reads an LSN, such as 16/B374D848.
func ParseLSN(s string) (LSN, error) { return keyed.ParseLSN(s) }

// stateOptions say how a stream of changes becomes a table of current state.
type stateOptions struct {
	keys    []string
	order   string
	deletes []deleteRule
	dir     string
	vectors bool

	remembers bool // RememberDeletions was called
	remember  int
}

// deleteRule is one call of DeleteWhere.
type deleteRule struct {
	column string
	values []any
}

// CurrentState makes the table one of current state: instead of appending each record, the sink keeps one row for each key, that of the newest
// change. keys are the columns that make up the key, none of them null; without any the column of KeyColumn is the key.
//
// A null value deletes the row of its key, if the key is that of the record (KeyColumn); DeleteWhere names other changes that delete. Without
// OrderBy the newest change is the last one in the topic. See docs/semantics/current-state.md.
func CurrentState(keys ...string) Option {
	return func(o *options) { o.stateOptions().keys = append(o.stateOptions().keys, keys...) }
}

// OrderBy says by which column of a CurrentState sink a change is newer than another one of the same key, wherever they stand in the topic: a
// column of integers, dates or timestamps, or of text that holds LSNs, which are compared as the numbers that they are. An older change than
// the one that the table has is dropped, and so is one that is older than the row's deletion: the table remembers that. Of two equal ones the
// later in the topic counts.
func OrderBy(column string) Option {
	return func(o *options) { o.stateOptions().order = column }
}

// DeleteWhere says which changes of a CurrentState sink delete their key's row: those with one of the values, texts or booleans, in the column,
// such as DeleteWhere("op", "delete"). Other columns of such a change don't count, apart from the key and the order.
func DeleteWhere(column string, values ...any) Option {
	return func(o *options) {
		s := o.stateOptions()
		s.deletes = append(s.deletes, deleteRule{column, values})
	}
}

// RememberDeletions bounds how many deletions a CurrentState sink with OrderBy remembers: those of the greatest orders, at most about a quarter more
// than a number. Without it all are kept for good. Once some have been forgotten, a change of a key that has no row is dropped if its order is lower
// than theirs, since nobody knows any more whether it was deleted: so no change brings a deleted row back, but one that really is new and comes that
// late is lost. The log and the commit's metric numChangesBeyondHorizon tell of each. Choose it by how many rows are deleted in the time by which
// changes can be late.
func RememberDeletions(atMost int) Option {
	return func(o *options) {
		s := o.stateOptions()
		s.remembers, s.remember = true, atMost
	}
}

// IndexDir is a folder on a local disk for the index of a CurrentState sink, which no other sink or process may use. Without it the index is
// held in memory, and in a temporary folder from 500,000 keys on, and is built from the table whenever the sink is opened: about a second for
// each million rows. With it only what was changed since is read.
func IndexDir(dir string) Option {
	return func(o *options) { o.stateOptions().dir = dir }
}

// DeletionVectors makes a CurrentState sink's new table one with deletion vectors: rows that are replaced or deleted are marked in small files
// beside their data file, in place of writing the data file anew without them. That is much cheaper, but only readers that know deletion
// vectors can read the table. An existing table has them or not, whatever is declared.
func DeletionVectors() Option {
	return func(o *options) { o.stateOptions().vectors = true }
}

func (o *options) stateOptions() *stateOptions {
	if o.state == nil {
		o.state = &stateOptions{}
	}
	return o.state
}

// state is a bound CurrentState sink's knowledge of its columns. It is immutable.
type state struct {
	keys    []stateColumn
	ofKey   bool // the key is the record's: null values delete
	order   stateColumn
	ordered bool
	deletes []stateDelete
}

// stateColumn is a top-level column.
type stateColumn struct {
	name  string
	at    int // number among the builder's columns
	kind  columns.Kind
	scale int // of a decimal
}

type stateDelete struct {
	stateColumn
	texts []string
	truth []bool // for a boolean column
}

// newState finds the columns, and returns every problem.
func newState(o *options, l *layout) (*state, []error) {
	so := o.state
	if len(so.keys) == 0 && so.order == "" && len(so.deletes) == 0 && o.KeyName == "" {
		return nil, []error{errors.New("CurrentState: name the key's columns, or add the record's key with KeyColumn")}
	}
	s := &state{}
	var errs []error
	names := so.keys
	if len(names) == 0 {
		names = []string{o.KeyName}
	}
	s.ofKey = len(names) == 1 && names[0] == o.KeyName
	for i, name := range names {
		c, kind, err := l.top("CurrentState", name)
		switch {
		case err != nil:
			errs = append(errs, err)
		case slices.Contains(names[:i], name):
			errs = append(errs, fmt.Errorf("CurrentState: column %s is named twice", name))
		case !keyed.CanKey(kind):
			errs = append(errs, fmt.Errorf("CurrentState: column %s of type %s can't be part of a key", name, kind))
		}
		s.keys = append(s.keys, c)
	}
	if so.order != "" {
		c, kind, err := l.top("OrderBy", so.order)
		if err == nil && !keyed.CanOrder(kind) {
			err = fmt.Errorf("OrderBy: column %s of type %s can't order changes: integers, dates, timestamps and texts of LSNs can", so.order, kind)
		}
		if err != nil {
			errs = append(errs, err)
		}
		s.order, s.ordered = c, true
	}
	for _, rule := range so.deletes {
		d, err := rule.bind(l)
		if err != nil {
			errs = append(errs, err)
		}
		s.deletes = append(s.deletes, d)
	}
	switch {
	case so.remembers && so.order == "":
		errs = append(errs, errors.New("RememberDeletions: deletions are remembered with OrderBy only"))
	case so.remembers && so.remember < 1:
		errs = append(errs, fmt.Errorf("RememberDeletions: %d deletions: at least one", so.remember))
	}
	if o.Tombstones {
		errs = append(errs, errors.New("LandTombstones and CurrentState exclude one another: in a table of current state a null value deletes"))
	}
	return s, errs
}

// top finds a column of the topmost level.
func (l *layout) top(option, name string) (c stateColumn, k columns.Kind, err error) {
	i := l.Schema.Index(name)
	if i < 0 {
		return c, 0, fmt.Errorf("%s: there is no column %q", option, name)
	}
	t := &l.Schema.Fields[i].Type
	return stateColumn{name, l.Schema.ColumnOf(i), t.Kind, t.Scale}, t.Kind, nil
}

func (r deleteRule) bind(l *layout) (d stateDelete, err error) {
	var kind columns.Kind
	if d.stateColumn, kind, err = l.top("DeleteWhere", r.column); err != nil {
		return d, err
	}
	for _, v := range r.values {
		switch v := v.(type) {
		case string:
			d.texts = append(d.texts, v)
		case bool:
			d.truth = append(d.truth, v)
		default:
			return d, fmt.Errorf("DeleteWhere: a value of type %T: texts and booleans are allowed", v)
		}
	}
	switch {
	case len(r.values) == 0:
		return d, fmt.Errorf("DeleteWhere: no value is given for column %s", r.column)
	case kind == columns.String && len(d.truth) == 0, kind == columns.Boolean && len(d.texts) == 0:
		return d, nil
	}
	return d, fmt.Errorf("DeleteWhere: column %s of type %s can't have the values %v", r.column, kind, r.values)
}

// keyNames lists the key's columns as JSON.
func (s *state) keyNames() string {
	names := make([]string, len(s.keys))
	for i := range s.keys {
		names[i] = s.keys[i].name
	}
	text, _ := json.Marshal(names) // texts always marshal
	return string(text)
}

// change is one record of a CurrentState sink.
type change struct {
	hash      keyed.Hash
	order     uint64
	row       int32 // in the batch; -1: none
	deleted   bool
	unordered bool // a null value, which says nothing of its order
}

// change reads what the row that is being filled means. Nothing is kept of key.
func (s *state) change(b *columns.Builder, key *[]byte) (c change, err error) {
	i := b.Rows()
	c.row = int32(i)
	if c.hash, err = s.hash(b, key); err != nil {
		return c, err
	}
	if s.ordered {
		if c.order, err = keyed.OrderOfColumn(&b.Columns()[s.order.at], i); err != nil {
			return c, &sink.RowError{Field: s.order.name, Err: err}
		}
	}
	for j := range s.deletes {
		if s.deletes[j].matches(&b.Columns()[s.deletes[j].at], i) {
			c.deleted = true
		}
	}
	return c, nil
}

// hash reads the key of the row that is being filled.
func (s *state) hash(b *columns.Builder, key *[]byte) (keyed.Hash, error) {
	out := (*key)[:0]
	for j := range s.keys {
		var err error
		k := &s.keys[j]
		if out, err = keyed.AppendColumn(out, &b.Columns()[k.at], k.scale, b.Rows()); err != nil {
			return keyed.Hash{}, &sink.RowError{Field: k.name, Err: err}
		}
	}
	*key = out
	return keyed.Sum(out), nil
}

func (d *stateDelete) matches(c *columns.Column, i int) bool {
	if c.IsNullAt(i) {
		return false
	}
	if c.Kind() == columns.Boolean {
		return slices.Contains(d.truth, c.BoolAt(i))
	}
	text := c.BytesAt(i)
	return slices.ContainsFunc(d.texts, func(s string) bool { return s == string(text) })
}

// appendChange takes one record of a CurrentState sink into the batch.
func (b *batch) appendChange(key, value any, meta *sink.Meta) error {
	s := b.w.sink.layout.state
	err := b.w.sink.layout.fill(b.b, b.at, key, value, meta)
	if err == rows.ErrTombstone {
		b.b.Rollback()
		return b.appendTombstone(s, key)
	}
	var c change
	if err == nil {
		c, err = s.change(b.b, &b.key)
	}
	if err != nil {
		b.b.Rollback()
		return err
	}
	if err := b.b.EndRow(); err != nil {
		return err
	}
	b.changes = append(b.changes, c)
	return nil
}

// appendTombstone takes a null value: it deletes the row of the record's key. Where the key is that of the value nobody can tell which row is meant.
func (b *batch) appendTombstone(s *state, key any) error {
	if !s.ofKey {
		return rows.ErrTombstone
	}
	err := b.w.sink.layout.FillKey(b.b, key)
	c := change{row: -1, deleted: true, unordered: true}
	if err == nil {
		c.hash, err = s.hash(b.b, &b.key)
	}
	b.b.Rollback()
	if err == nil {
		b.changes = append(b.changes, c)
	}
	return err
}

// Properties of tables of current state. They tell other sinks what the table is.
const (
	stateOwnerKey = "tributary.currentState.owner" // application id, a slash, and the sink's name
	stateKeysKey  = "tributary.currentState.keys"  // the key's columns, as a JSON list
	stateOrderKey = "tributary.currentState.order" // the order column; not set for none
	// stateEmptiedKey is set by Truncate to the version that it makes: indexes of what was before know that they are.
	stateEmptiedKey = "tributary.currentState.emptied"
)

// properties are those of a table made for the sink.
func (s *state) properties(env *sink.Env) map[string]string {
	p := map[string]string{stateOwnerKey: env.ApplicationID + "/" + env.Name, stateKeysKey: s.keyNames()}
	if s.ordered {
		p[stateOrderKey] = s.order.name
	}
	return p
}

// checkState refuses a table whose rows would be spoiled: one of current state for a sink that appends, or for the sink of another application,
// key or order; and for a CurrentState sink one that isn't such a table.
func (w *writer) checkState(have map[string]string) error {
	refuse := func(reason, advice string) error {
		return &sink.RefusedError{Table: w.sink.place, Reason: reason, Advice: advice}
	}
	s := w.sink.layout.state
	if s == nil {
		if owner, ok := have[stateOwnerKey]; ok {
			return refuse(fmt.Sprintf("it is a table of current state, written by %s, and this sink appends", owner), "land the stream in another table, or declare lake.CurrentState")
		}
		return nil
	}
	owner, ok := have[stateOwnerKey]
	if !ok {
		return refuse("its rows are not current state by key: it was made for appends", "land the stream in a new table")
	}
	for name, want := range s.properties(&w.env) {
		switch got := have[name]; {
		case got == want:
		case name == stateOwnerKey:
			return refuse(fmt.Sprintf("it is written by %s, and a table of current state has one writer, not also %s", owner, want),
				"stop one of the two; to hand the table over, set its property "+stateOwnerKey)
		default:
			return refuse(fmt.Sprintf("its property %s is %s, but the sink declares %s", name, got, want), "declare what the table has, or land the stream in a new table")
		}
	}
	if order, ok := have[stateOrderKey]; ok && !s.ordered {
		return refuse("its rows are ordered by column "+order+", but the sink declares no order", "declare lake.OrderBy, or land the stream in a new table")
	}
	return nil
}

// physicalColumns are the names in data files of the columns of key and order. Under column mapping a column that is missing was renamed or dropped:
// one that was added in its place would be null in every row there is, so that keys would lose their rows.
func (s *state) physicalColumns(md *delta.Metadata) (names []string, err error) {
	all := s.keys
	if s.ordered {
		all = append(slices.Clone(all), s.order)
	}
	for i := range all {
		f, ok := md.Schema.Field(all[i].name)
		if !ok && md.ColumnMapping() != delta.MappingNone {
			return nil, &sink.RefusedError{Reason: fmt.Sprintf("its column %s, by which the sink tells keys or their order, was renamed or dropped", all[i].name),
				Advice: "rename it back, or land the stream in a new table"}
		}
		if !ok {
			f.Name = all[i].name
		}
		names = append(names, md.PhysicalName(f))
	}
	return names, nil
}
