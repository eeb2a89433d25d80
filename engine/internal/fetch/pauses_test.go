package fetch

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func newPauses(t testing.TB) *pauses {
	client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	p := &pauses{client: client}
	t.Cleanup(func() { p.close(); client.Close() })
	return p
}

// paused lists what the client has paused of topic t.
func (p *pauses) paused() []int32 {
	return slices.Sorted(slices.Values(p.client.PauseFetchPartitions(nil)["t"]))
}

func parts(numbers ...int32) (ps []Partition) {
	for _, n := range numbers {
		ps = append(ps, Partition{"t", n})
	}
	return ps
}

func TestPausesAreGathered(t *testing.T) {
	p := newPauses(t)
	is := func(when string, want ...int32) {
		t.Helper()
		if got := p.paused(); !slices.Equal(got, want) {
			t.Errorf("%s: %v is paused, want %v", when, got, want)
		}
	}
	p.hold()
	p.ask(true, parts(1, 2, 3))
	p.ask(false, parts(1))
	is("while it is held")
	p.forget(parts(3))
	p.release()
	is("the last that was asked for counts, and what is forgotten doesn't", 2)

	p.mu.Lock()
	p.rest = time.Now().Add(time.Hour)
	p.mu.Unlock()
	p.ask(false, parts(2))
	p.ask(true, parts(4))
	is("while the client is left in peace", 2)
	p.rested()
	is("then", 4)

	p.mu.Lock()
	p.rest = time.Now().Add(time.Millisecond)
	p.mu.Unlock()
	p.ask(false, parts(4))
	for end := time.Now().Add(time.Minute); len(p.paused()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the timer doesn't bring it")
		}
	}

	p.close()
	p.ask(true, parts(5))
	is("after the close")
}

// BenchmarkThousandsOfPauses pauses 2,000 partitions in one delivery and resumes them one by one.
func BenchmarkThousandsOfPauses(b *testing.B) {
	const n = 2000
	run := func(b *testing.B, pause, resume func(p *pauses, part int32), hold bool) {
		p := newPauses(b)
		for b.Loop() {
			if hold {
				p.hold()
			}
			for part := range int32(n) {
				pause(p, part)
			}
			if hold {
				p.release()
			}
			if len(p.paused()) != n {
				b.Fatal("not all are paused")
			}
			for part := range int32(n) {
				resume(p, part)
			}
			for len(p.paused()) > 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	b.Run("gathered", func(b *testing.B) {
		run(b, func(p *pauses, part int32) { p.ask(true, parts(part)) }, func(p *pauses, part int32) { p.ask(false, parts(part)) }, true)
	})
	b.Run("one at a time", func(b *testing.B) {
		run(b, func(p *pauses, part int32) { p.client.PauseFetchPartitions(byTopic(parts(part))) },
			func(p *pauses, part int32) { p.client.ResumeFetchPartitions(byTopic(parts(part))) }, false)
	})
}
