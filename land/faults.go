package land

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/lake/sink"
)

// hold is why a stream, or a part of it, doesn't go on for now, and since when.
type hold struct {
	since time.Time
	why   string // with the time
	fault error  // nil while it waits for the registry
}

// faults knows which streams of an instance don't go on: those whose records wait for the registry (outage), and those that the engine has
// parked (engine.ParkLake).
type faults struct {
	now     func() time.Time
	streams []Stream
	outage  *outage
	stats   func() engine.Stats
}

// holds are the streams that don't go on, by topic.
func (f *faults) holds() map[string]hold {
	all := f.outage.holds()
	park := func(topic string, err error, since time.Time) {
		if h, ok := all[topic]; ok && h.fault != nil { // of several faults the first is told
			return
		}
		all[topic] = hold{since: since, fault: err, why: fmt.Sprintf("parked since %s: %v", stamp(since), err)}
	}
	s := f.stats()
	for _, l := range s.Lake {
		if l.Parked != nil {
			park(strings.TrimPrefix(l.Sink, sinkPrefix), l.Parked, l.ParkedSince)
		}
	}
	for _, t := range s.Tasks {
		if t.Parked == nil || errors.As(t.Parked, new(*sink.NotYetError)) { // of those the outage knows
			continue
		}
		for _, in := range t.Inputs {
			park(in.Topic, t.Parked, t.ParkedSince)
		}
	}
	return all
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// all is for how long no stream has gone on, with the reasons: 0 while one of them does.
func (f *faults) all() (waited time.Duration, why error) {
	holds := f.holds()
	var latest time.Time
	var errs []error
	for i := range f.streams {
		topic := f.streams[i].Topic
		h, held := holds[topic]
		if !held {
			return 0, nil
		}
		if h.since.After(latest) {
			latest = h.since
		}
		errs = append(errs, fmt.Errorf("%s: %s", topic, h.why))
	}
	return f.now().Sub(latest), errors.Join(errs...)
}

// readiness answers 503 while no stream goes on, and else what inner says, with a line for each that doesn't.
func (f *faults) readiness(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		holds := f.holds()
		if len(holds) == 0 {
			inner.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if len(holds) >= len(f.streams) {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			inner.ServeHTTP(w, r)
		}
		fmt.Fprintf(w, "%d of %d streams wait\n", len(holds), len(f.streams))
		for _, topic := range slices.Sorted(maps.Keys(holds)) {
			fmt.Fprintf(w, "%s: %s\n", topic, holds[topic].why)
		}
	})
}

var (
	descRegistry = prometheus.NewDesc("tributary_stream_registry_waiting_seconds", "For how long the stream that waits longest has waited for the schema registry; 0 while none does.", nil, nil)
	descWaiting  = prometheus.NewDesc("tributary_stream_waiting_seconds", "For how long a stream, or a part of it, has waited for the schema registry or been parked; only streams that don't go on.", []string{"topic"}, nil)
)

// Describe implements prometheus.Collector.
func (f *faults) Describe(ch chan<- *prometheus.Desc) {
	ch <- descRegistry
	ch <- descWaiting
}

// Collect implements prometheus.Collector.
func (f *faults) Collect(ch chan<- prometheus.Metric) {
	longest := 0.0
	for topic, h := range f.holds() {
		waited := max(0, f.now().Sub(h.since).Seconds())
		if h.fault == nil {
			longest = max(longest, waited)
		}
		ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, waited, topic)
	}
	ch <- prometheus.MustNewConstMetric(descRegistry, prometheus.GaugeValue, longest)
}
