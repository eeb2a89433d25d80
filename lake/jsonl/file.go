package jsonl

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/tributary-io/tributary/lake/object"
)

// codec compresses files of one kind.
type codec struct {
	suffix string
	writer func(io.Writer) (io.WriteCloser, error)
	reader func(io.Reader) (io.ReadCloser, error)
}

var codecs = map[string]codec{
	"": {
		suffix: "",
		writer: func(w io.Writer) (io.WriteCloser, error) { return nopCloser{w}, nil },
		reader: func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(r), nil },
	},
	"gzip": {
		suffix: ".gz",
		writer: func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil },
		reader: func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) },
	},
	"zstd": {
		suffix: ".zst",
		writer: func(w io.Writer) (io.WriteCloser, error) {
			return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		},
		reader: func(r io.Reader) (io.ReadCloser, error) {
			d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
			if err != nil {
				return nil, err
			}
			return d.IOReadCloser(), nil
		},
	},
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// codecOf finds the codec of a file by its name.
func codecOf(name string) codec {
	for _, c := range codecs {
		if c.suffix != "" && strings.HasSuffix(name, c.suffix) {
			return c
		}
	}
	return codecs[""]
}

// dateFolder begins the folders of files; what follows is the event date, as Hive has it.
const dateFolder = "event_date="

// extension ends the names of files, before that of a codec.
const extension = ".jsonl"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeFile writes a section as a new file. It is complete, but not yet durable.
func writeFile(ctx context.Context, store object.Store, s *section, c codec) (*File, error) {
	date := dateText(s.day)
	name := fmt.Sprintf("%s%s/%s-%d-%020d-%s%s%s", dateFolder, date, s.in.topic, s.in.partition, s.first, uuid.NewString(), extension, c.suffix)
	obj, err := store.Create(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", name, err)
	}
	defer obj.Abort() // does nothing once the object is closed
	sum := &summed{w: obj}
	if err := writeAll(sum, s.text, c); err != nil {
		return nil, fmt.Errorf("file %s: %w", name, err)
	}
	if err := obj.Close(); err != nil {
		return nil, fmt.Errorf("file %s: %w", name, err)
	}
	return &File{Name: name, EventDate: date, Rows: s.rows, Bytes: sum.n, CRC32C: fmt.Sprintf("%08x", sum.crc), First: s.first, Last: s.last}, nil
}

func writeAll(w io.Writer, text []byte, c codec) error {
	z, err := c.writer(w)
	if err != nil {
		return err
	}
	if _, err := z.Write(text); err != nil {
		return err
	}
	return z.Close()
}

// summed counts and sums what passes.
type summed struct {
	w   io.Writer
	n   int64
	crc uint32
}

func (s *summed) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.n += int64(n)
	s.crc = crc32.Update(s.crc, castagnoli, p[:n])
	return n, err
}

// readFile reads a file that a manifest names, and checks that it is the one that was written. The result is its text.
func readFile(ctx context.Context, store object.Store, f *File) ([]byte, error) {
	data, err := store.Get(ctx, f.Name)
	if err != nil {
		return nil, fmt.Errorf("file %s, which a manifest names: %w", f.Name, err)
	}
	if sum := fmt.Sprintf("%08x", crc32.Checksum(data, castagnoli)); int64(len(data)) != f.Bytes || sum != f.CRC32C {
		return nil, fmt.Errorf("file %s has %d bytes with checksum %s, but its manifest says %d with %s: it is damaged", f.Name, len(data), sum, f.Bytes, f.CRC32C)
	}
	c := codecOf(f.Name)
	if c.suffix == "" {
		return data, nil
	}
	r, err := c.reader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", f.Name, err)
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", f.Name, err)
	}
	return text, nil
}
