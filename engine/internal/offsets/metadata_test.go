package offsets

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Bytes as Kafka Streams 4.3 writes them: they must be readable for ever.
func TestFormatIsThatOfKafkaStreams(t *testing.T) {
	for _, c := range []struct {
		meta Metadata
		hex  string
	}{
		{Metadata{PartitionTime: NoTime}, "02ffffffffffffffff"},
		{Metadata{PartitionTime: 1000}, "0200000000000003e8"},
		{Metadata{PartitionTime: 1, Progress: map[string]int64{"ab": 2, "c": 3}},
			"020000000000000001" + "00000002" + "00000002" + "6162" + "0000000000000002" + "00000001" + "63" + "0000000000000003"},
	} {
		raw, _ := hex.DecodeString(c.hex)
		text := base64.StdEncoding.EncodeToString(raw)
		if got := c.meta.Encode(); got != text {
			t.Errorf("%+v: encoded %s, want %s", c.meta, got, text)
		}
		if got, err := DecodeMetadata(text); err != nil || !cmp.Equal(got, c.meta) {
			t.Errorf("%s: decoded %+v, %v", c.hex, got, err)
		}
	}
	old, err := DecodeMetadata(base64.StdEncoding.EncodeToString([]byte{1, 0, 0, 0, 0, 0, 0, 0, 5}))
	if err != nil || old.PartitionTime != 5 {
		t.Errorf("version 1: %+v, %v", old, err)
	}
}

func TestForeignMetadata(t *testing.T) {
	if got, err := DecodeMetadata(""); err != nil || got.PartitionTime != NoTime {
		t.Errorf("none: %+v, %v", got, err)
	}
	for _, text := range []string{"by hand", "AA==", "CQAAAAAAAAAAAA==", "AgAAAAAAAAAAAAAAAQ=="} {
		if _, err := DecodeMetadata(text); !errors.Is(err, ErrMetadata) {
			t.Errorf("%q: got %v, want ErrMetadata", text, err)
		}
	}
}

func TestMergeTakesTheLatest(t *testing.T) {
	m := Metadata{Progress: map[string]int64{"a": 5, "b": 1}}
	m.Merge(Metadata{Progress: map[string]int64{"a": 3, "b": 2, "c": 4}})
	if d := cmp.Diff(map[string]int64{"a": 5, "b": 2, "c": 4}, m.Progress); d != "" {
		t.Error(d)
	}
}

func FuzzDecodeMetadata(f *testing.F) {
	f.Add(Metadata{PartitionTime: 1, Progress: map[string]int64{"ab": 2}}.Encode())
	f.Add("AgAAAAAAAAAA/////w==")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := DecodeMetadata(text)
		if err != nil {
			return
		}
		again, err := DecodeMetadata(m.Encode())
		if len(m.Progress) == 0 {
			m.Progress = nil
		}
		if err != nil || !cmp.Equal(m, again) {
			t.Fatalf("%v %s", err, cmp.Diff(m, again))
		}
	})
}
