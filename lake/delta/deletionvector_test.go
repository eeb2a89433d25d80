package delta

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/tributary-io/tributary/lake/object"
)

// TestVectorsOfOthers reads what other engines write. The inline example of PROTOCOL.md is not among it: its bytes are of a layout that the
// reference implementation refuses, too; this is the same set as the other implementations' tests have it.
func TestVectorsOfOthers(t *testing.T) {
	inline := &DeletionVector{StorageType: "i", PathOrInlineDv: "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", SizeInBytes: 44, Cardinality: 6}
	rows, err := DeletedRows(t.Context(), object.NewMemory("t"), inline)
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint32{3, 4, 7, 11, 18, 29}; !slices.Equal(rows.ToArray(), want) {
		t.Errorf("rows %v, want %v", rows.ToArray(), want)
	}
	relative := &DeletionVector{StorageType: "u", PathOrInlineDv: "ab^-aqEH.-t@S}K{vb[*k^"}
	if name, err := relative.File(); err != nil || name != "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin" {
		t.Errorf("the file is %q, %v", name, err)
	}
}

// TestVectorsRoundTrip writes sets of all kinds, small ones into the log and others into one file, and reads them back.
func TestVectorsRoundTrip(t *testing.T) {
	store := object.NewMemory("t")
	r := rand.New(rand.NewPCG(1, 2))
	sets := []*roaring.Bitmap{roaring.BitmapOf(0), roaring.BitmapOf(1, 5, 1<<31), roaring.New()}
	sets[2].AddRange(10, 5_000_000)
	for _, n := range []int{10, 1000, 100_000} {
		s := roaring.New()
		for range n {
			s.Add(r.Uint32N(3_000_000))
		}
		sets = append(sets, s)
	}
	vectors, file, err := WriteDeletionVectors(t.Context(), store, sets)
	if err != nil {
		t.Fatal(err)
	}
	inline := 0
	for i, dv := range vectors {
		if dv.StorageType == vectorInline {
			inline++
		} else if name, err := dv.File(); err != nil || name != file {
			t.Errorf("vector %d lies in %q, not in %q: %v", i, name, file, err)
		}
		rows, err := DeletedRows(t.Context(), store, dv)
		if err != nil {
			t.Fatal(err)
		}
		if !rows.Equals(sets[i]) {
			t.Errorf("set %d has changed", i)
		}
	}
	if inline == 0 || inline == len(vectors) {
		t.Errorf("%d of %d vectors are inline: the test wants both", inline, len(vectors))
	}
}

// TestDamagedVectorsAreErrors changes each byte of a file of vectors in turn: never are other rows read.
func TestDamagedVectorsAreErrors(t *testing.T) {
	set := roaring.New()
	for i := range uint32(200) {
		set.Add(i * i)
	}
	store := object.NewMemory("t")
	vectors, file, err := WriteDeletionVectors(t.Context(), store, []*roaring.Bitmap{set})
	if err != nil {
		t.Fatal(err)
	}
	data, err := store.Get(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(data); i++ { // the first is the file's version, which readers have no need of
		bad := slices.Clone(data)
		bad[i] ^= 0x41
		if err := store.Put(t.Context(), file, bad); err != nil {
			t.Fatal(err)
		}
		if _, err := DeletedRows(t.Context(), store, vectors[0]); err == nil {
			t.Fatalf("byte %d is damaged, and nobody says so", i)
		}
	}
	if err := store.Put(t.Context(), file, data[:len(data)-1]); err != nil {
		t.Fatal(err)
	}
	if _, err := DeletedRows(t.Context(), store, vectors[0]); err == nil || !strings.Contains(err.Error(), "ends") {
		t.Errorf("a file that is cut off: %v", err)
	}
	wrong := *vectors[0]
	wrong.Cardinality++
	if err := store.Put(t.Context(), file, data); err != nil {
		t.Fatal(err)
	}
	if _, err := DeletedRows(t.Context(), store, &wrong); err == nil {
		t.Error("the log says another number of rows, and nobody minds")
	}
}

// FuzzDeletionVector decodes any bytes: no panic, no memory beyond what they can mean, and what is read is written back the same.
func FuzzDeletionVector(f *testing.F) {
	for _, set := range []*roaring.Bitmap{roaring.New(), roaring.BitmapOf(3, 4, 7, 11, 18, 29), roaring.BitmapOf(1<<31 + 5)} {
		raw, err := encodeVector(set)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := decodeVector(data)
		if err != nil {
			return
		}
		raw, err := encodeVector(rows)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeVector(raw)
		if err != nil || !again.Equals(rows) {
			t.Fatalf("written and read again it is another: %v", err)
		}
	})
}

func FuzzZ85(f *testing.F) {
	f.Add([]byte("\x86\x4f\xd2\x6f\xb5\x59\xf7\x5b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		text := encodeZ85(data)
		back, err := decodeZ85(text)
		if err != nil || len(back) < len(data) || string(back[:len(data)]) != string(data) {
			t.Fatalf("%x became %q became %x, %v", data, text, back, err)
		}
		if raw, err := decodeZ85(string(data)); err == nil && encodeZ85(raw) != string(data) {
			t.Fatalf("%q is read as %x, which is written as %q", data, raw, encodeZ85(raw))
		}
	})
}
