package lake

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/datafile"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/keyed"
	"github.com/tributary-io/tributary/lake/sink"
)

// scanBatch is how many rows' keys are read at once.
const scanBatch = 32 << 10

// scan reads the keys of files into the index, several files at once.
func (x *stateIndex) scan(ctx context.Context, md *delta.Metadata, files []*stateFile, slots map[uint32]*slot) error {
	if len(files) == 0 {
		return nil
	}
	r, err := newKeyReader(x.state, md)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range files {
		g.Go(func() error {
			if err := x.scanFile(ctx, r, f, slots); err != nil {
				return fmt.Errorf("data file %s: %w", f.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (x *stateIndex) scanFile(ctx context.Context, r *keyReader, f *stateFile, slots map[uint32]*slot) error {
	in, err := datafile.Open(ctx, x.store, r.layout, &f.add)
	if err != nil {
		return err
	}
	defer in.Close()
	f.rows = uint32(in.Rows())
	columns, err := r.bind(&f.add)
	if err != nil {
		return err
	}
	var row uint32
	var key []byte
	changes := make([]keyed.Change, 0, scanBatch)
	for rec, err := range in.AllBatches(ctx, scanBatch) {
		if err != nil {
			return err
		}
		changes = changes[:0]
		for i := range int(rec.NumRows()) {
			at := row + uint32(i)
			if f.gone.Contains(at) {
				continue
			}
			c := keyed.Change{Entry: keyed.Entry{File: f.slots[0].id, Row: at}}
			if key, err = columns.key(key[:0], rec, i); err != nil {
				return err
			}
			if c.Entry.Order, err = columns.orderAt(rec, i); err != nil {
				return err
			}
			c.Hash = keyed.Sum(key)
			changes = append(changes, c)
		}
		row += uint32(rec.NumRows())
		if err := x.take(changes, slots); err != nil {
			return err
		}
	}
	return nil
}

// take puts scanned rows into the index. While it is built for the first time they are put there unseen, and counted afterwards.
func (x *stateIndex) take(changes []keyed.Change, slots map[uint32]*slot) error {
	if x.version >= 0 {
		look := stateIndex{slots: slots}
		hashes := make([]keyed.Hash, len(changes))
		for i := range changes {
			hashes[i] = changes[i].Hash
		}
		twice := false
		err := x.x.Find(hashes, func(i int, have keyed.Entry, ok bool) {
			_, _, live := look.place(have)
			twice = twice || ok && live && have.File != changes[i].Entry.File
		})
		if err != nil {
			return err
		}
		if twice {
			return errDuplicate
		}
	}
	return x.x.Apply(changes, nil)
}

var errDuplicate = &sink.RefusedError{Reason: "two of its rows have the same key: someone else has added rows to this table of current state",
	Advice: "delete one of each two rows, or land the stream in a new table"}

// checkUnique counts the keys after the index was built: as many as there are rows.
func (x *stateIndex) checkUnique(files map[string]*stateFile, slots map[uint32]*slot) error {
	var rows, keys uint64
	for _, f := range files {
		rows += uint64(f.rows) - f.gone.GetCardinality()
	}
	look := stateIndex{slots: slots}
	err := x.x.Each(func(_ keyed.Hash, e keyed.Entry) bool {
		if _, _, ok := look.place(e); ok {
			keys++
		}
		return true
	})
	if err == nil && keys != rows {
		err = errDuplicate
	}
	if err == nil && rows > 0 {
		x.log.Info("read the keys of the table", "rows", rows, "files", len(files))
	}
	return err
}

// keyReader reads the columns of key and order from data files, and nothing else. It is immutable.
type keyReader struct {
	state  *state
	md     *delta.Metadata
	layout *datafile.Layout
}

func (s *state) wants(name string) bool {
	return s.ordered && s.order.name == name || slices.ContainsFunc(s.keys, func(c stateColumn) bool { return c.name == name })
}

func newKeyReader(s *state, md *delta.Metadata) (*keyReader, error) {
	few := &delta.StructType{}
	for _, f := range md.Schema.Fields {
		if s.wants(f.Name) {
			few.Fields = append(few.Fields, f)
		}
	}
	l, err := datafile.NewLayout(md.WithSchema(few))
	return &keyReader{s, md, l}, err
}

// keyColumns are the columns of key and order in one file: places in its batches, or values of partition columns.
type keyColumns struct {
	keys  []keyColumn
	order *keyColumn
}

type keyColumn struct {
	name  string
	at    int // -1: the value is the same for the whole file
	fixed any
	scale int
}

// bind finds the columns for one file.
func (r *keyReader) bind(add *delta.Add) (out keyColumns, err error) {
	one := func(name string) (c keyColumn, err error) {
		c = keyColumn{name: name, at: r.layout.Index(name)}
		if c.at >= 0 {
			return c, nil
		}
		f, ok := r.md.Schema.Field(name)
		if !ok {
			return c, fmt.Errorf("the table has lost its column %s", name)
		}
		if p, ok := f.Type.(delta.Primitive); ok {
			_, c.scale, _ = p.DecimalParts()
		}
		c.fixed, err = delta.ParsePartition(f.Type, r.md.PartitionValue(add, name))
		return c, err
	}
	for i := range r.state.keys {
		c, err := one(r.state.keys[i].name)
		if err != nil {
			return out, err
		}
		out.keys = append(out.keys, c)
	}
	if r.state.ordered {
		c, err := one(r.state.order.name)
		out.order = &c
		return out, err
	}
	return out, nil
}

func (k *keyColumns) key(dst []byte, rec arrow.RecordBatch, i int) (_ []byte, err error) {
	for j := range k.keys {
		c := &k.keys[j]
		if c.at < 0 {
			dst, err = keyed.AppendPartition(dst, c.fixed, c.scale)
		} else {
			dst, err = keyed.AppendArrow(dst, rec.Column(c.at), i)
		}
		if err != nil {
			return dst, fmt.Errorf("column %s, row %d: %w", c.name, i, err)
		}
	}
	return dst, nil
}

func (k *keyColumns) orderOf(rec arrow.RecordBatch, i int) (uint64, error) {
	if k.order.at < 0 {
		return keyed.OrderOfPartition(k.order.fixed)
	}
	return keyed.OrderOfArrow(rec.Column(k.order.at), i)
}

func (k *keyColumns) orderAt(rec arrow.RecordBatch, i int) (uint64, error) {
	if k.order == nil {
		return 0, nil
	}
	o, err := k.orderOf(rec, i)
	if err != nil {
		err = fmt.Errorf("column %s, row %d: %w", k.order.name, i, err)
	}
	return o, err
}
