package parquetfile

import (
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Options say how files are written.
type Options struct {
	// Codec is "zstd" (the default), "snappy", "gzip", "lz4", "brotli" or "uncompressed", as the table property
	// delta.parquet.compression.codec has them.
	Codec string
	// Level is the compression level; 0 means 1 for zstd and the codec's own default for others.
	Level int
	// RowGroupRows bounds the rows of a row group; 0 means 1,000,000.
	RowGroupRows int64
	// RowGroupBytes is the memory that the rows of a row group of a Stream take, about; 0 means 64 MiB.
	RowGroupBytes int64
}

const (
	defaultRowGroupRows  = 1_000_000
	defaultRowGroupBytes = 64 << 20
	createdBy            = "Tributary (arrow-go)"
)

var codecs = map[string]compress.Compression{"zstd": compress.Codecs.Zstd, "snappy": compress.Codecs.Snappy, "gzip": compress.Codecs.Gzip,
	"lz4": compress.Codecs.Lz4Raw, "lz4_raw": compress.Codecs.Lz4Raw, "brotli": compress.Codecs.Brotli,
	"uncompressed": compress.Codecs.Uncompressed, "none": compress.Codecs.Uncompressed}

// Normalize fills in defaults and lowers the codec's name. It fails for a codec that isn't known.
func (o Options) Normalize() (Options, error) {
	o.Codec = strings.ToLower(o.Codec)
	if o.Codec == "" {
		o.Codec = "zstd"
	}
	if _, ok := codecs[o.Codec]; !ok {
		return o, fmt.Errorf("codec %q of Parquet is not known: zstd, snappy, gzip, lz4, brotli and uncompressed are", o.Codec)
	}
	if o.Level == 0 && o.Codec == "zstd" {
		o.Level = 1
	}
	if o.RowGroupRows <= 0 {
		o.RowGroupRows = defaultRowGroupRows
	}
	if o.RowGroupBytes <= 0 {
		o.RowGroupBytes = defaultRowGroupBytes
	}
	return o, nil
}

// Write writes a batch as one Parquet file. leaves are what Measure found in the same batch.
func Write(w io.Writer, rec arrow.RecordBatch, leaves []Leaf, opts Options) (err error) {
	if opts, err = opts.Normalize(); err != nil {
		return err
	}
	defer rescue(&err)
	fw, err := pqarrow.NewFileWriter(rec.Schema(), noClose{w}, properties(leaves, opts), pqarrow.DefaultWriterProps())
	if err != nil {
		return fmt.Errorf("start a Parquet file: %w", err)
	}
	if err := fw.Write(rec); err != nil {
		return fmt.Errorf("write a Parquet file: %w", err)
	}
	if err := fw.Close(); err != nil {
		return fmt.Errorf("end a Parquet file: %w", err)
	}
	return nil
}

// rescue turns panics into errors: the library panics where a writer fails in some places.
func rescue(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("write a Parquet file: %v", p)
	}
}

// noClose keeps the Parquet writer from closing the object, which its owner does.
type noClose struct{ io.Writer }

func properties(leaves []Leaf, o Options) *parquet.WriterProperties {
	props := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V2_6),
		parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithDictionaryDefault(false),
		parquet.WithStoreDecimalAsInteger(true),
		parquet.WithMaxRowGroupLength(o.RowGroupRows),
		parquet.WithCreatedBy(createdBy),
		parquet.WithRootName("spark_schema"),
		parquet.WithCompression(codecs[o.Codec]),
		parquet.WithPageIndexEnabled(true),
	}
	if o.Level != 0 {
		props = append(props, parquet.WithCompressionLevel(o.Level))
	}
	for i := range leaves {
		l := &leaves[i]
		path := parquet.ColumnPath(l.column)
		if l.dictionary {
			props = append(props, parquet.WithDictionaryPath(path, true))
		}
		if l.HasNaN {
			// Footers leave NaN out of their bounds, and readers for which NaN is the greatest number would skip it.
			props = append(props, parquet.WithStatsPath(path, false))
		}
	}
	return parquet.NewWriterProperties(props...)
}
