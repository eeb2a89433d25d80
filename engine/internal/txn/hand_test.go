package txn

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Entries that were acknowledged are used again, each by one at a time, and none is lost.
func TestSparesComeBack(t *testing.T) {
	p := New(Config{})
	const hands, each = 4, 3 * chainLength
	var made sync.Map
	back := make(chan *entry, chainLength)
	var acknowledging, producing sync.WaitGroup
	acknowledging.Go(func() {
		for e := range back {
			e.promise(&e.record, nil)
		}
	})
	for range hands {
		h := p.Hand()
		producing.Go(func() {
			for range each {
				e := h.take()
				if e.txn != nil || e.end != nil || e.next != nil || e.record.Topic != "" {
					t.Error("an entry was given that is in use")
				}
				e.txn, e.record = &transaction{}, kgo.Record{Topic: "used"}
				made.Store(e, true)
				back <- e
			}
		})
	}
	producing.Wait()
	close(back)
	acknowledging.Wait()
	n := 0
	made.Range(func(_, _ any) bool { n++; return true })
	if n == 0 || n >= hands*each {
		t.Errorf("%d entries were made for %d records", n, hands*each)
	}
	p.spares.trim(chainLength)
	if len(p.spares.chains) > 2 {
		t.Errorf("%d chains are kept", len(p.spares.chains))
	}
}
