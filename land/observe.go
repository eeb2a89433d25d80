package land

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/serde"
)

// StreamStatus is how far a stream has come. It counts offsets: in a topic that is compacted, or written in transactions, some of them
// hold no record.
type StreamStatus struct {
	ObservedAt    time.Time         `json:"observed_at"`
	Topic         string            `json:"topic"`
	Table         string            `json:"table"` // place
	TableVersion  int64             `json:"table_version"`
	Subject       string            `json:"subject"`
	SchemaVersion int               `json:"schema_version"` // the newest in the registry
	Events        int64             `json:"events"`         // in the topic now
	Landed        int64             `json:"landed"`
	Lag           int64             `json:"lag"`
	Partitions    []PartitionStatus `json:"partitions"`
	Error         string            `json:"error,omitempty"`     // why the picture is not whole
	WaitsFor      string            `json:"waits_for,omitempty"` // why this instance lands nothing of it for now
}

// PartitionStatus is how far one partition has come.
type PartitionStatus struct {
	Partition int32 `json:"partition"`
	LogStart  int64 `json:"log_start"`
	LogEnd    int64 `json:"log_end"` // the last stable offset: what readers of committed records can read
	Landed    int64 `json:"landed"`  // the next offset to land; log_start where nothing has landed
	Lag       int64 `json:"lag"`
}

// CatalogueEntry is what a catalogue of data wants to know of a stream.
type CatalogueEntry struct {
	Topic       string    `json:"topic"`
	Description string    `json:"description,omitempty"`
	Owner       string    `json:"owner,omitempty"`
	Domain      string    `json:"domain,omitempty"`
	Sensitivity string    `json:"sensitivity,omitempty"`
	Subject     string    `json:"subject"`
	Version     int       `json:"version"` // of the newest schema
	Table       string    `json:"table"`
	Total       int64     `json:"total"` // offsets ever written
	Landed      int64     `json:"landed"`
	Waiting     int64     `json:"waiting"`
	WaitsFor    string    `json:"waits_for,omitempty"` // why it doesn't go on; of an instance only
	ObservedAt  time.Time `json:"observed_at"`
}

// Catalogue makes the entries of the streams that were observed.
func (c *Config) Catalogue(all []StreamStatus) []CatalogueEntry {
	out := []CatalogueEntry{}
	for _, st := range all {
		e := CatalogueEntry{Topic: st.Topic, Subject: st.Subject, Version: st.SchemaVersion, Table: st.Table, Waiting: st.Lag, WaitsFor: st.WaitsFor, ObservedAt: st.ObservedAt}
		if i := slices.IndexFunc(c.Streams, func(s Stream) bool { return s.Topic == st.Topic }); i >= 0 {
			s := &c.Streams[i]
			e.Description, e.Owner, e.Domain, e.Sensitivity = s.Description, s.Owner, s.Domain, string(s.Sensitivity)
		}
		for _, p := range st.Partitions {
			e.Total += p.LogEnd
			e.Landed += p.Landed
		}
		out = append(out, e)
	}
	return out
}

// looker looks at topics, tables and registry.
type looker struct {
	cfg    *Config
	client *kadm.Client
	admin  *admin
	holds  func() map[string]hold // of the instance that looks; nil: none
}

// look makes a picture of all streams. What can't be seen of a stream is said in its Error.
func (l *looker) look(ctx context.Context) ([]StreamStatus, error) {
	names := make([]string, len(l.cfg.Streams))
	for i := range l.cfg.Streams {
		names[i] = l.cfg.Streams[i].Topic
	}
	// In this order a partition is never shown farther than its end, except by what is written meanwhile.
	starts, err := l.client.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	at := make([]int64, 0, len(names))
	progress := make([][]lake.Progress, len(names))
	errs := make([]error, len(names))
	for i := range l.cfg.Streams {
		version, p, err := lake.ReadProgress(ctx, l.cfg.TablePlace(&l.cfg.Streams[i]))
		if errors.Is(err, lake.ErrNoTable) {
			version, err = -1, nil
		}
		at, progress[i], errs[i] = append(at, version), p, err
	}
	ends, err := l.client.ListCommittedOffsets(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	var holds map[string]hold
	if l.holds != nil {
		holds = l.holds()
	}
	now := l.cfg.now().UTC()
	out := make([]StreamStatus, len(names))
	for i, topic := range names {
		st := StreamStatus{ObservedAt: now, Topic: topic, Table: l.cfg.TablePlace(&l.cfg.Streams[i]), TableVersion: at[i], Subject: serde.Subject(topic, false), WaitsFor: holds[topic].why}
		perrs := st.fill(starts[topic], ends[topic], progress[i])
		version, verr := l.admin.version(ctx, st.Subject)
		st.SchemaVersion = version
		if err := errors.Join(errs[i], perrs, verr); err != nil {
			st.Error = err.Error()
		}
		out[i] = st
	}
	return out, ctx.Err()
}

// fill compares offsets with the table's progress.
func (st *StreamStatus) fill(starts, ends map[int32]kadm.ListedOffset, progress []lake.Progress) error {
	var errs []error
	if len(ends) == 0 {
		errs = append(errs, fmt.Errorf("topic %s has no partitions", st.Topic))
	}
	for partition, end := range ends {
		start := starts[partition]
		if err := errors.Join(start.Err, end.Err); err != nil {
			errs = append(errs, fmt.Errorf("partition %d: %w", partition, err))
			continue
		}
		p := PartitionStatus{Partition: partition, LogStart: start.Offset, LogEnd: end.Offset, Landed: start.Offset}
		for _, q := range progress {
			if q.Topic == st.Topic && q.Partition == partition {
				p.Landed = max(p.Landed, q.Next)
			}
		}
		p.Lag = max(0, p.LogEnd-p.Landed)
		st.Partitions = append(st.Partitions, p)
	}
	slices.SortFunc(st.Partitions, func(a, b PartitionStatus) int { return int(a.Partition - b.Partition) })
	for _, p := range st.Partitions {
		st.Events += p.LogEnd - p.LogStart
		st.Landed += p.Landed
		st.Lag += p.Lag
	}
	return errors.Join(errs...)
}

// Status looks once, without landing anything and without making anything.
func Status(ctx context.Context, cfg Config) ([]StreamStatus, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	client, registry, a, err := connect(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer registry.Close()
	return newLooker(&cfg, client, a, nil).look(ctx)
}

func newLooker(cfg *Config, client *kgo.Client, a *admin, holds func() map[string]hold) *looker {
	return &looker{cfg: cfg, client: kadm.NewClient(client), admin: a, holds: holds}
}
