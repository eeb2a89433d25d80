package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/tributary-io/tributary/examples/flights"
	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/processors"
)

// Flights runs the application of examples/flights on its month of records, until all has landed. Config.Spec is not used.
func Flights(ctx context.Context, cfg Config) (tables []TableSummary, err error) {
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, err
	}
	c, err := Connect(ctx, cfg.Dir, cfg.Brokers, cfg.Registry, cfg.Log, cfg.Client...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := prepareFlights(ctx, c); err != nil {
		return nil, err
	}
	plan, err := flights.Topology(cfg.lake())
	if err != nil {
		return nil, err
	}
	e, err := cfg.Engine(c, plan)
	if err != nil {
		return nil, err
	}
	emission := &Emission{}
	show := newProgress(cfg.Out, cfg.Terminal, flightRecords, emission, e)
	err = land(ctx, c, plan, e, show, func(ctx context.Context) error { return emitFlights(ctx, c, emission) })
	if err != nil {
		return nil, err
	}
	for _, name := range []string{flights.DepartureTable, flights.HourlyTable} {
		t, err := summarizeTable(ctx, cfg.lake()+"/"+name)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// flightRecords is about how many records the three topics get.
const flightRecords = 31_000

func prepareFlights(ctx context.Context, c *Cluster) error {
	admin := kadm.NewClient(c.client)
	compacted := map[string]string{"cleanup.policy": "compact"}
	return errors.Join(
		createTopic(ctx, admin, flights.DepartureTopic, shop.Partitions, map[string]string{"retention.ms": "-1"}),
		createTopic(ctx, admin, flights.PlaneTopic, shop.Partitions, compacted),
		createTopic(ctx, admin, flights.AirportTopic, shop.Partitions, compacted))
}

// emitFlights produces the tables, then the departures; what an earlier run has produced is left out.
func emitFlights(ctx context.Context, c *Cluster, e *Emission) error {
	planes, err1 := flights.Planes()
	airports, err2 := flights.Airports()
	departures, err3 := flights.Departures()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	// Tables are older than all departures, so that they are read first.
	newYear := time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, t := range []struct {
		topic   string
		records iter.Seq[shop.Record]
	}{
		{flights.PlaneTopic, jsonRecords(flights.PlaneTopic, planes, func(p flights.Plane) (string, time.Time) { return p.TailNum, newYear })},
		{flights.AirportTopic, jsonRecords(flights.AirportTopic, airports, func(a flights.Airport) (string, time.Time) { return a.FAA, newYear })},
		{flights.DepartureTopic, jsonRecords(flights.DepartureTopic, departures, func(d flights.Departure) (string, time.Time) { return d.TailNum, d.Scheduled })},
	} {
		const mark = "2013-01"
		done, err := emitted(ctx, c.client, t.topic, func(_ int32, _ string, count int64) (int64, error) { return count, nil })
		if err == nil {
			err = emit(ctx, c.client, mark, t.records, done, e)
		}
		if err != nil {
			return fmt.Errorf("emit to %s: %w", t.topic, err)
		}
	}
	return nil
}

// jsonRecords makes a record of each row.
func jsonRecords[T any](topic string, rows []T, of func(T) (key string, at time.Time)) iter.Seq[shop.Record] {
	return func(yield func(shop.Record) bool) {
		for _, row := range rows {
			key, at := of(row)
			value, err := json.Marshal(row)
			if err != nil {
				panic(err) // rows hold nothing that JSON can't
			}
			r := shop.Record{Topic: topic, Key: []byte(key), Value: value, Timestamp: at.UnixMilli()}
			r.Partition = processors.PartitionOf(r.Key, shop.Partitions)
			if !yield(r) {
				return
			}
		}
	}
}

// PrintTables writes what landed for people.
func PrintTables(out io.Writer, tables []TableSummary) {
	for _, t := range tables {
		fmt.Fprintf(out, "  %-50s %8d rows, version %d, %d files\n", t.Place, t.Rows, t.Version, t.Files)
	}
}
