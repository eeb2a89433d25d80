package dlq

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/internal/verify"
	"github.com/tributary-io/tributary/processors"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := realkafka.StopShared(); err != nil {
		fmt.Fprintln(os.Stderr, "stop Kafka:", err)
		code = max(code, 1)
	}
	if err := leaks.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// each runs a test on the embedded broker and on a real one.
func each(t *testing.T, test func(t *testing.T, opts []kgo.Opt)) {
	t.Run("embedded", func(t *testing.T) {
		b, err := embedded.StartBroker(embedded.BrokerConfig{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		test(t, []kgo.Opt{kgo.SeedBrokers(b.Addrs()...)})
	})
	t.Run("kafka", func(t *testing.T) {
		test(t, []kgo.Opt{kgo.SeedBrokers(realkafka.Shared(t, 1).Addrs()...)})
	})
}

// post is an office with letters.
type post struct {
	opts         []kgo.Opt
	client       *kgo.Client
	source, dead string
}

func newPost(t *testing.T, opts []kgo.Opt, name string) *post {
	t.Helper()
	client, err := kgo.NewClient(append(slices.Clone(opts), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p := &post{opts: opts, client: client, source: name, dead: name + ".dead_letters"}
	admin := kadm.NewClient(client)
	forEver := "-1" // the letters are dated, and brokers delete by that date
	for _, topic := range []string{p.source, p.dead} {
		if _, err := admin.CreateTopic(t.Context(), 2, -1, map[string]*string{"retention.ms": &forEver}, topic); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		listed, err := admin.ListEndOffsets(t.Context(), p.source, p.dead)
		if err == nil && listed.Error() == nil {
			return p
		}
		if time.Now().After(end) {
			t.Fatalf("the topics don't come: %v %v", err, listed.Error())
		}
	}
}

// letter writes a letter as an engine does.
func (p *post) letter(t *testing.T, n int, message, producer string, more ...kgo.RecordHeader) {
	t.Helper()
	e := processors.ErrorContext{Node: "land", Topic: p.source, Partition: int32(n % 2), Offset: int64(n), Err: fmt.Errorf("%s", message)}
	r := &kgo.Record{Topic: p.dead, Partition: int32(n % 2), Key: []byte(strconv.Itoa(n)), Value: []byte("value " + strconv.Itoa(n)),
		Timestamp: noon.Add(time.Duration(n) * time.Hour), Headers: append([]kgo.RecordHeader{{Key: "producer", Value: []byte(producer)}}, more...)}
	for _, h := range e.DeadLetterHeaders() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	if err := p.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// replay plans and runs, and returns the plan and how many were sent.
func (p *post) replay(t *testing.T, f Filter, again bool) (*Replay, int) {
	t.Helper()
	r, err := Plan(t.Context(), Config{Client: p.opts, Topic: p.dead, Filter: f, Again: again})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r, n
}

// replayed are the records in the source topic by key.
func (p *post) replayed(t *testing.T) map[string]*kgo.Record {
	t.Helper()
	out := map[string]*kgo.Record{}
	for r, err := range verify.Committed(t.Context(), p.opts, p.source) {
		if err != nil {
			t.Fatal(err)
		}
		if out[string(r.Key)] != nil {
			t.Errorf("key %s was replayed twice", r.Key)
		}
		out[string(r.Key)] = r
	}
	return out
}

func TestReadAndGroup(t *testing.T) {
	each(t, func(t *testing.T, opts []kgo.Opt) {
		p := newPost(t, opts, "list")
		for n := range 6 {
			p.letter(t, n, fmt.Sprintf("field %q: %d is too large", "f"+strconv.Itoa(n), n*1000), "shop")
		}
		p.letter(t, 6, "schema id 99: the registry has no such schema", "crm")
		count := func(f Filter) (n int) {
			for _, err := range Read(t.Context(), opts, p.dead, f) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		for want, f := range map[int]Filter{7: {}, 6: {Reason: "TOO large"}, 1: {Producer: "crm"}, 3: {Since: noon.Add(4 * time.Hour)}, 2: {Since: noon.Add(time.Hour), Until: noon.Add(3 * time.Hour)}, 0: {Source: "elsewhere"}} {
			if got := count(f); got != want {
				t.Errorf("%+v chooses %d, want %d", f, got, want)
			}
		}
		g, err := NewGroups(ByReason, ByProducer)
		if err != nil {
			t.Fatal(err)
		}
		for l, err := range Read(t.Context(), opts, p.dead, Filter{}) {
			if err != nil {
				t.Fatal(err)
			}
			g.Add(l)
		}
		all := g.Sorted()
		if len(all) != 2 || all[0].Count != 6 || all[0].Values[0] != "node land: field …: # is too large" || all[0].Values[1] != "shop" ||
			!all[0].First.Equal(noon) || !all[0].Last.Equal(noon.Add(5*time.Hour)) {
			t.Errorf("groups %+v", all)
		}
		if _, err := NewGroups("weight"); err == nil {
			t.Error("an unknown grouping was taken")
		}
	})
}

// TestReplay replays letters by parts, twice, and by two people at once.
func TestReplay(t *testing.T) {
	each(t, func(t *testing.T, opts []kgo.Opt) {
		p := newPost(t, opts, "replay")
		for n := range 20 {
			producer := "shop"
			if n%3 == 0 {
				producer = "crm"
			}
			p.letter(t, n, "bad", producer)
		}
		r, err := Preview(t.Context(), Config{Client: opts, Topic: p.dead})
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if len(r.Todo) != 20 || r.To[p.source] != 20 || len(p.replayed(t)) != 0 {
			t.Fatalf("the preview chooses %d", len(r.Todo))
		}
		if _, n := p.replay(t, Filter{Producer: "crm"}, false); n != 7 {
			t.Errorf("%d letters replayed, want 7", n)
		}
		if r, n := p.replay(t, Filter{Producer: "crm"}, false); n != 0 || r.Replayed != 7 {
			t.Errorf("a second time: %d replayed, %d before", n, r.Replayed)
		}
		if r, n := p.replay(t, Filter{}, false); n != 13 || r.Replayed != 7 {
			t.Errorf("the rest: %d replayed, %d before", n, r.Replayed)
		}
		got := p.replayed(t)
		if len(got) != 20 {
			t.Errorf("%d letters came back, want 20", len(got))
		}
		one := got["4"]
		var headers []string
		for _, h := range one.Headers {
			headers = append(headers, h.Key+"="+string(h.Value))
		}
		if diff := cmp.Diff([]string{"producer=shop", HeaderReplay + "=" + p.dead + "-0@2"}, headers); diff != "" || string(one.Value) != "value 4" || one.Partition != 0 || !one.Timestamp.Equal(noon.Add(4*time.Hour)) {
			t.Errorf("record %s of %v: %s", one.Value, one.Timestamp, diff)
		}

		// Letters that failed again come back with the header of their replay.
		p.letter(t, 20, "bad", "shop", kgo.RecordHeader{Key: HeaderReplay, Value: []byte("x")})
		p.letter(t, 21, "bad", "shop")
		if r, n := p.replay(t, Filter{}, false); n != 1 || r.Again != 1 || r.Replayed != 20 {
			t.Errorf("after another failure: %d replayed, %d again, %d before", n, r.Again, r.Replayed)
		}
		if _, n := p.replay(t, Filter{}, true); n != 1 {
			t.Errorf("again: %d replayed", n)
		}
		if _, n := p.replay(t, Filter{}, true); n != 0 {
			t.Errorf("again, a second time: %d replayed", n)
		}
		p.replayed(t)
	})
}

// TestOnlyOneReplays: whoever plans last goes on, and the other one sends nothing.
func TestOnlyOneReplays(t *testing.T) {
	each(t, func(t *testing.T, opts []kgo.Opt) {
		p := newPost(t, opts, "race")
		for n := range 10 {
			p.letter(t, n, "bad", "shop")
		}
		first, err := Plan(t.Context(), Config{Client: opts, Topic: p.dead})
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		if _, n := p.replay(t, Filter{}, false); n != 10 {
			t.Errorf("%d replayed", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		if n, err := first.Run(ctx); err == nil || n != 0 {
			t.Errorf("the one that was left behind replayed %d: %v", n, err)
		}
		if got := len(p.replayed(t)); got != 10 {
			t.Errorf("%d records, want 10", got)
		}
	})
}

// TestLettersWithoutAHome stay where they are.
func TestLettersWithoutAHome(t *testing.T) {
	each(t, func(t *testing.T, opts []kgo.Opt) {
		p := newPost(t, opts, "homeless")
		p.letter(t, 0, "bad", "shop")
		gone := &post{opts: opts, client: p.client, source: "homeless.gone", dead: p.dead}
		gone.letter(t, 1, "bad", "shop")
		if err := p.client.ProduceSync(t.Context(), &kgo.Record{Topic: p.dead, Value: []byte("no headers")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		r, n := p.replay(t, Filter{}, false)
		if n != 1 || r.Homeless != 1 || !maps.Equal(r.Gone, map[string]int{"homeless.gone": 1}) {
			t.Errorf("%d replayed, %d homeless, gone %v", n, r.Homeless, r.Gone)
		}
		if strings.Contains(fmt.Sprint(slices.Collect(maps.Keys(p.replayed(t)))), "1") {
			t.Error("a letter of another topic came here")
		}
		if r, n := p.replay(t, Filter{}, false); n != 0 || r.Replayed != 1 || r.Homeless != 1 {
			t.Errorf("a second time: %d replayed, %d before", n, r.Replayed)
		}
	})
}
