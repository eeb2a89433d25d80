package iceberg_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"

	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/sink"
)

const wholeDecimals = `{"type":"record","name":"R","fields":[{"name":"n","type":"long"},{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":0}}]}`

// TestWholeDecimalsArePartitionedByNobody refuses what would be written into manifests as decimals without a fraction, which crashes DuckDB and is an error of PyIceberg: when
// it is declared, and in tables that others have made. A bucket of such a column is a number.
func TestWholeDecimalsArePartitionedByNobody(t *testing.T) {
	p := newPlace(t)
	declared := func(by iceberg.Transform) sink.Sink {
		return iceberg.Table("db.t", p.catalog(), iceberg.AvroValue(wholeDecimals, nil), iceberg.PartitionBy(by))
	}
	for _, by := range []iceberg.Transform{iceberg.Identity("d"), iceberg.Truncate(10, "d")} {
		if err := declared(by).Bind(reflect.TypeFor[[]byte](), reflect.TypeFor[[]byte]()); err == nil || !strings.Contains(err.Error(), "doesn't work on column d") {
			t.Errorf("%s: %v", by, err)
		}
	}
	openSink[[]byte, []byte](t, declared(iceberg.Bucket(4, "d")))

	s := iceberg.Table("db.others", p.catalog(), iceberg.AvroValue(wholeDecimals, nil))
	iceberg.WithCatalog(s, func(c catalog.Catalog) catalog.Catalog {
		schema := icebergo.NewSchema(0, icebergo.NestedField{ID: 1, Name: "n", Type: icebergo.PrimitiveTypes.Int64}, icebergo.NestedField{ID: 2, Name: "d", Type: icebergo.DecimalTypeOf(9, 0)})
		spec := icebergo.NewPartitionSpec(icebergo.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "d", Transform: icebergo.IdentityTransform{}})
		if _, err := c.CreateTable(ctx, []string{"db", "others"}, schema, catalog.WithPartitionSpec(&spec)); err != nil && !errors.Is(err, catalog.ErrTableAlreadyExists) {
			t.Fatal(err)
		}
		return c
	})
	_, err := tryOpen[[]byte, []byte](s)
	wantRefused(t, err, "partitioned by identity(d)", "decimal(9, 0)")
}
