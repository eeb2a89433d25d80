package txn

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
)

// What the client's options say of the number of records on their way goes before the default, and Waiting knows.
func TestClientsBoundOfRecords(t *testing.T) {
	const bound = 3
	p := New(Config{
		Client:  []kgo.Opt{kgo.SeedBrokers(brokertest.Embedded(t).Addrs...), kgo.MaxBufferedRecords(bound), kgo.UnknownTopicRetries(-1)},
		Records: 20_000, Logger: slog.New(slog.DiscardHandler),
	})
	if err := p.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := p.Hand()
	produce := func() {
		if err := h.Produce(t.Context(), Record{Topic: "nowhere", Timestamp: 1}); err != nil { // it waits for a topic that never comes
			t.Error(err)
		}
	}
	for range bound {
		produce()
	}
	if _, waiting := p.Waiting(); waiting {
		t.Fatal("a record waits for room although there was enough")
	}
	done := make(chan struct{})
	go func() { produce(); close(done) }()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if _, waiting := p.Waiting(); waiting {
			break
		}
		if time.Now().After(end) {
			t.Error("no record waits for room")
			break
		}
	}
	p.Close()
	<-done
}

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
