package delta

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestStatsJSON(t *testing.T) {
	s := FileStats{NumRecords: 3, Columns: []ColumnStats{
		{Path: []string{"a"}, Nulls: 1, Min: []byte("1"), Max: []byte("2")},
		{Path: []string{"s", "x", "y"}, Nulls: 3},
		{Path: []string{"s", "x", "z"}, Nulls: 0, Min: []byte(`"k"`), Max: []byte(`"l"`)},
		{Path: []string{"s", "w"}, Nulls: 2, Max: []byte("5")},
		{Path: []string{`q"`}, Nulls: 0},
	}}
	want := `{"numRecords":3,"minValues":{"a":1,"s":{"x":{"z":"k"}}},"maxValues":{"a":2,"s":{"x":{"z":"l"},"w":5}},` +
		`"nullCount":{"a":1,"s":{"x":{"y":3,"z":0},"w":2},"q\"":0}}`
	if got := string(s.AppendJSON(nil)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := string((&FileStats{NumRecords: 5}).AppendJSON(nil)); got != `{"numRecords":5,"minValues":{},"maxValues":{},"nullCount":{}}` {
		t.Errorf("without columns: %s", got)
	}
}

func TestStatValues(t *testing.T) {
	for want, got := range map[string][]byte{
		"-9223372036854775808":        AppendIntStat(nil, math.MinInt64),
		"-0.0":                        AppendFloatStat(nil, 0, false),
		"0.0":                         AppendFloatStat(nil, math.Copysign(0, -1), true),
		"0.10000000149011612":         AppendFloatStat(nil, float64(float32(0.1)), true),
		"1e+300":                      AppendFloatStat(nil, 1e300, true),
		"-0.01":                       AppendDecimalStat(nil, big.NewInt(-1), 2),
		"12345678901234567890.123456": AppendDecimalStat(nil, bigInt("12345678901234567890123456"), 6),
		"1200":                        AppendDecimalStat(nil, big.NewInt(1200), 0),
		`"1970-01-01"`:                AppendDateStat(nil, 0),
		`"0001-01-01"`:                AppendDateStat(nil, -719162),
		`"+10000-01-01"`:              AppendDateStat(nil, 2932897),
		`"2024-01-02T03:04:05.678Z"`:  AppendTimestampStat(nil, startMicros, true),
		`"1969-12-31T23:59:59.999"`:   AppendTimestampStat(nil, -1, false),
	} {
		if string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
		if !json.Valid(got) {
			t.Errorf("%s is not JSON", got)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := AppendFloatStat([]byte("x"), v, true); got != nil {
			t.Errorf("%v gives the bound %s", v, got)
		}
	}
}

func bigInt(s string) *big.Int { n, _ := new(big.Int).SetString(s, 10); return n }

func TestStringBounds(t *testing.T) {
	long := strings.Repeat("a", 32)
	top := string(rune(utf8.MaxRune))
	for _, c := range []struct{ s, min, max string }{
		{"short", "short", "short"},
		{long, long, long},
		{long + "b", long, long + "\x7f"},
		{long + "é", long, long + top},
		{long + "\x7f", long, long + top},
		{long + top + "b", long, long + top + "\x7f"},
		{strings.Repeat("é", 40), strings.Repeat("é", 32), strings.Repeat("é", 32) + top},
		{long + strings.Repeat(top, 40), long, ""},
		{long + strings.Repeat(top, 32), long, long + strings.Repeat(top, 32)},
	} {
		var min, max string
		if err := json.Unmarshal(AppendStringMinStat(nil, c.s), &min); err != nil || min != c.min {
			t.Errorf("min of %q is %q, want %q", c.s, min, c.min)
		}
		if raw := AppendStringMaxStat(nil, c.s); raw != nil {
			if err := json.Unmarshal(raw, &max); err != nil {
				t.Error(err)
			}
		}
		if max != c.max {
			t.Errorf("max of %q is %q, want %q", c.s, max, c.max)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		runes := rapid.RuneFrom([]rune{'a', 'b', 0x7e, 0x7f, 0x80, 'é', 0xd7ff, 0xe000, 0xffff, 0x10000, utf8.MaxRune})
		s := rapid.StringOfN(runes, 0, 80, -1).Draw(t, "s")
		var min, max string
		if err := json.Unmarshal(AppendStringMinStat(nil, s), &min); err != nil || min > s {
			t.Fatalf("min %q of %q, %v", min, s, err)
		}
		if raw := AppendStringMaxStat(nil, s); raw != nil {
			if err := json.Unmarshal(raw, &max); err != nil || max < s {
				t.Fatalf("max %q of %q, %v", max, s, err)
			}
		}
	})
}

func TestStatsColumns(t *testing.T) {
	schema := structs(field("p", Date), field("a", Long), field("s", structs(field("x", Boolean), field("y", &ArrayType{Element: Long}), field("v", Void))),
		field("b", Decimal(5, 2)), field("odd.name", String))
	for property, want := range map[string]string{
		"":                                    "a+ s.x s.y b+ odd.name+",
		"delta.dataSkippingNumIndexedCols=2":  "a+ s.x",
		"delta.dataSkippingNumIndexedCols=0":  "",
		"delta.dataSkippingNumIndexedCols=-1": "a+ s.x s.y b+ odd.name+",
		"delta.dataSkippingStatsColumns=S, `odd.name`":        "s.x s.y odd.name+",
		"delta.dataSkippingStatsColumns=s.y,nothing,odd.name": "s.y",
		"delta.dataSkippingStatsColumns=":                     "",
	} {
		m := &Metadata{Schema: schema, PartitionColumns: []string{"p"}, Configuration: map[string]string{}}
		if k, v, ok := strings.Cut(property, "="); ok {
			m.Configuration[k] = v
		}
		var got []string
		for _, c := range StatsColumns(m) {
			name := strings.Join(c.Path, ".")
			if c.Bounds {
				name += "+"
			}
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", property, got, want)
		}
	}
}

func TestPartitionValues(t *testing.T) {
	for want, got := range map[string]*string{
		"-5": PartitionInt(-5), "true": PartitionBool(true), "2024-10-04": PartitionDate(20000), "12.30": PartitionDecimal(big.NewInt(1230), 2),
		"1.0": PartitionFloat(1, 64), "-0.0": PartitionFloat(math.Copysign(0, -1), 64), "0.001": PartitionFloat(0.001, 64), "1.0E-4": PartitionFloat(1e-4, 64),
		"9999999.0": PartitionFloat(9999999, 64), "1.0E7": PartitionFloat(1e7, 64), "1.2345E10": PartitionFloat(1.2345e10, 64), "0.1": PartitionFloat(float64(float32(0.1)), 32),
		"NaN": PartitionFloat(math.NaN(), 64), "-Infinity": PartitionFloat(math.Inf(-1), 64),
		"2024-01-02T03:04:05.678901Z": PartitionTimestamp(startMicros, true), "1969-12-31 23:59:59.999999": PartitionTimestamp(-1, false),
	} {
		if *got != want {
			t.Errorf("%q, want %q", *got, want)
		}
	}
	if v, err := PartitionString(""); err != ErrEmptyPartition || v != nil {
		t.Errorf("empty text: %v, %v", v, err)
	}
	if _, err := PartitionString("\xff"); err == nil {
		t.Error("invalid UTF-8 was accepted")
	}
}

// TestPartitionRoundTrip: what is serialized reads back equal.
func TestPartitionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n")
		f := rapid.Float64().Draw(t, "f")
		days := rapid.Int32Range(-719162, 2932896).Draw(t, "days")
		at := rapid.Int64Range(-62135596800000000, 253402300799999999).Draw(t, "at")
		d := big.NewInt(n)
		for _, c := range []struct {
			typ   Type
			text  *string
			value any
		}{
			{Long, PartitionInt(n), n}, {Double, PartitionFloat(f, 64), f}, {Float, PartitionFloat(float64(float32(f)), 32), float64(float32(f))},
			{Date, PartitionDate(days), int64(days)}, {Timestamp, PartitionTimestamp(at, true), at}, {TimestampNTZ, PartitionTimestamp(at, false), at},
			{Decimal(38, 7), PartitionDecimal(d, 7), d}, {Boolean, PartitionBool(n > 0), n > 0},
		} {
			got, err := ParsePartition(c.typ, c.text)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(c.value) {
				t.Fatalf("%s %v became %q and then %v, %v", c.typ, c.value, *c.text, got, err)
			}
		}
	})
}

func TestPaths(t *testing.T) {
	name := NewDataFileName("zstd")
	if EncodePath(name) != name || !strings.HasSuffix(name, ".zstd.parquet") {
		t.Errorf("data file name %s needs encoding", name)
	}
	for _, name := range []string{"a b/c%41", "é", "x:y/z", "p=a%2Fb/f", "#?", "\n", "{}^"} {
		a := Add{Path: EncodePath(name)}
		if got, err := a.Name(); err != nil || got != name {
			t.Errorf("%q became %q and then %q, %v", name, a.Path, got, err)
		}
		if _, err := url.Parse(a.Path); err != nil {
			t.Errorf("%q is not a URI: %v", a.Path, err)
		}
	}
	for _, path := range []string{"/a", "s3://b/c", "file:/x", "%zz"} {
		if name, err := (&Add{Path: path}).Name(); err == nil {
			t.Errorf("%s became %s", path, name)
		}
	}
	same := [][]string{{"/a b", "file:/a%20b", "file:///a%20b", "/a%20b"}, {"x/y", "x%2Fy"}, {"é", "%C3%A9"}}
	for _, group := range same {
		for _, p := range group {
			if fileKey(p, nil) != fileKey(group[0], nil) {
				t.Errorf("%s and %s are one file", p, group[0])
			}
		}
	}
	offset := int32(4)
	if fileKey("a", nil) == fileKey("a", &DeletionVector{StorageType: "u", PathOrInlineDv: "x", Offset: &offset}) {
		t.Error("a deletion vector makes another logical file")
	}
}

// TestJSONChecksum has the specification's example.
func TestJSONChecksum(t *testing.T) {
	const data = `{"k0":"'v 0'", "checksum": "adsaskfljadfkjadfkj", "k1":{"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]}}`
	const canonical = `"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7"`
	if got, err := canonicalJSON([]byte(data)); err != nil || got != canonical {
		t.Errorf("%v:\n%s\nwant\n%s", err, got, canonical)
	}
	if got, err := jsonChecksum([]byte(data)); err != nil || got != "6a92d155a59bf2eecbd4b4ec7fd1f875" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestLogNames(t *testing.T) {
	v := strings.Repeat("0", 19) + "7"
	for base, want := range map[string]logKind{
		v + ".json": kindCommit, v + ".crc": kindChecksum, v + ".checkpoint.parquet": kindClassic, v + ".checkpoint.0000000001.0000000002.parquet": kindMultipart,
		v + ".checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json": kindV2, v + "." + v + ".compacted.json": kindCompacted, v + ".checkpoint.0000000003.0000000002.parquet": kindOther,
		v[1:] + ".json": kindOther, "x.json": kindOther, v + ".json.tmp": kindOther, "99999999999999999999.json": kindOther, "": kindOther,
	} {
		f := parseLogName(logDir + base)
		if f.kind != want || want != kindOther && f.version != 7 {
			t.Errorf("%s: %+v", base, f)
		}
	}
	if f := parseLogName(commitName(math.MaxInt64 / 2)); f.version != math.MaxInt64/2 {
		t.Errorf("%+v", f)
	}
	l := &logListing{}
	parts := map[string][]logFile{}
	for _, name := range []string{v + ".checkpoint.0000000001.0000000002.parquet", v + ".checkpoint.0000000002.0000000003.parquet", v + ".checkpoint.0000000002.0000000002.parquet"} {
		l.add(parseLogName(logDir+name), parts)
	}
	if len(l.checkpoints) != 1 || len(l.checkpoints[0].files) != 2 {
		t.Errorf("complete checkpoints: %v", l.checkpoints)
	}
}

func TestSleepEndsWithContext(t *testing.T) {
	if err := wait(t.Context(), time.Microsecond); err != nil {
		t.Error(err)
	}
	if !slices.Contains(writable, "appendOnly") {
		t.Error("appendOnly must be writable")
	}
}
