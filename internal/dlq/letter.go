package dlq

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/verify"
	"github.com/tributary-io/tributary/processors"
)

// HeaderReplay is the header of a replayed record. It names the letter that it was: <topic>-<partition>@<offset>.
const HeaderReplay = "tributary.replay-of"

// DefaultProducerHeader is the header that names a record's producer, unless a Filter names another one.
const DefaultProducerHeader = "producer"

// errorHeaders start the names of headers that describe a failure.
const errorHeaders = "__streams.errors."

// Letter is a dead letter.
type Letter struct {
	// Where it lies.
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Time      time.Time `json:"time"` // the record's, which is that of the original where the topic keeps producers' times
	// Whence it comes. Source is empty where no header says so; it can't be replayed then.
	Source          string `json:"source"`
	SourcePartition int32  `json:"source_partition"`
	SourceOffset    int64  `json:"source_offset"`
	Producer        string `json:"producer,omitempty"`
	// Why it failed.
	Exception string `json:"exception"` // the error's type
	Message   string `json:"message"`
	// ReplayOf is the letter that it was when it was last replayed; it has failed again since.
	ReplayOf string `json:"replay_of,omitempty"`

	record *kgo.Record
}

// Record is the letter as it lies in its topic. It must not be changed.
func (l *Letter) Record() *kgo.Record { return l.record }

// String names the letter.
func (l *Letter) String() string { return fmt.Sprintf("%s-%d@%d", l.Topic, l.Partition, l.Offset) }

var (
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	digits = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)
)

// Reason is the message without what differs from record to record: quoted texts and numbers.
func (l *Letter) Reason() string {
	s := quoted.ReplaceAllString(l.Message, "…")
	return cmp.Or(digits.ReplaceAllString(s, "#"), l.Exception, "(no reason given)")
}

// Filter chooses letters; what is unset chooses all.
type Filter struct {
	Reason   string    // a part of message or exception, in any case
	Producer string    // exactly
	Source   string    // topic, exactly
	Since    time.Time // inclusive
	Until    time.Time // exclusive
	// ProducerHeader names the header with the producer; DefaultProducerHeader if empty.
	ProducerHeader string
}

// Match reports whether the filter chooses the letter.
func (f *Filter) Match(l *Letter) bool {
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(f.Reason)) }
	return (f.Reason == "" || has(l.Message) || has(l.Exception)) &&
		(f.Producer == "" || f.Producer == l.Producer) &&
		(f.Source == "" || f.Source == l.Source) &&
		(f.Since.IsZero() || !l.Time.Before(f.Since)) &&
		(f.Until.IsZero() || l.Time.Before(f.Until))
}

// parse reads what the headers of a record say. The last header of a name counts, as with replays that failed again.
func parse(r *kgo.Record, producerHeader string) *Letter {
	header := func(key string) string {
		for _, h := range slices.Backward(r.Headers) {
			if h.Key == key {
				return string(h.Value)
			}
		}
		return ""
	}
	l := &Letter{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp.UTC(), Source: header(processors.HeaderErrorTopic),
		Producer: header(producerHeader), Exception: header(processors.HeaderErrorException), Message: header(processors.HeaderErrorMessage),
		ReplayOf: header(HeaderReplay), SourcePartition: -1, SourceOffset: -1, record: r}
	if p, err := strconv.ParseInt(header(processors.HeaderErrorPartition), 10, 32); err == nil {
		l.SourcePartition = int32(p)
	}
	if o, err := strconv.ParseInt(header(processors.HeaderErrorOffset), 10, 64); err == nil {
		l.SourceOffset = o
	}
	return l
}

// Read yields the letters that a topic holds now, each partition in its order.
func Read(ctx context.Context, client []kgo.Opt, topic string, f Filter) iter.Seq2[*Letter, error] {
	return func(yield func(*Letter, error) bool) {
		for r, err := range verify.Committed(ctx, client, topic) {
			if err != nil {
				yield(nil, fmt.Errorf("read dead letters %s: %w", topic, err))
				return
			}
			if l := parse(r, cmp.Or(f.ProducerHeader, DefaultProducerHeader)); f.Match(l) && !yield(l, nil) {
				return
			}
		}
	}
}

// By says what letters are grouped by.
type By string

// What letters can be grouped by.
const (
	ByReason   By = "reason"
	ByProducer By = "producer"
	BySource   By = "topic"
	ByHour     By = "hour"
	ByDay      By = "day"
)

// Groupings are all of them.
var Groupings = []By{ByReason, ByProducer, BySource, ByHour, ByDay}

// of is the letter's value in a grouping.
func (by By) of(l *Letter) string {
	switch by {
	case ByReason:
		return l.Reason()
	case ByProducer:
		return cmp.Or(l.Producer, "(unknown)")
	case BySource:
		return cmp.Or(l.Source, "(unknown)")
	case ByHour:
		return l.Time.Format("2006-01-02T15h")
	}
	return l.Time.Format(time.DateOnly)
}

// Group counts letters that have the same values.
type Group struct {
	Values      []string  `json:"values"` // in the order of the groupings
	Count       int64     `json:"count"`
	First, Last time.Time // of the letters
	Example     *Letter   `json:"example"`
}

// Groups counts letters by one or more groupings, the largest group first.
type Groups struct {
	by  []By
	all map[string]*Group
}

// NewGroups refuses groupings that it doesn't know.
func NewGroups(by ...By) (*Groups, error) {
	for _, b := range by {
		if !slices.Contains(Groupings, b) {
			return nil, fmt.Errorf("letters can't be grouped by %q: choose of %v", b, Groupings)
		}
	}
	return &Groups{by: by, all: map[string]*Group{}}, nil
}

// Add counts a letter.
func (g *Groups) Add(l *Letter) {
	values := make([]string, len(g.by))
	for i, by := range g.by {
		values[i] = by.of(l)
	}
	key := strings.Join(values, "\x00")
	group := g.all[key]
	if group == nil {
		group = &Group{Values: values, First: l.Time, Last: l.Time, Example: l}
		g.all[key] = group
	}
	group.Count++
	if l.Time.Before(group.First) {
		group.First = l.Time
	}
	if l.Time.After(group.Last) {
		group.Last = l.Time
	}
}

// Sorted lists the groups.
func (g *Groups) Sorted() []*Group {
	out := make([]*Group, 0, len(g.all))
	for _, group := range g.all {
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Values, b.Values))
	})
	return out
}
