package land

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/schemas"
	"github.com/tributary-io/tributary/serde"
)

// TestManyStreamsStaySmall lands three hundred streams in a process of its own, with rows in all of them, and looks at its memory.
func TestManyStreamsStaySmall(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("SKIPPED, NOT TESTED: this system doesn't tell the memory of a process")
	}
	if raceEnabled {
		t.Skip("SKIPPED, NOT TESTED: the race detector takes memory of its own")
	}
	const streams, each = 300, 400
	w := newWorld(t, nil, "")
	var topics []string
	for i := range streams {
		topics = append(topics, fmt.Sprintf("ods.many.t%03d", i))
	}
	instance := w.child(t, "many", topics...)
	reg, err := serde.NewRegistry(w.cfg.Registry)
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	var id int
	eventuallyBy(t, time.Now().Add(5*time.Minute), "the last subject", func() bool {
		id, err = reg.Lookup(t.Context(), serde.Subject(topics[streams-1], false), small)
		return err == nil
	})
	note := strings.Repeat("x", 200)
	for n := range int64(each) {
		value := appendLong(serde.AppendFrame(nil, int32(id)), n)
		value = appendBytes(append(value, 2), []byte(note)) // the second branch of the union
		for _, topic := range topics {
			w.client.Produce(t.Context(), &kgo.Record{Topic: topic, Partition: int32(n % 2), Value: value}, nil)
		}
	}
	if err := w.client.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	slow := time.Now().Add(6 * time.Minute) // on a machine that does other things, too
	for i := range streams {
		s, err := Of(schemas.Stream{Topic: topics[i], Schema: small})
		if err != nil {
			t.Fatal(err)
		}
		eventuallyBy(t, slow, "landed "+s.Topic, func() bool {
			_, progress, err := lake.ReadProgress(t.Context(), w.cfg.TablePlace(&s))
			var next int64
			for _, p := range progress {
				next += p.Next
			}
			return err == nil && next == each
		})
	}
	peak := peakMemory(t, instance.Pid())
	t.Logf("peak resident memory with %d streams: %d MB", streams, peak>>20)
	if peak > 512<<20 {
		t.Errorf("the process took %d MB, more than 512", peak>>20)
	}
}

// peakMemory is the largest resident memory that a process had, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
