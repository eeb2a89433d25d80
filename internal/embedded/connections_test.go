package embedded

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"testing/quick"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRequestsAreFoundHoweverTheyAreCut has frames of any sizes, every other one of interest, come in pieces of any sizes.
func TestRequestsAreFoundHoweverTheyAreCut(t *testing.T) {
	check := func(sizes []uint8, cuts []uint8) bool {
		var stream []byte
		var want, got []string
		for i, size := range sizes {
			key := []kmsg.Key{kmsg.JoinGroup, kmsg.Produce}[i%2]
			frame := binary.BigEndian.AppendUint16(nil, uint16(key))
			frame = binary.BigEndian.AppendUint16(frame, 9)
			frame = binary.BigEndian.AppendUint32(frame, uint32(i)*7)
			frame = append(frame, bytes.Repeat([]byte{size}, int(size))...)
			stream = append(binary.BigEndian.AppendUint32(stream, uint32(len(frame))), frame...)
			if key == kmsg.JoinGroup {
				want = append(want, string(frame))
			}
		}
		var f requestFrames
		take := func(p []byte) { f.read(p, func(frame []byte) { got = append(got, string(frame)) }) }
		for _, cut := range cuts {
			n := min(int(cut), len(stream))
			take(stream[:n])
			stream = stream[n:]
		}
		take(stream)
		return slices.Equal(got, want)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}
