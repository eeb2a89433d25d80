package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Places in a record batch of format 2 (Kafka protocol, "Record Batch"). The length counts from behind itself, the checksum
// covers everything from the attributes on.
const (
	batchLengthAt         = 8
	batchLeaderEpochAt    = 12
	batchMagicAt          = 16
	batchCRCAt            = 17
	batchAttributesAt     = 21
	batchLastDeltaAt      = 23
	batchFirstTimestampAt = 27
	batchMaxTimestampAt   = 35
	batchProducerIDAt     = 43
	batchProducerEpochAt  = 51
	batchSequenceAt       = 53
	batchRecordsAt        = 61

	// Bits of the attributes' second byte.
	batchCodecBits        = 0x07
	batchTransactionalBit = 0x10
	batchControlBit       = 0x20
)

var (
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
	errNotBatch = errors.New("not a whole record batch of format 2")
	decompress  = kgo.DefaultDecompressor()
)

// restamp returns a copy of a record batch in which every record has the timestamp now, in ms, compressed by the same codec.
func restamp(batch []byte, now int64) ([]byte, error) {
	if len(batch) < batchRecordsAt || batch[batchMagicAt] != 2 ||
		int(binary.BigEndian.Uint32(batch[batchLengthAt:])) != len(batch)-batchMagicAt+4 ||
		crc32.Checksum(batch[batchAttributesAt:], castagnoli) != binary.BigEndian.Uint32(batch[batchCRCAt:]) {
		return nil, errNotBatch
	}
	codec := kgo.CompressionCodecType(batch[batchAttributesAt+1] & batchCodecBits)
	records, err := decompress.Decompress(batch[batchRecordsAt:], codec)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if records, err = dropTimestampDeltas(records); err != nil {
		return nil, err
	}
	records, codec = compress(records, codec)
	out := append(append(make([]byte, 0, batchRecordsAt+len(records)), batch[:batchRecordsAt]...), records...)
	binary.BigEndian.PutUint32(out[batchLengthAt:], uint32(len(out)-batchMagicAt+4))
	binary.BigEndian.PutUint64(out[batchFirstTimestampAt:], uint64(now))
	binary.BigEndian.PutUint64(out[batchMaxTimestampAt:], uint64(now))
	out[batchAttributesAt+1] = out[batchAttributesAt+1]&^batchCodecBits | byte(codec)
	binary.BigEndian.PutUint32(out[batchCRCAt:], crc32.Checksum(out[batchAttributesAt:], castagnoli))
	return out, nil
}

// dropTimestampDeltas rewrites records (length, attributes, timestamp delta, the rest) with the delta 0.
func dropTimestampDeltas(records []byte) ([]byte, error) {
	out := make([]byte, 0, len(records))
	for len(records) > 0 {
		length, n := binary.Varint(records)
		if n <= 0 || length < 1 || length > int64(len(records)-n) {
			return nil, errNotBatch
		}
		body := records[n : n+int(length)]
		records = records[n+int(length):]
		_, n = binary.Varint(body[1:])
		if n <= 0 {
			return nil, errNotBatch
		}
		rest := body[1+n:]
		out = binary.AppendVarint(out, int64(2+len(rest)))
		out = append(out, body[0], 0)
		out = append(out, rest...)
	}
	return out, nil
}

// compressors holds one compressor for each codec of the attributes' bits.
var compressors = func() (all []kgo.Compressor) {
	for _, codec := range []kgo.CompressionCodec{
		kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression(),
	} {
		c, err := kgo.DefaultCompressor(codec)
		if err != nil {
			panic(err) // only for levels that don't exist
		}
		all = append(all, c)
	}
	return all
}()

// compress compresses records by codec as far as that can be done, and returns the codec that was used.
func compress(records []byte, codec kgo.CompressionCodecType) ([]byte, kgo.CompressionCodecType) {
	if codec == kgo.CodecNone || int(codec) >= len(compressors) {
		return records, kgo.CodecNone
	}
	return compressors[codec].Compress(&bytes.Buffer{}, records)
}
