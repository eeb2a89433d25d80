package delta

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/object"
)

// A deletion vector is the set of a data file's rows, counted from 0 in the order of the file, that are not in the table any more
// (PROTOCOL.md, "Deletion Vectors" and "Deletion Vector Format"). It lies in the log itself (inline) or in a file that may hold several.

const (
	vectorMagic       = 1681511377 // of the portable format of 64-bit roaring bitmaps
	vectorFileVersion = 1          // first byte of a file of vectors
	vectorInline      = "i"
	vectorRelative    = "u" // a file in the table's folder, named by a UUID
	// maxInline is the size from which on a vector goes to a file: each reader of the log reads it again and again.
	maxInline = 128
	// maxVector bounds what is read of one: a bitmap of 2^32 rows, the worst way to write it, takes a little more than 512 MiB.
	maxVector = 1 << 30
)

var vectorTable = crc32.IEEETable

// DeletedRows reads a deletion vector from the log or from the store; nil gives an empty set.
func DeletedRows(ctx context.Context, store object.Store, dv *DeletionVector) (*roaring.Bitmap, error) {
	if dv == nil {
		return roaring.New(), nil
	}
	rows, err := dv.read(ctx, store)
	if err == nil && int64(rows.GetCardinality()) != dv.Cardinality {
		err = fmt.Errorf("it has %d rows, but the log says %d", rows.GetCardinality(), dv.Cardinality)
	}
	if err != nil {
		return nil, fmt.Errorf("deletion vector %s: %w", dv.UniqueID(), err)
	}
	return rows, nil
}

func (d *DeletionVector) read(ctx context.Context, store object.Store) (*roaring.Bitmap, error) {
	if d.SizeInBytes < 0 || d.SizeInBytes > maxVector {
		return nil, fmt.Errorf("its size is %d bytes", d.SizeInBytes)
	}
	if d.StorageType == vectorInline {
		data, err := decodeZ85(d.PathOrInlineDv)
		if err == nil && int(d.SizeInBytes) > len(data) {
			err = fmt.Errorf("it has %d bytes, but the log says %d", len(data), d.SizeInBytes)
		}
		if err != nil {
			return nil, err
		}
		return decodeVector(data[:d.SizeInBytes])
	}
	name, err := d.file()
	if err != nil {
		return nil, err
	}
	var offset int64
	if d.Offset != nil {
		offset = int64(*d.Offset)
	}
	framed, err := store.GetRange(ctx, name, offset, int64(d.SizeInBytes)+8)
	if err != nil {
		return nil, err
	}
	return unframeVector(framed, int(d.SizeInBytes))
}

// unframeVector takes a vector out of a file's bytes: size, bitmap, checksum.
func unframeVector(framed []byte, size int) (*roaring.Bitmap, error) {
	switch {
	case len(framed) < size+8:
		return nil, fmt.Errorf("its file ends after %d of %d bytes", len(framed), size+8)
	case binary.BigEndian.Uint32(framed) != uint32(size):
		return nil, fmt.Errorf("its file says %d bytes, the log %d", binary.BigEndian.Uint32(framed), size)
	}
	data := framed[4 : 4+size]
	if sum := crc32.Checksum(data, vectorTable); binary.BigEndian.Uint32(framed[4+size:]) != sum {
		return nil, errors.New("its checksum is wrong: the file is damaged")
	}
	return decodeVector(data)
}

// file is the name of the vector's file in the table's store.
func (d *DeletionVector) file() (string, error) {
	if d.StorageType != vectorRelative {
		return "", fmt.Errorf("storage type %q: only inline ones and those in the table's own folder can be read", d.StorageType)
	}
	cut := len(d.PathOrInlineDv) - 20
	if cut < 0 {
		return "", fmt.Errorf("%q names no file", d.PathOrInlineDv)
	}
	raw, err := decodeZ85(d.PathOrInlineDv[cut:])
	if err != nil {
		return "", err
	}
	name := "deletion_vector_" + uuid.UUID(raw).String() + ".bin"
	if cut > 0 {
		name = d.PathOrInlineDv[:cut] + "/" + name
	}
	return name, nil
}

// File is the name, in the table's store, of the file that the vector lies in; "" for one in the log itself. Vectors at absolute paths are an
// error: they belong to another table.
func (d *DeletionVector) File() (string, error) {
	if d == nil || d.StorageType == vectorInline {
		return "", nil
	}
	return d.file()
}

// decodeVector reads a bitmap in the portable format of 64-bit roaring bitmaps. Rows beyond 2^32 are refused: no file has so many.
func decodeVector(data []byte) (*roaring.Bitmap, error) {
	const head = 4 + 8
	if len(data) < head || binary.LittleEndian.Uint32(data) != vectorMagic {
		return nil, errors.New("it doesn't begin as a deletion vector of the portable format does")
	}
	n := binary.LittleEndian.Uint64(data[4:])
	out := roaring.New()
	rest := bytes.NewReader(data[head:])
	for i := range n {
		var high [4]byte
		if _, err := rest.Read(high[:]); err != nil {
			return nil, fmt.Errorf("it ends before part %d of %d", i, n)
		}
		part := roaring.New()
		if _, err := part.ReadFrom(rest); err != nil {
			return nil, fmt.Errorf("part %d of %d: %w", i, n, err)
		}
		if err := part.Validate(); err != nil && !part.IsEmpty() {
			return nil, fmt.Errorf("part %d of %d: %w", i, n, err)
		}
		switch {
		case part.IsEmpty():
		case binary.LittleEndian.Uint32(high[:]) != 0:
			return nil, errors.New("it speaks of rows beyond 2^32")
		case !out.IsEmpty():
			return nil, errors.New("it has the same part twice")
		default:
			out = part
		}
	}
	return out, nil
}

// encodeVector writes a set of rows in the portable format.
func encodeVector(rows *roaring.Bitmap) ([]byte, error) {
	rows.RunOptimize()
	buf := bytes.NewBuffer(make([]byte, 0, 16+rows.GetSerializedSizeInBytes()))
	var head [16]byte
	binary.LittleEndian.PutUint32(head[:], vectorMagic)
	binary.LittleEndian.PutUint64(head[4:], 1)
	buf.Write(head[:]) // its last four bytes are the high half of the rows' numbers, 0
	if _, err := rows.WriteTo(buf); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// WriteDeletionVectors makes a vector of each set. Small ones go into the log, the others together into one file, which is complete but not
// yet durable: file is its name, to be synced before the commit that speaks of it; "" if there is none. With an error, too, it is one that may be there.
func WriteDeletionVectors(ctx context.Context, store object.Store, sets []*roaring.Bitmap) (out []*DeletionVector, file string, err error) {
	id := uuid.New()
	data := []byte{vectorFileVersion}
	for _, rows := range sets {
		raw, err := encodeVector(rows)
		if err != nil {
			return nil, "", fmt.Errorf("deletion vector: %w", err)
		}
		dv := &DeletionVector{SizeInBytes: int32(len(raw)), Cardinality: int64(rows.GetCardinality())}
		out = append(out, dv)
		if len(raw) <= maxInline {
			dv.StorageType, dv.PathOrInlineDv = vectorInline, encodeZ85(raw)
			continue
		}
		if len(data)+len(raw) > maxVector {
			return nil, "", fmt.Errorf("deletion vectors of more than %d bytes in one commit: commit fewer rows at once", maxVector)
		}
		offset := int32(len(data))
		dv.StorageType, dv.PathOrInlineDv, dv.Offset = vectorRelative, encodeZ85(id[:]), &offset
		data = binary.BigEndian.AppendUint32(data, uint32(len(raw)))
		data = append(data, raw...)
		data = binary.BigEndian.AppendUint32(data, crc32.Checksum(raw, vectorTable))
	}
	if len(data) == 1 {
		return out, "", nil
	}
	name := "deletion_vector_" + id.String() + ".bin"
	w, err := store.Create(ctx, name)
	if err != nil {
		return nil, "", err
	}
	defer w.Abort() // does nothing once the object is closed
	if _, err := w.Write(data); err != nil {
		return nil, "", fmt.Errorf("deletion vectors %s: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return nil, name, fmt.Errorf("deletion vectors %s: %w", name, err)
	}
	return out, name, nil
}

// z85 is the alphabet of ZeroMQ's base 85 (32/Z85), with which the log writes binary data.
const z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

// encodeZ85 writes bytes, filled up with zeros to a multiple of four.
func encodeZ85(data []byte) string {
	var out strings.Builder
	for len(data) > 0 {
		var four [4]byte
		n := copy(four[:], data)
		data = data[n:]
		v := binary.BigEndian.Uint32(four[:])
		var five [5]byte
		for i := 4; i >= 0; i-- {
			five[i] = z85[v%85]
			v /= 85
		}
		out.Write(five[:])
	}
	return out.String()
}

func decodeZ85(s string) ([]byte, error) {
	if len(s)%5 != 0 {
		return nil, fmt.Errorf("%d characters are no base 85: it has groups of five", len(s))
	}
	out := make([]byte, 0, len(s)/5*4)
	for i := 0; i < len(s); i += 5 {
		var v uint64
		for _, c := range []byte(s[i : i+5]) {
			d := strings.IndexByte(z85, c)
			if d < 0 {
				return nil, fmt.Errorf("%q is no digit of base 85", c)
			}
			v = v*85 + uint64(d)
		}
		if v > 0xffffffff {
			return nil, fmt.Errorf("%q is no group of base 85", s[i:i+5])
		}
		out = binary.BigEndian.AppendUint32(out, uint32(v))
	}
	return out, nil
}
