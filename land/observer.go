package land

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// ObserverTable is where the observer writes what it has seen, below the lake: a row for each partition and look.
const ObserverTable = "_ods/observer"

// Observer looks at all streams at a pace, keeps the last picture for Handler, and writes it to ObserverTable. Several instances may
// observe: each writes what it has seen.
type Observer struct {
	looker
	metrics *prometheus.Registry

	mu     sync.Mutex
	last   []StreamStatus
	failed int64 // looks, and writes, that failed

	table   sink.Writer // nil until the first look
	next    int64       // the table's count of looks
	notices *notifier
}

// observation is a row of the observer's table.
type observation struct {
	ObservedAt    time.Time `lake:"observed_at,notnull,comment=when the observer looked"`
	Group         string    `lake:"group,comment=the sink's group"`
	Topic         string    `lake:"topic,notnull"`
	Partition     int32     `lake:"partition,notnull"`
	LogStart      int64     `lake:"log_start,comment=first offset that the topic has"`
	LogEnd        int64     `lake:"log_end,comment=end of what can be read"`
	Landed        int64     `lake:"landed,comment=next offset to land"`
	Lag           int64     `lake:"lag,comment=offsets that wait"`
	Table         string    `lake:"table"`
	TableVersion  int64     `lake:"table_version"`
	Subject       string    `lake:"subject"`
	SchemaVersion int32     `lake:"schema_version,comment=newest in the registry"`
	WaitsFor      *string   `lake:"waits_for,comment=why the stream or a part of it does not go on; null if it does"`
}

func newObserver(cfg *Config, client *kgo.Client, a *admin, holds func() map[string]hold) *Observer {
	o := &Observer{looker: *newLooker(cfg, client, a, holds), metrics: prometheus.NewRegistry(), notices: newNotifier(cfg)}
	o.metrics.MustRegister(&statusCollector{o})
	return o
}

// run looks until ctx ends, at once and then at the pace of the configuration. What fails is logged, and tried again at the next look.
func (o *Observer) run(ctx context.Context) {
	tick := time.NewTicker(o.cfg.Observe)
	defer tick.Stop()
	defer func() {
		if o.table != nil {
			if err := o.table.Close(); err != nil {
				o.cfg.Log.Warn("the observer's table was not closed in order", "error", err)
			}
		}
		if err := o.notices.close(); err != nil {
			o.cfg.Log.Warn("the table of notices was not closed in order", "error", err)
		}
	}()
	for {
		if err := o.once(ctx); err != nil && ctx.Err() == nil {
			o.mu.Lock()
			o.failed++
			o.mu.Unlock()
			o.cfg.Log.Warn("the observer could not see or write everything; it looks again", "error", err, "after", o.cfg.Observe)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (o *Observer) once(ctx context.Context) error {
	all, err := o.look(ctx)
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.last = all
	o.mu.Unlock()
	for i := range all {
		if all[i].Error != "" {
			o.cfg.Log.Warn("a stream could not be seen whole", "topic", all[i].Topic, "error", all[i].Error)
		}
		if all[i].WaitsFor != "" {
			o.cfg.Log.Warn("a stream waits; the others go on", "topic", all[i].Topic, "waits_for", all[i].WaitsFor)
		}
	}
	return errors.Join(o.write(ctx, all), o.notices.tell(ctx, all))
}

// Last is the last picture; empty before the first look has ended.
func (o *Observer) Last() []StreamStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// looks is the table's partition of looks: the observer is its own source, and the table counts what it has written.
var looks = sink.Partition{Topic: "_observer"}

// write adds a picture to the table. Another instance that observes may have written meanwhile; then its count is read and the rows are
// added behind.
func (o *Observer) write(ctx context.Context, all []StreamStatus) error {
	if o.table == nil {
		if err := o.open(ctx); err != nil {
			return fmt.Errorf("observer's table: %w", err)
		}
	}
	for {
		err := o.add(ctx, all)
		if !sink.IsFenced(err) {
			return err
		}
		if err := o.count(ctx); err != nil {
			return err
		}
	}
}

func (o *Observer) open(ctx context.Context) error {
	table := lake.Delta(o.cfg.place(ObserverTable), lake.Comment("how far each partition of each stream has landed, as the observer saw it"), lake.RunColumns(o.cfg.RunID()))
	if err := table.Bind(reflect.TypeFor[[]byte](), reflect.TypeFor[observation]()); err != nil {
		return err
	}
	w, err := table.Open(ctx, sink.Env{ApplicationID: o.cfg.Group, Name: "observer", Logger: o.cfg.Log, Now: o.cfg.now})
	if err != nil {
		return err
	}
	o.table = w
	return o.count(ctx)
}

func (o *Observer) count(ctx context.Context) error {
	progress, err := o.table.Progress(ctx, []sink.Partition{looks})
	if err != nil {
		return fmt.Errorf("observer's table: %w", err)
	}
	o.next = progress[looks]
	return nil
}

func (o *Observer) add(ctx context.Context, all []StreamStatus) error {
	b := o.table.NewBatch()
	defer b.Release()
	to := max(0, o.next) + 1
	for i := range all {
		st := &all[i]
		parts := st.Partitions
		if len(parts) == 0 && st.WaitsFor != "" {
			parts = []PartitionStatus{{Partition: -1}} // a stream without a topic shows, too
		}
		for _, p := range parts {
			row := observation{ObservedAt: st.ObservedAt, Group: o.cfg.Group, Topic: st.Topic, Partition: p.Partition, LogStart: p.LogStart, LogEnd: p.LogEnd,
				Landed: p.Landed, Lag: p.Lag, Table: st.Table, TableVersion: st.TableVersion, Subject: st.Subject, SchemaVersion: int32(st.SchemaVersion)}
			if st.WaitsFor != "" {
				row.WaitsFor = &st.WaitsFor
			}
			meta := sink.Meta{Topic: looks.Topic, Offset: to - 1, Timestamp: st.ObservedAt.UnixMilli(), BrokerTimestamp: st.ObservedAt.UnixMilli()}
			if err := b.Append(nil, &row, &meta); err != nil {
				return fmt.Errorf("observer's table: %w", err)
			}
		}
	}
	if _, err := o.table.Commit(ctx, b, []sink.Move{{Partition: looks, From: o.next, To: to}}); err != nil {
		return fmt.Errorf("observer's table: %w", err)
	}
	o.next = to
	return nil
}

// statusCollector shows the last picture as metrics.
type statusCollector struct{ o *Observer }

var (
	partitionLabels = []string{"topic", "partition"}
	descStart       = prometheus.NewDesc("tributary_stream_log_start_offset", "First offset that the topic has.", partitionLabels, nil)
	descEnd         = prometheus.NewDesc("tributary_stream_log_end_offset", "End of what can be read of the topic.", partitionLabels, nil)
	descLanded      = prometheus.NewDesc("tributary_stream_landed_offset", "Next offset to land, by the table.", partitionLabels, nil)
	descLag         = prometheus.NewDesc("tributary_stream_lag_offsets", "Offsets that wait to land.", partitionLabels, nil)
	descSchema      = prometheus.NewDesc("tributary_stream_schema_version", "Newest version of the stream's schema in the registry.", []string{"topic", "subject"}, nil)
	descSeen        = prometheus.NewDesc("tributary_stream_observed_timestamp_seconds", "When the observer looked, as a Unix time.", []string{"topic"}, nil)
	descFailed      = prometheus.NewDesc("tributary_stream_observer_failures_total", "Looks that failed, or could not be written.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *statusCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descStart, descEnd, descLanded, descLag, descSchema, descSeen, descFailed} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *statusCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, st := range c.o.Last() {
		gauge(descSchema, float64(st.SchemaVersion), st.Topic, st.Subject)
		gauge(descSeen, float64(st.ObservedAt.UnixMilli())/1000, st.Topic)
		for _, p := range st.Partitions {
			partition := strconv.Itoa(int(p.Partition))
			gauge(descStart, float64(p.LogStart), st.Topic, partition)
			gauge(descEnd, float64(p.LogEnd), st.Topic, partition)
			gauge(descLanded, float64(p.Landed), st.Topic, partition)
			gauge(descLag, float64(p.Lag), st.Topic, partition)
		}
	}
	c.o.mu.Lock()
	defer c.o.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(descFailed, prometheus.CounterValue, float64(c.o.failed))
}

// Handler serves what the engine serves (/healthz, /readyz, /metrics), where /readyz also says which streams don't go on, and why. With
// an observer /metrics has its metrics, too, /streams the last picture as JSON, and /catalogue the catalogue's entries.
func (s *Sink) Handler() http.Handler {
	mux := http.NewServeMux()
	inner := s.engine.Handler()
	mux.Handle("/", inner)
	mux.Handle("GET /readyz", s.faults.readiness(inner))
	own := prometheus.NewRegistry()
	own.MustRegister(s.faults)
	gather := prometheus.Gatherers{own}
	if s.observer != nil {
		gather = append(gather, s.observer.metrics)
		mux.HandleFunc("GET /streams", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.observer.Last()) })
		mux.HandleFunc("GET /catalogue", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, s.cfg.Catalogue(s.observer.Last())) })
	}
	observed := promhttp.HandlerFor(gather, promhttp.HandlerOpts{DisableCompression: true})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		// Both answers are written one behind the other, which the plain text format allows.
		r = r.Clone(r.Context())
		r.Header.Set("Accept", "text/plain;version=0.0.4")
		r.Header.Del("Accept-Encoding")
		inner.ServeHTTP(w, r)
		observed.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff") // as the engine's answers have it
		mux.ServeHTTP(w, r)
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(v) // the client has gone
}
