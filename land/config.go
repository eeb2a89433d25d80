package land

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
)

// Config is what the sink must be told.
type Config struct {
	Brokers  []string  // host:port
	Client   []kgo.Opt // further options of all clients: TLS, SASL
	Registry string    // URL of a Confluent-compatible schema registry; may hold user and password
	Lake     string    // where the tables go: a folder or the URL of an object store
	Group    string    // names the application, and its consumer group
	State    string    // folder for the instance's identity; instances on one machine need one each
	Streams  []Stream  // what is landed
	Batch    BatchLimits
	HTTP     string        // address for metrics, health, the observer's answers and what engine.Handle adds, such as console.Serve; empty: none
	Observe  time.Duration // between two looks of the observer; 0: none
	// Notice is the least time between two notices that the observer gives to those who build on the tables; NoticeURL, if it is set, is sent
	// each as JSON.
	Notice    time.Duration
	NoticeURL string
	// Optimize and Vacuum are how often an instance compacts each table, and deletes files that no version of it needs; 0: never. At least a
	// minute; of an application's instances one does it for a table (lake.AutoOptimize, lake.AutoVacuum).
	Optimize, Vacuum time.Duration
	// Patience is for how long no stream at all may go on, for lack of a registry or by faults; then Run ends with an error, with nothing lost.
	Patience time.Duration
	// Memory is what the process may keep in memory, in bytes, as engine.MemoryBudget says; batches and fetched records keep their own limits. 0: nothing is
	// told to the Go runtime; the ready-made program has DefaultMemory.
	Memory int64
	Log    *slog.Logger
	Clock  func() time.Time // nil: time.Now
	Engine []engine.Option  // further options of the engine, such as its session timeout
}

// BatchLimits says when a batch lands: at the first limit that it reaches.
type BatchLimits struct {
	Every time.Duration // since its first row
	Rows  int
	Bytes int64 // of a batch's memory
	// Budget bounds the memory of all open batches of the process; above it the largest lands early.
	Budget int64
}

// Defaults of a Config.
const (
	DefaultGroup  = "ods-sink"
	DefaultEvery  = 30 * time.Second
	DefaultRows   = 50_000
	DefaultBytes  = 32 << 20
	DefaultBudget = 96 << 20

	// DefaultMemory keeps a process that does nothing else below 512 MB, what the program itself takes among them.
	DefaultMemory = 420 << 20

	DefaultNotice   = time.Hour
	DefaultPatience = 10 * time.Minute

	inputBuffer = 32 << 20 // bytes of fetched records that wait
)

// Environment fills what is unset in the configuration from variables, by get (such as os.Getenv):
//
//	ODS_SINK_BROKERS           host:port,host:port
//	ODS_SINK_REGISTRY          URL
//	ODS_SINK_LAKE              folder or URL
//	ODS_SINK_GROUP             name
//	ODS_SINK_STATE             folder
//	ODS_SINK_HTTP              address
//	ODS_SINK_BATCH_SECONDS     default 30
//	ODS_SINK_BATCH_ROWS        default 50000
//	ODS_SINK_BATCH_BYTES       default 33554432
//	ODS_SINK_MEMORY_BYTES      of all open batches, default 100663296
//	ODS_SINK_OBSERVE_SECONDS   default 0: no observer
//	ODS_SINK_NOTICE_SECONDS    default 3600; the observer gives notices
//	ODS_SINK_NOTICE_URL        default none
//	ODS_SINK_OPTIMIZE_SECONDS  default 0: tables are not compacted
//	ODS_SINK_VACUUM_SECONDS    default 0: files that no version needs stay
//	ODS_SINK_REGISTRY_PATIENCE_SECONDS   default 600
//
// and what is unset there, too, from the defaults. The error names all variables that make no sense.
func (c *Config) Environment(get func(string) string) error {
	var errs []error
	number := func(name string, unset bool, fallback float64, set func(float64)) {
		if !unset {
			return
		}
		text := get(name)
		if text == "" {
			set(fallback)
			return
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n < 0 || n > 1e15 || n != n {
			errs = append(errs, fmt.Errorf("%s is %q, not a number", name, text))
			return
		}
		set(n)
	}
	seconds := func(to *time.Duration) func(float64) {
		return func(n float64) { *to = time.Duration(n * float64(time.Second)) }
	}
	if text := get("ODS_SINK_BROKERS"); len(c.Brokers) == 0 && text != "" {
		c.Brokers = strings.Split(text, ",")
	}
	c.Registry = cmp.Or(c.Registry, get("ODS_SINK_REGISTRY"))
	c.Lake = cmp.Or(c.Lake, get("ODS_SINK_LAKE"))
	c.Group = cmp.Or(c.Group, get("ODS_SINK_GROUP"), DefaultGroup)
	c.State = cmp.Or(c.State, get("ODS_SINK_STATE"), "tributary-land-state")
	c.HTTP = cmp.Or(c.HTTP, get("ODS_SINK_HTTP"))
	number("ODS_SINK_BATCH_SECONDS", c.Batch.Every == 0, DefaultEvery.Seconds(), seconds(&c.Batch.Every))
	number("ODS_SINK_BATCH_ROWS", c.Batch.Rows == 0, DefaultRows, func(n float64) { c.Batch.Rows = int(n) })
	number("ODS_SINK_BATCH_BYTES", c.Batch.Bytes == 0, DefaultBytes, func(n float64) { c.Batch.Bytes = int64(n) })
	number("ODS_SINK_MEMORY_BYTES", c.Batch.Budget == 0, DefaultBudget, func(n float64) { c.Batch.Budget = int64(n) })
	c.NoticeURL = cmp.Or(c.NoticeURL, get("ODS_SINK_NOTICE_URL"))
	number("ODS_SINK_NOTICE_SECONDS", c.Notice == 0, DefaultNotice.Seconds(), seconds(&c.Notice))
	number("ODS_SINK_REGISTRY_PATIENCE_SECONDS", c.Patience == 0, DefaultPatience.Seconds(), seconds(&c.Patience))
	number("ODS_SINK_OPTIMIZE_SECONDS", c.Optimize == 0, 0, seconds(&c.Optimize))
	number("ODS_SINK_VACUUM_SECONDS", c.Vacuum == 0, 0, seconds(&c.Vacuum))
	number("ODS_SINK_OBSERVE_SECONDS", c.Observe == 0, 0, seconds(&c.Observe))
	return errors.Join(errs...)
}

// check returns everything that is missing or contradicts itself.
func (c *Config) check() error {
	var errs []error
	missing := func(is bool, what, how string) {
		if is {
			errs = append(errs, fmt.Errorf("%s missing: give %s", what, how))
		}
	}
	missing(len(c.Brokers) == 0, "the brokers are", "--brokers, `brokers` in the configuration, or ODS_SINK_BROKERS")
	missing(c.Registry == "", "the schema registry is", "--registry, `registry` in the configuration, or ODS_SINK_REGISTRY")
	missing(c.Lake == "", "the place of the tables is", "--lake, `lake` in the configuration, or ODS_SINK_LAKE")
	missing(c.Group == "", "the group is", "--group, `group` in the configuration, or ODS_SINK_GROUP")
	missing(len(c.Streams) == 0, "the streams are", "a topic, or a configuration with streams")
	if c.Batch.Every <= 0 || c.Batch.Rows <= 0 || c.Batch.Bytes <= 0 || c.Batch.Budget <= 0 {
		errs = append(errs, fmt.Errorf("the limits of a batch must be above zero: %+v", c.Batch))
	}
	if c.Notice < 0 || c.Patience < 0 {
		errs = append(errs, fmt.Errorf("the pace of notices is %v, the patience with the registry %v: both must be above zero", c.Notice, c.Patience))
	}
	if c.NoticeURL != "" && c.Observe == 0 {
		errs = append(errs, errors.New("notices are given by the observer: give it a pace, too (--observe, observe_seconds, ODS_SINK_OBSERVE_SECONDS)"))
	}
	if c.Observe < 0 {
		errs = append(errs, fmt.Errorf("the observer's pace is %v", c.Observe))
	}
	topics, tables := map[string]bool{}, map[string]string{}
	for i := range c.Streams {
		s := &c.Streams[i]
		if wrong := s.check(); len(wrong) > 0 {
			errs = append(errs, wrong...)
		} else if err := c.bind(s); err != nil {
			errs = append(errs, fmt.Errorf("stream %s: %w", s.Topic, err))
		}
		if topics[s.Topic] {
			errs = append(errs, fmt.Errorf("topic %s is declared twice", s.Topic))
		} else if other, taken := tables[s.Table]; taken {
			errs = append(errs, fmt.Errorf("topics %s and %s would land in the same table %s: give one of them another `table`", other, s.Topic, s.Table))
		}
		topics[s.Topic], tables[s.Table] = true, s.Topic
	}
	return errors.Join(errs...)
}

// bind checks that a table can hold what a stream declares.
func (c *Config) bind(s *Stream) error {
	bytes := reflect.TypeFor[[]byte]()
	return c.table(s, harnessed{}, 0).Bind(bytes, bytes)
}

// place is where a table of the lake is.
func (c *Config) place(table string) string {
	lake, query, has := strings.Cut(c.Lake, "?") // the parameters of an object store
	place := strings.TrimSuffix(lake, "/") + "/" + table
	if has {
		place += "?" + query
	}
	return place
}

// TablePlace is where a stream's table is: a folder, or the URL of an object store.
func (c *Config) TablePlace(s *Stream) string { return c.place(s.Table) }

func (c *Config) now() time.Time {
	if c.Clock != nil {
		return c.Clock()
	}
	return time.Now()
}

func (c *Config) limits() engine.LakeBatches {
	return engine.LakeBatches{Rows: c.Batch.Rows, Bytes: c.Batch.Bytes, Every: c.Batch.Every, Budget: c.Batch.Budget}
}

// RunID is what rows say of what has landed them.
func (c *Config) RunID() string { return "stream:" + c.Group }
