package lake

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/parquetfile"
)

// TestOptimizeRandomTables compacts tables of random columns, of which each file has some only, with partitions and deletion vectors: all rows are there
// afterwards, and each value of them.
func TestOptimizeRandomTables(t *testing.T) {
	tables, moved := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		r := &randomTable{rt: rt, store: object.NewMemory("m")}
		for i := range rapid.IntRange(1, 6).Draw(rt, "columns") {
			r.schema.Fields = append(r.schema.Fields, columns.Field{Name: fmt.Sprint("c", i), Type: r.columnType(2)})
		}
		fields := deltaSchema(r.schema.Fields).Fields
		fields = append(fields, delta.Field{Name: "part", Type: delta.String, Nullable: true})
		spec := delta.Spec{Schema: &delta.StructType{Fields: fields}, PartitionColumns: []string{"part"}, Configuration: map[string]string{"delta.enableDeletionVectors": "true"}}
		var err error
		if r.table, err = delta.Create(ctx, r.store, spec, delta.Options{}); err != nil {
			rt.Fatal(err)
		}
		for i := range rapid.IntRange(2, 6).Draw(rt, "files") {
			r.addFile(i)
		}
		before := rowTexts(t, r.store)
		tables++
		if optimize(t, r.store, OptimizeOptions{}).Rows > 0 {
			moved++
		}
		if after := rowTexts(t, r.store); !slices.Equal(before, after) {
			rt.Fatalf("%s\nbecame\n%s", before, after)
		}
	})
	if moved < tables/4 {
		t.Errorf("of %d tables %d had something to be compacted", tables, moved)
	}
}

// randomTable is a table as it is drawn.
type randomTable struct {
	rt     *rapid.T
	store  object.Store
	table  *delta.Table
	schema columns.Schema
}

func (r *randomTable) columnType(depth int) columns.Type {
	last := columns.Struct
	if depth == 0 {
		last = columns.Decimal
	}
	ty := columns.Type{Kind: columns.Kind(rapid.IntRange(int(columns.Boolean), int(last)).Draw(r.rt, "kind"))}
	switch ty.Kind {
	case columns.Decimal:
		ty.Precision = rapid.SampledFrom([]int{4, 9, 18, 38}).Draw(r.rt, "precision")
		ty.Scale = 2
	case columns.List:
		ty.Elem = &columns.Field{Name: "element", Type: r.columnType(depth - 1)}
	case columns.Map:
		ty.Elem = &columns.Field{Name: "value", Type: r.columnType(depth - 1)}
	case columns.Struct:
		for i := range rapid.IntRange(1, 3).Draw(r.rt, "members") {
			ty.Fields = append(ty.Fields, columns.Field{Name: fmt.Sprint("m", i), Type: r.columnType(depth - 1)})
		}
	}
	return ty
}

// addFile commits a file with some of the columns.
func (r *randomTable) addFile(n int) {
	rt := r.rt
	schema := &columns.Schema{}
	for _, f := range r.schema.Fields {
		if rapid.IntRange(0, 3).Draw(rt, "has") > 0 {
			schema.Fields = append(schema.Fields, f)
		}
	}
	if len(schema.Fields) == 0 {
		schema.Fields = r.schema.Fields[:1]
	}
	b := columns.NewBuilder(schema)
	rows := rapid.IntRange(1, 30).Draw(rt, "rows")
	for range rows {
		at := 0
		for i := range schema.Fields {
			r.value(b, at, &schema.Fields[i].Type)
			at += schema.Fields[i].Type.Width()
		}
		if err := b.EndRow(); err != nil {
			rt.Fatal(err)
		}
	}
	md := r.table.Head().Metadata
	w := fileWriter{ctx: ctx, store: r.store, md: md, opts: parquetfile.Options{Codec: "zstd"}, now: func() time.Time { return time.UnixMilli(int64(n)) }}
	if err := w.write(b.Record()); err != nil {
		rt.Fatal(err)
	}
	add, _, err := w.finish()
	if err != nil {
		rt.Fatal(err)
	}
	part := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "part")
	add.PartitionValues = map[string]*string{"part": &part}
	if rapid.Bool().Draw(rt, "deletes") {
		gone := roaring.New()
		for i := range rows {
			if rapid.IntRange(0, 2).Draw(rt, "gone") == 0 {
				gone.Add(uint32(i))
			}
		}
		if !gone.IsEmpty() {
			vectors, _, err := delta.WriteDeletionVectors(ctx, r.store, []*roaring.Bitmap{gone})
			if err != nil {
				rt.Fatal(err)
			}
			add.DeletionVector = vectors[0]
		}
	}
	if _, err := r.table.Commit(ctx, delta.Commit{Add: []delta.Add{*add}, ReadVersion: r.table.Head().Version}); err != nil {
		rt.Fatal(err)
	}
}

// value appends a value, or null, to a column and those in it.
func (r *randomTable) value(b *columns.Builder, at int, ty *columns.Type) {
	rt, c := r.rt, b.Columns()
	n := rapid.Int64Range(-9, 9).Draw(rt, "n")
	if n == 0 {
		if err := b.AppendNull(at); err != nil {
			rt.Fatal(err)
		}
		return
	}
	switch ty.Kind {
	case columns.Boolean:
		c[at].AppendBool(n > 0)
	case columns.Byte:
		c[at].AppendInt8(int8(n))
	case columns.Short:
		c[at].AppendInt16(int16(n))
	case columns.Integer, columns.Date:
		c[at].AppendInt32(int32(n))
	case columns.Long, columns.Timestamp, columns.TimestampNTZ:
		c[at].AppendInt64(n * 1_000_003)
	case columns.Float:
		c[at].AppendFloat32(float32(n) / 4)
	case columns.Double:
		c[at].AppendFloat64(float64(n) / 3)
	case columns.String:
		c[at].AppendString(fmt.Sprintf("%*s", n, "é"))
	case columns.Binary:
		c[at].AppendBytes([]byte{byte(n), 0})
	case columns.Decimal:
		c[at].AppendDecimal(decimal128.FromI64(n))
	case columns.Struct:
		c[at].AppendStruct()
		at++
		for i := range ty.Fields {
			r.value(b, at, &ty.Fields[i].Type)
			at += ty.Fields[i].Type.Width()
		}
	case columns.List:
		for range max(n, 0) % 4 {
			r.value(b, at+1, &ty.Elem.Type)
		}
		c[at].AppendEnd(&c[at+1])
	case columns.Map:
		for i := range max(n, 0) % 4 {
			c[at+1].AppendString(fmt.Sprint("k", i))
			r.value(b, at+2, &ty.Elem.Type)
		}
		c[at].AppendEnd(&c[at+1])
	}
}
