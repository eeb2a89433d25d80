package embedded

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// batchOf builds a batch of format 2 around encoded records.
func batchOf(records []byte, codec kgo.CompressionCodecType) []byte {
	records, codec = compress(records, codec)
	b := make([]byte, batchRecordsAt, batchRecordsAt+len(records))
	b[batchMagicAt] = 2
	b[batchAttributesAt+1] = byte(codec)
	b = append(b, records...)
	binary.BigEndian.PutUint32(b[batchLengthAt:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[batchCRCAt:], crc32.Checksum(b[batchAttributesAt:], castagnoli))
	return b
}

// record encodes a record of the given timestamp delta; rest stands for everything behind it.
func record(delta int64, rest string) []byte {
	body := binary.AppendVarint([]byte{0}, delta)
	body = append(body, rest...)
	return append(binary.AppendVarint(nil, int64(len(body))), body...)
}

func TestRestampKeepsAllButTheTime(t *testing.T) {
	text := string(bytes.Repeat([]byte("tributary"), 100))
	in := append(record(0, text), record(86_400_000, "b")...)
	want := append(record(0, text), record(0, "b")...)
	for codec := kgo.CodecNone; codec <= kgo.CodecZstd; codec++ {
		out, err := restamp(batchOf(in, codec), 1234)
		if err != nil {
			t.Fatalf("codec %d: %v", codec, err)
		}
		records, err := decompress.Decompress(out[batchRecordsAt:], kgo.CompressionCodecType(out[batchAttributesAt+1]&batchCodecBits))
		if err != nil || !bytes.Equal(records, want) {
			t.Errorf("codec %d: records differ (%v)", codec, err)
		}
		if first := binary.BigEndian.Uint64(out[batchFirstTimestampAt:]); first != 1234 {
			t.Errorf("codec %d: first timestamp %d", codec, first)
		}
	}
}

func FuzzRestamp(f *testing.F) {
	f.Add(record(5, "abc"), byte(0))
	f.Add(record(5, "abc")[:2], byte(4))
	f.Add([]byte{0x80}, byte(1))
	f.Fuzz(func(t *testing.T, records []byte, codec byte) {
		out, err := restamp(batchOf(records, kgo.CompressionCodecType(codec%5)), 1)
		if err != nil {
			return
		}
		if again, err := restamp(out, 1); err != nil || !bytes.Equal(again[batchRecordsAt:], out[batchRecordsAt:]) {
			t.Fatalf("a stamped batch is not stable: %v", err)
		}
	})
}
