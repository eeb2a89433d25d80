package playback

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Settings are what a process is told by its environment.
type Settings struct {
	Brokers     []string      // KAFKA_BOOTSTRAP, host:port,host:port
	Topic       string        // STREAMING_TOPIC
	Replication int           // STREAMING_REPLICATION of the topic; 1
	Format      string        // STREAMING_TABLE_FORMAT: iceberg, or delta
	Table       string        // STREAMING_TABLE: name of the Iceberg table with its namespace
	Catalog     string        // STREAMING_CATALOG: sqlite, rest, or glue
	CatalogURI  string        // STREAMING_CATALOG_URI: of the REST catalog, or path of the SQLite file
	Warehouse   string        // STREAMING_WAREHOUSE: folder or URL; s3://$STREAMING_S3_BUCKET/warehouse where that is set
	Bucket      string        // STREAMING_S3_BUCKET
	Region      string        // AWS_REGION
	StateDir    string        // STREAMING_STATE_DIR
	Instance    string        // STREAMING_INSTANCE: names what landed a row; the host's name
	MaxRows     int           // STREAMING_MAX_ROWS of a batch; 50,000
	MaxAge      time.Duration // STREAMING_MAX_SECONDS of a batch; 60
	HTTP        string        // STREAMING_HTTP: address for metrics and health; none
	Sharded     bool          // STREAMING_SHARDED: other landers share the partitions
}

// FromEnvironment reads the settings by a function such as os.LookupEnv. All mistakes are in one error.
func FromEnvironment(lookup func(string) (string, bool)) (Settings, error) {
	var errs []error
	text := func(name, otherwise string) string {
		if v, ok := lookup(name); ok && v != "" {
			return v
		}
		return otherwise
	}
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(text(name, strconv.Itoa(otherwise)))
		if err != nil || n < 1 {
			errs = append(errs, fmt.Errorf("%s must be a number above zero", name))
		}
		return n
	}
	host, _ := os.Hostname()
	s := Settings{
		Topic: text("STREAMING_TOPIC", Topic), Replication: number("STREAMING_REPLICATION", 1),
		Format: text("STREAMING_TABLE_FORMAT", "iceberg"), Table: text("STREAMING_TABLE", Table),
		Catalog: text("STREAMING_CATALOG", "sqlite"), CatalogURI: text("STREAMING_CATALOG_URI", ""),
		Bucket: text("STREAMING_S3_BUCKET", ""), Region: text("AWS_REGION", ""),
		StateDir: text("STREAMING_STATE_DIR", "playback-state"), Instance: text("STREAMING_INSTANCE", host), HTTP: text("STREAMING_HTTP", ""),
		MaxRows: number("STREAMING_MAX_ROWS", 50_000), MaxAge: time.Duration(number("STREAMING_MAX_SECONDS", 60)) * time.Second,
		Sharded: text("STREAMING_SHARDED", "") == "true",
	}
	if b := text("KAFKA_BOOTSTRAP", ""); b != "" {
		s.Brokers = strings.Split(b, ",")
	}
	s.Warehouse = "playback-warehouse"
	if s.Bucket != "" {
		s.Warehouse = "s3://" + s.Bucket + "/warehouse"
	}
	s.Warehouse = text("STREAMING_WAREHOUSE", s.Warehouse)
	errs = append(errs, s.check()...)
	return s, errors.Join(errs...)
}

func (s *Settings) check() (errs []error) {
	if len(s.Brokers) == 0 {
		errs = append(errs, errors.New("KAFKA_BOOTSTRAP names no brokers"))
	}
	if s.Format != "iceberg" && s.Format != "delta" {
		errs = append(errs, fmt.Errorf("STREAMING_TABLE_FORMAT is %q: iceberg and delta are known", s.Format))
	}
	switch s.Catalog {
	case "sqlite":
		if strings.Contains(s.Warehouse, "://") && s.CatalogURI == "" {
			errs = append(errs, errors.New("STREAMING_CATALOG_URI must name the SQLite file where the warehouse is not a folder"))
		}
	case "rest":
		if s.CatalogURI == "" {
			errs = append(errs, errors.New("STREAMING_CATALOG_URI must name the REST catalog"))
		}
	case "glue":
		if s.Region == "" {
			errs = append(errs, errors.New("AWS_REGION must name the region of the Glue catalog"))
		}
		if !strings.HasPrefix(s.Warehouse, "s3://") {
			errs = append(errs, errors.New("STREAMING_S3_BUCKET must name the bucket for tables in the Glue catalog"))
		}
	default:
		errs = append(errs, fmt.Errorf("STREAMING_CATALOG is %q: sqlite, rest and glue are known", s.Catalog))
	}
	return errs
}
