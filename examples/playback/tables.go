package playback

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"reflect"
	"strings"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/iceberg/glue"
	_ "github.com/tributary-io/tributary/lake/iceberg/s3" // tables in buckets
	"github.com/tributary-io/tributary/lake/iceberg/sqlite"
	_ "github.com/tributary-io/tributary/lake/object/s3store" // Delta tables in buckets
	"github.com/tributary-io/tributary/lake/sink"
)

// Table is the landing table's name in the catalog. The append lander's has appendSuffix behind it.
const (
	Table        = "streaming.playback_events"
	appendSuffix = "_appended"
)

// catalog is the Iceberg catalog of the settings.
func (s *Settings) catalog() iceberg.Catalog {
	properties := map[string]string{}
	if s.Region != "" {
		properties["s3.region"] = s.Region
	}
	switch s.Catalog {
	case "rest":
		maps.Copy(properties, map[string]string{"warehouse": s.Warehouse})
		return iceberg.REST(s.CatalogURI, properties)
	case "glue":
		properties["glue.region"] = s.Region
		return glue.Catalog(s.Warehouse, properties)
	}
	file := s.CatalogURI
	if file == "" {
		file = s.Warehouse + "/catalog.db"
	}
	return sqlite.Named("default", file, s.Warehouse, properties)
}

// table makes the sink of a landing table. run names what lands its rows.
func (s *Settings) table(name, run string) sink.Sink {
	const comment = "Playback events as the players sent them."
	if s.Format == "delta" {
		return lake.Delta(s.deltaPlace(name), lake.SourceColumns(), lake.RunColumns(run), lake.Comment(comment), lake.PartitionBy("event_date", "event_hour"))
	}
	return iceberg.Table(name, s.catalog(), iceberg.SourceColumns(), iceberg.RunColumns(run), iceberg.Comment(comment),
		iceberg.PartitionBy(iceberg.Identity("event_date"), iceberg.Identity("event_hour")))
}

// deltaPlace is the folder of a Delta table.
func (s *Settings) deltaPlace(name string) string {
	place := s.Warehouse + "/" + strings.ReplaceAll(name, ".", "/")
	if s.Region != "" && strings.HasPrefix(place, "s3://") {
		place += "?region=" + s.Region
	}
	return place
}

// CreateTable makes the landing table if it isn't there, and publishes its columns and comments.
func CreateTable(ctx context.Context, s Settings, log *slog.Logger) error {
	table := s.table(s.Table, s.run())
	if err := table.Bind(reflect.TypeFor[string](), reflect.TypeFor[Landed]()); err != nil {
		return err
	}
	w, err := table.Open(ctx, sink.Env{ApplicationID: LanderID, Name: LanderSink, Logger: log})
	if err != nil {
		return err
	}
	log.Info("the table is there", "table", table.String())
	return w.Close()
}

// run names what lands rows.
func (s *Settings) run() string { return "playback-lander/" + s.Instance }

// Landing is where a lander has come to in one partition.
type Landing struct {
	Application string
	TopicID     [16]byte // a topic made anew under the same name is another one
	Partition   int32
	Next        int64
}

// Landings reads from a table which application has landed what of a topic.
func Landings(ctx context.Context, s Settings, table string) (out []Landing, err error) {
	add := func(application, topic string, id [16]byte, partition int32, next int64) {
		if topic == s.Topic {
			out = append(out, Landing{application, id, partition, next})
		}
	}
	if s.Format == "delta" {
		info, err := lake.Show(ctx, s.deltaPlace(table), 0)
		if err != nil {
			return nil, err
		}
		for _, p := range info.Progress {
			add(p.Application, p.Topic, p.TopicID, p.Partition, p.Next)
		}
		return out, nil
	}
	info, err := iceberg.Show(ctx, table, s.catalog())
	if err != nil {
		return nil, err
	}
	for _, p := range info.Progress {
		add(p.Application, p.Topic, p.TopicID, p.Partition, p.Next)
	}
	return out, nil
}

// Rows reads a table.
func Rows(ctx context.Context, s Settings, table string) iter.Seq2[lake.Row, error] {
	if s.Format == "delta" {
		return lake.ReadRows(ctx, s.deltaPlace(table))
	}
	return iceberg.ReadRows(ctx, table, s.catalog())
}

// Count says how many rows a table has, and how many different event ids.
func Count(ctx context.Context, s Settings, table string) (rows, events int64, err error) {
	seen := map[string]struct{}{}
	for row, err := range Rows(ctx, s, table) {
		if err != nil {
			return 0, 0, fmt.Errorf("count %s: %w", table, err)
		}
		rows++
		seen[fmt.Sprint(row["event_id"])] = struct{}{}
	}
	return rows, int64(len(seen)), nil
}
