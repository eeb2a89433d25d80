package state

import (
	"bytes"
	"log/slog"
	"testing"
)

// Internal fuzz targets: every decoder of bytes that come from a disk or a topic. None may panic, and what decodes must encode back.

func FuzzEscapedKey(f *testing.F) {
	f.Add([]byte("a"), []byte("a\x00b"))
	f.Add([]byte{0, 0xff, 1}, []byte{0})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		ea, eb := appendEscaped(nil, a), appendEscaped(nil, b)
		if bytes.Compare(a, b) != bytes.Compare(ea, eb) {
			t.Fatalf("%x and %x change their order: %x, %x", a, b, ea, eb)
		}
		var scratch []byte
		key, rest, ok := cutEscaped(append(bytes.Clone(ea), b...), &scratch)
		if !ok || !bytes.Equal(key, a) || !bytes.Equal(rest, b) {
			t.Fatalf("%x came back as %x, %x, %v", a, key, rest, ok)
		}
		row := append(appendOrdered(appendPrefix(nil, 7, classByKey), 5), ea...)
		if n := splitKey(append(bytes.Clone(row), b...)); n != len(row) {
			t.Fatalf("%x splits at %d, not %d", row, n, len(row))
		}
	})
}

func FuzzCutEscaped(f *testing.F) {
	f.Add([]byte("a\x00\x01rest"))
	f.Add([]byte("\x00\x02"))
	f.Add([]byte("a\x00\xff\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var scratch []byte
		key, rest, ok := cutEscaped(b, &scratch)
		if ok && !bytes.Equal(append(appendEscaped(nil, key), rest...), b) {
			t.Fatalf("%x came back as %x and %x", b, key, rest)
		}
		if n := splitKey(b); n < 0 || n > len(b) {
			t.Fatalf("split at %d of %d", n, len(b))
		}
	})
}

// FuzzComparer checks what Pebble requires of a comparer.
func FuzzComparer(f *testing.F) {
	f.Add(append(appendOrdered(appendPrefix(nil, 1, classByKey), 1), "a\x00\x01xyz"...), append(appendOrdered(appendPrefix(nil, 1, classByKey), 1), "a\x00\xff\x00\x01"...))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		c := comparer()
		pa, pb := a[:c.Split(a)], b[:c.Split(b)]
		if bytes.Compare(a, b) <= 0 && bytes.Compare(pa, pb) > 0 {
			t.Fatalf("prefixes %x and %x are not in order of %x and %x", pa, pb, a, b)
		}
		if c.Split(pa) != len(pa) {
			t.Fatalf("the prefix %x of %x has a prefix", pa, a)
		}
		if len(a) > 0 && len(b) > 0 && bytes.Compare(a, b) < 0 {
			s := c.Separator(nil, a, b)
			if bytes.Compare(a, s) > 0 || bytes.Compare(s, b) >= 0 {
				t.Fatalf("separator %x of %x and %x", s, a, b)
			}
		}
		if next := c.ImmediateSuccessor(nil, pa); bytes.Compare(pa, next) >= 0 || c.Split(next) != len(next) {
			t.Fatalf("successor %x of %x", next, pa)
		}
	})
}

func FuzzChangelogKeys(f *testing.F) {
	f.Add([]byte("key012345678901234567"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if key, start, seq, ok := CutWindowKey(b); ok && !bytes.Equal(AppendWindowKey(nil, key, start, seq), b) {
			t.Fatalf("window key %x", b)
		}
		if key, start, end, ok := CutSessionKey(b); ok && !bytes.Equal(AppendSessionKey(nil, key, start, end), b) {
			t.Fatalf("session key %x", b)
		}
		if key, ts, left, ok := CutJoinKey(b); ok && !bytes.Equal(AppendJoinKey(nil, key, ts, left), b) {
			t.Fatalf("join key %x", b)
		}
		if value, left, ok := CutSideValue(b); ok && !bytes.Equal(AppendSideValue(nil, value, left), b) {
			t.Fatalf("side value %x", b)
		}
	})
}

func FuzzBufferValue(f *testing.F) {
	f.Add(AppendBufferValue(nil, &BufferValue{Context: Context{Topic: "t", Headers: []Header{{Key: "h"}, {Key: "i", Value: []byte("x")}}},
		Prior: []byte("p"), Old: []byte("p"), New: []byte("n")}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, rest, err := DecodeBufferValue(b)
		if err != nil {
			return
		}
		// The encoding is not unique (an old value may be spelt out), but decoding it again must give the same.
		enc := AppendBufferValue(nil, &v)
		again, _, err := DecodeBufferValue(enc)
		if err != nil || !bytes.Equal(AppendBufferValue(nil, &again), enc) || len(rest) > len(b) {
			t.Fatalf("%x decodes to %+v, which encodes to %x (%v)", b, v, enc, err)
		}
	})
}

func FuzzList(f *testing.F) {
	one, _ := appendToList(nil, []byte("a"))
	two, _ := appendToList(bytes.Clone(one), []byte{})
	f.Add(two)
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, values, err := checkList(b)
		if err != nil {
			return
		}
		var enc []byte
		var value []byte
		for range n {
			if value, values, err = cutListValue(values); err != nil {
				return
			}
			if enc, err = appendToList(enc, value); err != nil {
				t.Fatal(err)
			}
		}
		if n > 0 && !bytes.Equal(append(enc, values...), b) {
			t.Fatalf("%x came back as %x", b, enc)
		}
	})
}

func FuzzMeta(f *testing.F) {
	m := storeMeta{offset: 5, streamTime: 6, seq: 7, logSeq: 8, records: 9, bytes: 10}
	f.Add(m.encode(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeStoreMeta(b); err == nil && !bytes.Equal(m.encode(nil), b) {
			t.Fatalf("store entry %x", b)
		}
		if r, err := decodeRegistration(b); err == nil && !bytes.Equal(r.encode(), b) {
			t.Fatalf("registration %x", b)
		}
	})
}

func FuzzVersionRow(f *testing.F) {
	f.Add(append(appendOrdered(appendPrefix(nil, 1, classByKey), 1), "a\x00\x0112345678"...), []byte("12345678\x01value"))
	f.Fuzz(func(t *testing.T, row, val []byte) {
		if v, err := decodeVersion(row, val); err == nil && v.value != nil && len(v.value) != len(val)-versionValueHead {
			t.Fatalf("version %+v of %x", v, val)
		}
	})
}

// FuzzRestore gives each kind of store a changelog record of any bytes: an error is fine, a panic or a store that can't be read is not.
func FuzzRestore(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), int64(5))
	f.Add(AppendWindowKey(nil, []byte("k"), 5, 1), []byte{}, int64(-5))
	f.Add(AppendSessionKey(nil, []byte("k"), 1<<62, 5), []byte{1}, int64(1)<<62)
	f.Add(append([]byte{0}, AppendWindowKey(nil, []byte("k"), 5, 1)...), AppendBufferValue(nil, &BufferValue{}), int64(0))
	f.Add([]byte("k"), appendOrderedTime(AppendBufferValue(nil, &BufferValue{New: []byte("n")}), 9), int64(0))
	var specs []Spec
	for k := KeyValue; k <= lastKind; k++ {
		specs = append(specs, Spec{Name: k.String(), Kind: k, RetentionMs: 1000, HistoryMs: 1000, GraceMs: 10, Logged: true})
	}
	log := slog.New(slog.DiscardHandler)
	f.Fuzz(func(t *testing.T, key, value []byte, ts int64) {
		db, err := OpenMemory(specs, Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range specs {
			r := RestoreRecord{Key: key, Value: value, Timestamp: ts, Headers: bufferHeaders}
			if err := db.Restore(s.Name, []RestoreRecord{r}, 1); err != nil {
				if _, ok := db.Offset(s.Name); ok {
					t.Errorf("%s: an offset after %v", s.Name, err)
				}
				continue
			}
			if err := db.stores[i].impl.dropped(); err != nil { // reads what it needs
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		if w, err := db.WindowBytes("window"); err == nil {
			it, err := w.All(Forward)
			if err != nil {
				t.Fatal(err)
			}
			for it.Next() {
			}
			if err := it.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzMarks decodes changelog marks of any bytes, and encodes what it got to the same.
func FuzzMarks(f *testing.F) {
	f.Add(encodeMarks(nil, nil))
	f.Add(encodeMarks(nil, []logMark{{1, 250}, {900, 1 << 40}}))
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, data []byte) {
		marks, err := decodeMarks(data)
		if err == nil && !bytes.Equal(encodeMarks(nil, marks), data) {
			t.Errorf("%x is decoded to %v, which is encoded otherwise", data, marks)
		}
	})
}
