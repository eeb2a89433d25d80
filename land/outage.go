package land

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-io/tributary/lake"
)

// outage knows which streams wait for the schema registry, since when, and why.
type outage struct {
	now     func() time.Time
	streams int // that there are

	mu      sync.Mutex
	waiting map[string]*wait // by topic
	failed  map[lake.SchemaKey]error
}

// wait is a stream that waits.
type wait struct {
	since time.Time
	key   lake.SchemaKey
}

func newOutage(now func() time.Time, streams int) *outage {
	return &outage{now: now, streams: streams, waiting: map[string]*wait{}, failed: map[lake.SchemaKey]error{}}
}

// waits says that a stream waits for a schema. It may be said again and again.
func (o *outage) waits(topic string, key lake.SchemaKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting[topic] == nil {
		o.waiting[topic] = &wait{since: o.now()}
	}
	o.waiting[topic].key = key
}

// ends says that a stream has its answer.
func (o *outage) ends(topic string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.waiting[topic]; w != nil {
		delete(o.failed, w.key)
		delete(o.waiting, topic)
	}
}

// fails notes why a schema can't be had.
func (o *outage) fails(key lake.SchemaKey, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed[key] = err
}

// why says what a stream waits for; "" if it doesn't.
func (o *outage) why(topic string) string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.waiting[topic]
	if w == nil {
		return ""
	}
	text := fmt.Sprintf("records wait for the schema registry since %s: schema %s", w.since.UTC().Format("2006-01-02T15:04:05Z"), w.key)
	if err := o.failed[w.key]; err != nil {
		text += ": " + err.Error()
	}
	return text
}

// topics are those of the streams that wait, sorted.
func (o *outage) topics() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.waiting))
}

// all is for how long no stream has had its answer: 0 while one of them doesn't wait.
func (o *outage) all() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) < o.streams {
		return 0
	}
	var latest time.Time
	for _, w := range o.waiting {
		if w.since.After(latest) {
			latest = w.since
		}
	}
	return o.now().Sub(latest)
}

// readiness answers 503 while all streams wait for the registry, and else what inner says, with a line for each that waits.
func (o *outage) readiness(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var lines strings.Builder
		waiting := o.topics()
		for _, topic := range waiting {
			if why := o.why(topic); why != "" {
				fmt.Fprintf(&lines, "%s: %s\n", topic, why)
			}
		}
		if len(waiting) == 0 {
			inner.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if len(waiting) >= o.streams {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			inner.ServeHTTP(w, r)
		}
		fmt.Fprintf(w, "%d of %d streams wait\n%s", len(waiting), o.streams, lines.String())
	})
}

var (
	descWaiting    = prometheus.NewDesc("tributary_stream_registry_waiting_seconds", "For how long the stream that waits longest has waited for the schema registry; 0 while none does.", nil, nil)
	descWaitingFor = prometheus.NewDesc("tributary_stream_waiting_seconds", "For how long a stream's records have waited for the schema registry; only streams that wait.", []string{"topic"}, nil)
)

// Describe implements prometheus.Collector.
func (o *outage) Describe(ch chan<- *prometheus.Desc) {
	ch <- descWaiting
	ch <- descWaitingFor
}

// Collect implements prometheus.Collector.
func (o *outage) Collect(ch chan<- prometheus.Metric) {
	o.mu.Lock()
	defer o.mu.Unlock()
	longest := 0.0
	for topic, w := range o.waiting {
		waited := o.now().Sub(w.since).Seconds()
		longest = max(longest, waited)
		ch <- prometheus.MustNewConstMetric(descWaitingFor, prometheus.GaugeValue, waited, topic)
	}
	ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, longest)
}
