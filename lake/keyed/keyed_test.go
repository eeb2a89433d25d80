package keyed

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/lake/columns"
	"github.com/tributary-io/tributary/lake/object"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestLSN(t *testing.T) {
	for text, want := range map[string]LSN{"0/0": 0, "0/16B3748": 0x16B3748, "16/b374D848": 0x16_B374_D848, "FFFFFFFF/FFFFFFFF": math.MaxUint64, "0000000A/00000001": 0xA_0000_0001} {
		got, err := ParseLSN(text)
		if err != nil || got != want {
			t.Errorf("%s: %x, %v", text, uint64(got), err)
		}
	}
	for _, text := range []string{"", "/", "1", "1/", "/1", "1/2/3", "+1/2", "1/-2", "1_0/2", "000000001/2", "1/123456789", "g/1", " 1/2", "1/2 ", "0x1/2", strings.Repeat("1", 100)} {
		if got, err := ParseLSN(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
	// As texts these would be in the other order.
	if ten, nine := mustLSN(t, "10/0"), mustLSN(t, "9/FFFFFFFF"); ten <= nine {
		t.Error("10/0 is not after 9/FFFFFFFF")
	}
}

func mustLSN(t testing.TB, s string) LSN {
	var l LSN
	if err := l.UnmarshalText([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return l
}

func FuzzLSN(f *testing.F) {
	f.Add("0/16B3748", uint64(1<<40))
	f.Fuzz(func(t *testing.T, text string, n uint64) {
		if l, err := ParseLSN(text); err == nil {
			if again, err := ParseLSN(l.String()); err != nil || again != l {
				t.Errorf("%q is %x, which is written as %q", text, uint64(l), l)
			}
		}
		if l := mustLSN(t, LSN(n).String()); uint64(l) != n {
			t.Errorf("%x became %q became %x", n, LSN(n), uint64(l))
		}
	})
}

// keyRow is one value of each kind that a key may have.
var keyRow = &columns.Schema{Fields: []columns.Field{kind("b", columns.Boolean), kind("i8", columns.Byte), kind("i16", columns.Short), kind("i32", columns.Integer),
	kind("i64", columns.Long), kind("s", columns.String), kind("x", columns.Binary), kind("d", columns.Date), kind("t", columns.Timestamp), kind("n", columns.TimestampNTZ),
	{Name: "c", Type: columns.Type{Kind: columns.Decimal, Precision: 10, Scale: 2}}}}

func kind(name string, k columns.Kind) columns.Field {
	return columns.Field{Name: name, Type: columns.Type{Kind: k}}
}

// TestKeysOfBatchesAreKeysOfFiles: the same value gives the same bytes whether it comes from a batch, a file or a partition.
func TestKeysOfBatchesAreKeysOfFiles(t *testing.T) {
	b := columns.NewBuilder(keyRow)
	c := b.Columns()
	c[0].AppendBool(true)
	c[1].AppendInt8(-3)
	c[2].AppendInt16(300)
	c[3].AppendInt32(-70000)
	c[4].AppendInt64(1 << 60)
	c[5].AppendString("é")
	c[6].AppendBytes([]byte{0, 1})
	c[7].AppendInt32(-1)
	c[8].AppendInt64(-1_000_001)
	c[9].AppendInt64(5)
	c[10].AppendDecimal(decimal128.FromI64(-1250))
	if err := b.EndRow(); err != nil {
		t.Fatal(err)
	}
	rec := b.Record()
	partitions := []any{true, int64(-3), int64(300), int64(-70000), int64(1 << 60), "é", nil, int64(-1), int64(-1_000_001), int64(5), big.NewInt(-1250)}
	for i := range c {
		one, err := AppendColumn(nil, &c[i], 2, 0)
		two, err2 := AppendArrow(nil, rec.Column(i), 0)
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(one, two) {
			t.Errorf("column %s: %x and %x, %v", keyRow.Fields[i].Name, one, two, err)
		}
		three, err := AppendPartition(nil, partitions[i], 2)
		if partitions[i] != nil && (err != nil || !bytes.Equal(one, three)) {
			t.Errorf("partition column %s: %x and %x, %v", keyRow.Fields[i].Name, one, three, err)
		}
		if !CanOrder(c[i].Kind()) || c[i].Kind() == columns.String {
			continue
		}
		x, err := OrderOfColumn(&c[i], 0)
		y, err2 := OrderOfArrow(rec.Column(i), 0)
		z, err3 := OrderOfPartition(partitions[i])
		if err := errors.Join(err, err2, err3); err != nil || x != y || y != z {
			t.Errorf("orders of %s: %d, %d, %d, %v", keyRow.Fields[i].Name, x, y, z, err)
		}
	}
	if got := fmt.Sprintf("%x", Sum([]byte{tagText, 2, 'k', '1'})); got != "a5116208751a4ec272796d706715fb40" {
		t.Errorf("the hash of a key is %s: it is durable and must never change", got)
	}
	if got := fmt.Sprintf("%x", appendDecimal(nil, big.NewInt(-1250), 2)); got != "05052d31322e35" {
		t.Errorf("-12.50 is %s", got)
	}
	for _, v := range [][2]uint64{{signed(-1), signed(0)}, {signed(math.MinInt64), signed(-5)}, {signed(7), signed(math.MaxInt64)}} {
		if v[0] >= v[1] {
			t.Errorf("%d is not before %d", v[0], v[1])
		}
	}
}

func TestNulls(t *testing.T) {
	b := columns.NewBuilder(keyRow)
	for i := range keyRow.Fields {
		if err := b.AppendNull(i); err != nil {
			t.Fatal(err)
		}
		if _, err := AppendColumn(nil, &b.Columns()[i], 2, 0); !errors.Is(err, ErrNullKey) {
			t.Errorf("column %d: %v", i, err)
		}
		if _, err := OrderOfColumn(&b.Columns()[i], 0); !errors.Is(err, ErrNullOrder) {
			t.Errorf("column %d: %v", i, err)
		}
	}
	b.Columns()[5].AppendString("16/x")
	if _, err := OrderOfColumn(&b.Columns()[5], 1); err == nil || !strings.Contains(err.Error(), "16/x") {
		t.Errorf("a text that is no LSN: %v", err)
	}
}

// TestIndexAgainstMap draws changes and compares the index, in memory and on disk, with a map.
func TestIndexAgainstMap(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		memory, err := Open("")
		disk, err2 := Open(fmt.Sprint(dir, "/", n))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		want := map[Hash]Entry{}
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			var changes []Change
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				c := Change{Hash: Sum([]byte{rapid.Byte().Draw(t, "key")})}
				switch rapid.IntRange(0, 2).Draw(t, "kind") {
				case 0:
					c.Entry = Entry{Order: rapid.Uint64().Draw(t, "order"), Deleted: true}
				case 1:
					c.Entry = Entry{Order: rapid.Uint64().Draw(t, "order"), File: rapid.Uint32().Draw(t, "file"), Row: rapid.Uint32().Draw(t, "row")}
				default:
					c.Forget = true
				}
				changes = append(changes, c)
				if c.Forget {
					delete(want, c.Hash)
				} else {
					want[c.Hash] = c.Entry
				}
			}
			meta := []byte(rapid.String().Draw(t, "meta"))
			for i, x := range []*Index{memory, disk} {
				if err := x.Apply(changes, meta); err != nil {
					t.Fatal(err)
				}
				checkIndex(t, x, want)
				if !bytes.Equal(x.Meta(), meta) {
					t.Fatalf("index %d: meta %q, want %q", i, x.Meta(), meta)
				}
			}
		}
		if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
		if disk, err = Open(fmt.Sprint(dir, "/", n)); err != nil {
			t.Fatal(err)
		}
		checkIndex(t, disk, want)
		if err := errors.Join(disk.Clear(), memory.Clear()); err != nil {
			t.Fatal(err)
		}
		checkIndex(t, disk, nil)
		checkIndex(t, memory, nil)
		if err := errors.Join(disk.Close(), memory.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

func checkIndex(t rapid.TB, x *Index, want map[Hash]Entry) {
	t.Helper()
	n := 0
	err := x.Each(func(h Hash, e Entry) bool {
		n++
		if want[h] != e {
			t.Errorf("%x is %+v, want %+v", h, e, want[h])
		}
		return true
	})
	if err != nil || n != len(want) {
		t.Fatalf("%d entries, want %d: %v", n, len(want), err)
	}
	asked := []Hash{{9}}
	for h, e := range want {
		if got, ok, err := x.Get(h); !ok || got != e || err != nil {
			t.Errorf("%x is %+v, %v, %v, want %+v", h, got, ok, err, e)
		}
		asked = append(asked, h)
	}
	answers := 0
	err = x.Find(asked, func(i int, e Entry, ok bool) {
		answers++
		if w, has := want[asked[i]]; ok != has || e != w {
			t.Errorf("%x is found as %+v, %v, want %+v, %v", asked[i], e, ok, w, has)
		}
	})
	if err != nil || answers != len(asked) {
		t.Errorf("%d answers, want %d: %v", answers, len(asked), err)
	}
	if _, ok, err := x.Get(Hash{1, 2, 3}); ok || err != nil {
		t.Errorf("a key that isn't there: %v, %v", ok, err)
	}
}

// TestLargeIndexesLeaveMemory passes the bound, and finds all there is, and nothing left behind in the end.
func TestLargeIndexesLeaveMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	x, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	x.limit = 1000
	key := func(i int) Hash { return Sum(fmt.Append(nil, i)) }
	for from := 0; from < 3000; from += 500 {
		changes := make([]Change, 500)
		for i := range changes {
			changes[i] = Change{Hash: key(from + i), Entry: Entry{Order: uint64(from + i), Row: 7}}
		}
		if err := x.Apply(changes, []byte("m")); err != nil {
			t.Fatal(err)
		}
		if (x.db != nil) != (from+500 > 1000) {
			t.Errorf("after %d keys: on disk %v", from+500, x.db != nil)
		}
	}
	for n := range 3000 {
		if e, ok, err := x.Get(key(n)); err != nil || !ok || e.Order != uint64(n) {
			t.Fatalf("key %d: %+v, %v, %v", n, e, ok, err)
		}
	}
	dir := x.temporary
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := object.NewLocal(dir); err == nil {
		for info := range left.List(t.Context(), "", "") {
			t.Fatalf("%s is left", info.Name)
		}
	}
}

// TestSegmentBytes pins the durable format, and reads what was damaged as an error.
func TestSegmentBytes(t *testing.T) {
	a, b := Hash{1}, Hash{0xff, 2}
	const rest = "00000001" + "0000000000000009" + "0000000000000002" +
		"01000000000000000000000000000000" + "0000000000000008" + "ff020000000000000000000000000000" + "0000000000000007"
	for horizon, want := range map[uint64]string{0: "5452494244454c31" + rest + "5e394548", 6: "5452494244454c32" + "0000000000000006" + rest + "b793fb40"} {
		s := &Segment{ID: 5, Older: []int64{9}, Horizon: horizon, Entries: []Deletion{{b, 7}, {a, 3}, {a, 8}}}
		data := s.Encode()
		if got := fmt.Sprintf("%x", data); got != want {
			t.Errorf("a segment is\n%s, want\n%s", got, want)
		}
		back, err := DecodeSegment(5, data)
		if err != nil || back.Horizon != horizon || !slices.Equal(back.Entries, []Deletion{{a, 8}, {b, 7}}) || !slices.Equal(back.Older, []int64{9}) {
			t.Errorf("%+v, %v", back, err)
		}
		damagedSegments(t, data)
	}
}

func damagedSegments(t *testing.T, data []byte) {
	t.Helper()
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 1
		if _, err := DecodeSegment(5, bad); err == nil {
			t.Errorf("byte %d is damaged, and nobody says so", i)
		}
		if _, err := DecodeSegment(5, data[:i]); err == nil {
			t.Errorf("cut off after %d bytes, and nobody says so", i)
		}
	}
}

func FuzzSegment(f *testing.F) {
	f.Add((&Segment{Older: []int64{9}, Entries: []Deletion{{Hash{1}, 3}}}).Encode())
	f.Add((&Segment{Horizon: 7, Entries: []Deletion{{Hash{1}, 8}}}).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeSegment(1, data)
		if err != nil {
			return
		}
		again, err := DecodeSegment(1, s.Encode())
		if err != nil || again.Horizon != s.Horizon || !slices.Equal(again.Older, s.Older) || !slices.Equal(again.Entries, s.Entries) {
			t.Errorf("%+v became %+v, %v", s, again, err)
		}
	})
}

// TestNewestDeletions keeps those of the greatest orders, and tells below which order nothing is known.
func TestNewestDeletions(t *testing.T) {
	var all []Deletion
	for _, n := range []byte{4, 9, 2, 7, 7} {
		all = append(all, Deletion{Hash{n, byte(len(all))}, uint64(n)})
	}
	for atMost, want := range map[int]string{5: "[9 7 7 4 2] 0", 4: "[9 7 7 4] 2", 2: "[9 7] 7", 1: "[9] 7"} {
		kept, horizon := Newest(slices.Clone(all), atMost)
		var orders []uint64
		for _, d := range kept {
			orders = append(orders, d.Order)
		}
		slices.SortFunc(orders, func(a, b uint64) int { return int(b) - int(a) })
		if got := fmt.Sprint(orders, " ", horizon); got != want {
			t.Errorf("of at most %d: %s, want %s", atMost, got, want)
		}
	}
}

func TestFormatOrder(t *testing.T) {
	for want, order := range map[string]struct {
		kind  columns.Kind
		order uint64
	}{"16/B374D848": {columns.String, 0x16_B374_D848}, "-5": {columns.Long, signed(-5)}, "2024-10-05": {columns.Date, signed(20001)}, "2026-05-28T20:26:40.000001Z": {columns.Timestamp, signed(1780000000000001)}} {
		if got := FormatOrder(order.kind, order.order); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestMergeKeepsSegmentsFew writes many segments: there are never many at once, and no deletion is written again too often.
func TestMergeKeepsSegmentsFew(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var sizes []int
	written, all := 0, 0
	for range 5000 {
		fresh := 1 + r.IntN(100)
		all += fresh
		from := Merge(sizes, fresh)
		sum := fresh
		for _, n := range sizes[from:] {
			sum += n
		}
		written += sum
		sizes = append(sizes[:from], sum)
		if len(sizes) > maxSegments {
			t.Fatalf("%d segments", len(sizes))
		}
	}
	if written > 30*all {
		t.Errorf("%d deletions were written %d times", all, written)
	}
}

func TestSweepSegments(t *testing.T) {
	store := object.NewMemory("t")
	for id := range int64(4) {
		if err := WriteSegment(t.Context(), store, &Segment{ID: id + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := SweepSegments(t.Context(), store, []int64{2}, time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("%d young ones are deleted: %v", n, err)
	}
	if n, err := SweepSegments(t.Context(), store, []int64{2}, time.Now().Add(time.Hour)); n != 3 || err != nil {
		t.Errorf("%d are deleted: %v", n, err)
	}
	if _, err := ReadSegment(t.Context(), store, 2); err != nil {
		t.Error(err)
	}
	if _, err := ReadSegment(t.Context(), store, 1); !errors.Is(err, object.ErrNotFound) {
		t.Error(err)
	}
}
