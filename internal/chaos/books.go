package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/lake"
)

// Book compares one thing that the application says with the model.
type Book struct {
	Name string
	// Want is how many entries the model has; Lost of them are missing, Doubled are there more than once, and Wrong have other contents, are
	// unknown to the model, or stand in a place where they can't.
	Want, Lost, Doubled, Wrong int64
	// First tells of the first few differences.
	First []string
}

func (b *Book) differs(kind *int64, format string, args ...any) {
	*kind++
	if len(b.First) < 5 {
		b.First = append(b.First, fmt.Sprintf(format, args...))
	}
}

// Closed tells that it equals the model.
func (b *Book) Closed() bool { return b.Lost+b.Doubled+b.Wrong == 0 }

func (b *Book) String() string {
	return fmt.Sprintf("%s: %d wanted, %d lost, %d doubled, %d wrong", b.Name, b.Want, b.Lost, b.Doubled, b.Wrong)
}

// ledger compares entries as they come with those of the model, by key.
type ledger[V comparable] struct {
	book Book
	want map[string]V
	seen map[string]int
}

func newLedger[V comparable](name string, want map[string]V) *ledger[V] {
	return &ledger[V]{book: Book{Name: name, Want: int64(len(want))}, want: want, seen: map[string]int{}}
}

func (l *ledger[V]) add(key string, got V, where string) {
	want, known := l.want[key]
	switch {
	case !known:
		l.book.differs(&l.book.Wrong, "%s: %v is not expected at all (%s)", key, got, where)
		return
	case got != want:
		l.book.differs(&l.book.Wrong, "%s: %v, want %v (%s)", key, got, want, where)
	}
	if l.seen[key]++; l.seen[key] > 1 {
		l.book.differs(&l.book.Doubled, "%s: %v for the %d. time (%s)", key, got, l.seen[key], where)
	}
}

// end adds up what is missing.
func (l *ledger[V]) end() Book {
	for key, want := range l.want {
		if l.seen[key] == 0 {
			l.book.differs(&l.book.Lost, "%s: %v is missing", key, want)
		}
	}
	return l.book
}

func place(r *kgo.Record) string {
	return fmt.Sprintf("%s-%d offset %d", r.Topic, r.Partition, r.Offset)
}

// readTopic gives all committed records of a topic, each partition in its order.
func readTopic(ctx context.Context, brokers []string, topic string, f func(*kgo.Record) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	open := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if first, _ := starts.Lookup(topic, o.Partition); o.Offset > first.Offset {
			open[o.Partition] = o.Offset
		}
	})
	for len(open) > 0 {
		fetches := client.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read %s: the ends of partitions %v don't come: %w", topic, open, err)
		}
		for _, e := range fetches.Errors() {
			return fmt.Errorf("read %s: %w", topic, e.Err)
		}
		var failed error
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() && failed == nil {
				failed = f(r)
			}
			if r.Offset+1 >= open[r.Partition] {
				delete(open, r.Partition)
			}
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

// readModel takes what is in the input topics through the model.
func readModel(ctx context.Context, brokers []string, closedBefore int64) (*model, error) {
	m := newModel()
	err := errors.Join(
		readTopic(ctx, brokers, customerTopic, m.addCustomer),
		readTopic(ctx, brokers, orderTopic, m.addOrder),
		readTopic(ctx, brokers, paymentTopic, m.addPayment))
	m.closeWindows(closedBefore)
	return m, err
}

// closeBooks compares all that the application has written with the model.
func closeBooks(ctx context.Context, brokers []string, lakeDir string, m *model) ([]Book, error) {
	var books []Book
	for _, f := range []func() (Book, error){
		func() (Book, error) { return paidBook(ctx, brokers, m) },
		func() (Book, error) { return totalBook(ctx, brokers, m) },
		func() (Book, error) { return closedBook(ctx, brokers, m) },
		func() (Book, error) { return seenBook(ctx, brokers, m) },
		func() (Book, error) { return changelogBook(ctx, brokers, m) },
		func() (Book, error) { return orderTableBook(ctx, lakeDir, m) },
		func() (Book, error) { return windowTableBook(ctx, lakeDir, m) },
	} {
		b, err := f()
		if err != nil {
			return nil, err
		}
		books = append(books, b)
	}
	return books, nil
}

func paidBook(ctx context.Context, brokers []string, m *model) (Book, error) {
	l := newLedger("topic of joined pairs", m.paid)
	err := readTopic(ctx, brokers, paidTopic, func(r *kgo.Record) error {
		p, err := decode[paid](r)
		l.add(p.Event+"/"+p.Payment, p, place(r))
		return err
	})
	return l.end(), err
}

// totalBook checks each step of each region's total: the counts are 1, 2, 3 and so on.
func totalBook(ctx context.Context, brokers []string, m *model) (Book, error) {
	b := Book{Name: "topic of totals"}
	last := map[string]totals{}
	err := readTopic(ctx, brokers, totalTopic, func(r *kgo.Record) error {
		t, err := decode[totals](r)
		key := string(r.Key)
		switch was := last[key]; {
		case t.Count <= was.Count:
			b.differs(&b.Doubled, "%s: count %d after %d (%s)", key, t.Count, was.Count, place(r))
		case t.Count > was.Count+1:
			b.differs(&b.Lost, "%s: count %d after %d (%s)", key, t.Count, was.Count, place(r))
		}
		last[key] = t
		return err
	})
	for region, want := range m.totals {
		b.Want += want.Count
		if last[region] != want {
			b.differs(&b.Wrong, "%s: the last total is %v, want %v", region, last[region], want)
		}
	}
	return b, err
}

func closedBook(ctx context.Context, brokers []string, m *model) (Book, error) {
	l := newLedger("topic of closed windows", m.windows)
	err := readTopic(ctx, brokers, closedTopic, func(r *kgo.Record) error {
		w, err := decode[closedWindow](r)
		l.add(windowKey(w.Region, w.Start), w, place(r))
		return err
	})
	return l.end(), err
}

// seenBook looks for the ids in the deduplication's changelog: its keys are the id and twelve bytes of time and number.
func seenBook(ctx context.Context, brokers []string, m *model) (Book, error) {
	l := newLedger("changelog of seen ids", m.seen)
	err := readTopic(ctx, brokers, applicationID+"-"+seenStore+"-changelog", func(r *kgo.Record) error {
		if len(r.Key) < 12 {
			return fmt.Errorf("%s: a key of %d bytes", place(r), len(r.Key))
		}
		l.add(string(r.Key[:len(r.Key)-12]), true, place(r))
		return nil
	})
	return l.end(), err
}

// changelogBook compares the last value of each key in the changelog of totals.
func changelogBook(ctx context.Context, brokers []string, m *model) (Book, error) {
	last := map[string]totals{}
	err := readTopic(ctx, brokers, applicationID+"-"+totalStore+"-changelog", func(r *kgo.Record) error {
		t, err := decode[totals](r)
		last[string(r.Key)] = t
		return err
	})
	l := newLedger("changelog of totals", m.totals)
	for key, t := range last {
		l.add(key, t, "last value")
	}
	return l.end(), err
}

func orderTableBook(ctx context.Context, lakeDir string, m *model) (Book, error) {
	l := newLedger("lake table of orders", m.orders)
	for row, err := range lake.ReadRows(ctx, filepath.Join(lakeDir, orderTable)) {
		if err != nil {
			return l.book, err
		}
		e := enriched{row["ID"].(string), row["Order"].(string), row["Customer"].(string), row["Region"].(string), row["Cents"].(int64)}
		l.add(e.ID, e, "row")
	}
	return l.end(), nil
}

func windowTableBook(ctx context.Context, lakeDir string, m *model) (Book, error) {
	l := newLedger("lake table of windows", m.windows)
	for row, err := range lake.ReadRows(ctx, filepath.Join(lakeDir, windowTable)) {
		if err != nil {
			return l.book, err
		}
		w := closedWindow{row["Region"].(string), row["Start"].(int64), row["Count"].(int64), row["Cents"].(int64)}
		l.add(windowKey(w.Region, w.Start), w, "row")
	}
	return l.end(), nil
}

// storeBook asks an instance for the store of totals, wherever its partitions are.
func storeBook(ctx context.Context, addr string, m *model) (Book, error) {
	l := newLedger("store of totals over HTTP", m.totals)
	answer, err := askStore(ctx, addr)
	if err != nil {
		return l.book, err
	}
	for _, row := range answer.Rows {
		l.add(row.Key, row.Value, fmt.Sprint("partition ", row.Partition))
	}
	return l.end(), nil
}

type storeAnswer struct {
	Rows []struct {
		Partition int32
		Key       string
		Value     totals
	}
	Truncated bool
}

// askStore tries for a while: an instance may be busy with an assignment.
func askStore(ctx context.Context, addr string) (answer storeAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		if answer, err = askOnce(ctx, addr); err == nil {
			return answer, nil
		}
		select {
		case <-ctx.Done():
			return answer, fmt.Errorf("ask %s for the store of totals: %w", addr, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func askOnce(ctx context.Context, addr string) (answer storeAnswer, err error) {
	u := url.URL{Scheme: "http", Host: addr, Path: "/stores/" + totalStore + "/scan", RawQuery: "limit=1000"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return answer, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return answer, errors.New(resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return answer, err
	}
	if answer.Truncated {
		return answer, errors.New("the answer is cut short")
	}
	return answer, nil
}
