package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/assign"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/state"
)

// Guarantee is what holds for results when an instance or a broker fails.
type Guarantee int

// The guarantees.
const (
	// ExactlyOnce: each input record counts once, in outputs (read_committed), in state and in the lake. The default.
	ExactlyOnce Guarantee = iota
	// AtLeastOnce: after a failure records may count again. Nothing is written in transactions.
	AtLeastOnce
)

// Reset says where to start reading a partition for which there is no usable offset: one of the constants, or ByDuration.
type Reset int64

// The ways to start.
const (
	Earliest Reset = iota // at the log's beginning
	Latest                // at its end
	Fail                  // not at all: Run returns an error
)

// ByDuration starts at the first record that is no older than d by its timestamp and the engine's clock, at the end if there is none
// (KIP-1106). It counts in whole milliseconds; a negative d counts as 0.
func ByDuration(d time.Duration) Reset { return Reset(plan.ResetByDuration(d)) }

// Option sets something of an Engine. Options that are given later win.
type Option func(*config)

type config struct {
	brokers []string
	client  []kgo.Opt
	// In front of the names of clients and of transactional ids.
	clientPrefix, txnPrefix string

	stateDir  string
	log       *slog.Logger
	clock     func() time.Time
	handlers  processors.Handlers
	onState   func(State)
	onRestore func(RestoreEvent)

	guarantee      Guarantee
	commitInterval time.Duration
	workers        int
	maxTaskIdle    time.Duration
	maxSkew        time.Duration
	reset          Reset // without a committed offset
	outOfRange     Reset // with one that the log no longer has
	replication    int16

	session     time.Duration
	heartbeat   time.Duration
	rebalance   time.Duration
	transaction time.Duration
	closing     time.Duration
	stay        bool
	protocol    Protocol

	httpAddr     string
	added        map[string]func(*Engine) http.Handler // by pattern; see Handle
	advertise    string
	viewDir      string
	serveQueries bool
	partitioners map[string]func(key []byte, partitions int32) int32

	spread  assign.Options
	probing time.Duration
	tags    map[string]string
	ship    bool // checkpoints
	vault   CheckpointStore
	keep    time.Duration // between checkpoints for the vault

	memory      int64 // the budget; 0: none
	writeBuffer int64 // bytes over all tasks
	inputBuffer int64 // bytes over all input partitions
	state       state.ResourceOptions
	lake        LakeBatches
	parks       bool // faults of lake tasks, and of their tables
	purgeEvery  time.Duration
	lookEvery   time.Duration // for topics of patterns
	reportEvery time.Duration // how far a restore is
	vanish      time.Duration // for how long brokers may not know a topic: they may just be coming up
	inputsEvery time.Duration // for inputs that were deleted
	cleanAfter  time.Duration
	openAtOnce  int

	stepped func(step) // for simulations; nil outside of them
}

// LakeBatches says when a batch of rows for a table is closed and committed: at the first limit that it reaches.
type LakeBatches struct {
	Rows  int           // default 500,000
	Bytes int64         // of a batch's memory; default 64 MB
	Every time.Duration // since its first row, by the wall clock; default 10 s
	// Budget bounds the memory of all open batches of the process: above it the largest is closed early. Default 256 MB.
	Budget int64
}

func defaults() config {
	return config{
		stateDir: filepath.Join(".", "tributary-state"), log: slog.Default(), clock: time.Now,
		commitInterval: 100 * time.Millisecond, workers: runtime.GOMAXPROCS(0), reset: Earliest, outOfRange: Fail, maxSkew: 10 * time.Second,
		session: 10 * time.Second, heartbeat: 500 * time.Millisecond, rebalance: 15 * time.Second,
		transaction: 10 * time.Second, closing: 30 * time.Second,
		spread: assign.Options{Warmups: 2, AcceptableLag: 10_000}, probing: 10 * time.Minute,
		writeBuffer: 128 << 20, inputBuffer: 12 << 20,
		lake:       LakeBatches{Rows: 500_000, Bytes: 64 << 20, Every: 10 * time.Second, Budget: 256 << 20},
		purgeEvery: 30 * time.Second, lookEvery: 30 * time.Second, reportEvery: 5 * time.Second, vanish: 10 * time.Second, inputsEvery: 30 * time.Second,
		cleanAfter: 10 * time.Minute, openAtOnce: 8,
	}
}

func (c *config) check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(c.brokers) == 0 && len(c.client) == 0 {
		bad("no brokers: give Brokers, or Client with seed brokers")
	}
	for _, addr := range c.brokers {
		if strings.Contains(addr, "://") {
			bad("broker %q is a URL: a broker is host:port, such as localhost:9092", addr)
		}
	}
	if c.stateDir == "" {
		bad("the state directory is empty")
	}
	if c.workers < 1 {
		bad("%d workers, at least one is needed", c.workers)
	}
	for name, d := range map[string]time.Duration{"commit interval": c.commitInterval, "session timeout": c.session,
		"transaction timeout": c.transaction, "rebalance timeout": c.rebalance, "heartbeat interval": c.heartbeat} {
		if d <= 0 {
			bad("the %s is %v, it must be above zero", name, d)
		}
	}
	c.checkSpread(bad)
	c.checkMemory(bad)
	if c.heartbeat*2 > c.session {
		bad("the heartbeat interval %v is more than half of the session timeout %v", c.heartbeat, c.session)
	}
	if c.commitInterval > c.transaction/2 {
		bad("the commit interval %v is more than half of the transaction timeout %v", c.commitInterval, c.transaction)
	}
	return errors.Join(errs...)
}

// Brokers names some brokers of the cluster, host:port.
func Brokers(addrs ...string) Option { return func(c *config) { c.brokers = addrs } }

// Client adds options to all of the engine's clients: TLS, SASL, a dialer, a rack. Options for groups, transactions and consuming are
// the engine's own. kgo.MaxBufferedRecords is how many records may be on their way to the brokers, 20,000 if it isn't given: raise it for small records
// and brokers that are far away.
func Client(opts ...kgo.Opt) Option { return func(c *config) { c.client = append(c.client, opts...) } }

// ClientIDPrefix is put in front of the names by which the instance's clients introduce themselves to brokers, "<application id>-<role>": for
// quotas and logs.
func ClientIDPrefix(prefix string) Option { return func(c *config) { c.clientPrefix = prefix } }

// TransactionalIDPrefix is put in front of the instance's transactional ids, "<application id>-…", where a cluster grants rights on those by
// another scheme than on groups and topics (see ACLOptions.TransactionalIDPrefix). With another prefix a start doesn't end what the instance
// left open under the former one: brokers do, after TransactionTimeout.
func TransactionalIDPrefix(prefix string) Option { return func(c *config) { c.txnPrefix = prefix } }

// StateDir is the directory for local state and the instance's identity. Instances on one machine need one each. Default:
// ./tributary-state.
func StateDir(dir string) Option { return func(c *config) { c.stateDir = dir } }

// Processing sets the guarantee. Default: ExactlyOnce.
func Processing(g Guarantee) Option { return func(c *config) { c.guarantee = g } }

// CommitInterval is the time between commits, and so about the time after which results are seen. Default: 100 ms.
func CommitInterval(d time.Duration) Option { return func(c *config) { c.commitInterval = d } }

// Workers is the number of tasks that run at the same time. Default: GOMAXPROCS.
func Workers(n int) Option { return func(c *config) { c.workers = n } }

// ErrorHandlers decide what happens to records that can't be read, processed or written. Default: the instance stops with the error.
func ErrorHandlers(h processors.Handlers) Option { return func(c *config) { c.handlers = h } }

// MaxTaskIdle is how long a task with records on some of its inputs waits for records on the others, once these are read to the end.
// Waiting gives better order between inputs at the price of latency (KIP-695). Default: 0, it waits only for what is known to be there.
// topology.WaitFor sets it for one source.
func MaxTaskIdle(d time.Duration) Option { return func(c *config) { c.maxTaskIdle = d } }

// MaxSkew is how far, in event time, the tasks of a sub-topology may be apart while they read a backlog, in an application with windows:
// the ones ahead wait for the others, so that behind a repartition topic records don't come late only because another partition was read
// faster. It holds within an instance. 0 turns it off, as in Kafka Streams. Default: 10 s.
func MaxSkew(d time.Duration) Option { return func(c *config) { c.maxSkew = d } }

// StartFrom says where to start reading a topic that the application has never read, unless the source says so itself. Default: Earliest.
func StartFrom(r Reset) Option { return func(c *config) { c.reset = r } }

// OutOfRange says what to do when retention has taken records before they were read. Default: Fail, with an error that names the
// partition and the offsets.
func OutOfRange(r Reset) Option { return func(c *config) { c.outOfRange = r } }

// ReplicationFactor is for internal topics that the engine creates. Default: the broker's default.
func ReplicationFactor(n int16) Option { return func(c *config) { c.replication = n } }

// SessionTimeout is how long the instance may be silent before its tasks go to others. Default: 10 s. Brokers have limits for it
// (group.min.session.timeout.ms).
func SessionTimeout(d time.Duration) Option {
	return func(c *config) { c.session, c.heartbeat = d, min(c.heartbeat, d/4) }
}

// RebalanceTimeout is how long the group waits for an instance to join a new generation before it goes on without it. Default: 15 s.
func RebalanceTimeout(d time.Duration) Option { return func(c *config) { c.rebalance = d } }

// TransactionTimeout bounds how long a dead instance's open transaction holds up readers and the instance that takes over. Default: 10 s.
func TransactionTimeout(d time.Duration) Option { return func(c *config) { c.transaction = d } }

// CloseTimeout bounds draining and committing after Run's context has ended. Default: 30 s. It is waited for slow brokers and tables; where brokers take
// no records, a task that waits for room for its output gives up after a second, since the commit would wait for it in vain.
func CloseTimeout(d time.Duration) Option { return func(c *config) { c.closing = d } }

// StayInGroup keeps the instance's place in the group when it closes, for a quick restart: nobody takes its tasks over before the session
// timeout.
func StayInGroup() Option { return func(c *config) { c.stay = true } }

// Logger takes the engine's log. Default: slog.Default.
func Logger(l *slog.Logger) Option { return func(c *config) { c.log = l } }

// Clock is the wall clock, for tests. Default: time.Now.
func Clock(now func() time.Time) Option { return func(c *config) { c.clock = now } }

// OnState is called at each change of the instance's state, one call at a time. It must not block.
func OnState(f func(State)) Option { return func(c *config) { c.onState = f } }

// HTTP serves /metrics, /healthz and /readyz on addr while the engine runs. See Engine.Handler to serve them elsewhere.
func HTTP(addr string) Option { return func(c *config) { c.httpAddr = addr } }

// WriteBuffer bounds the memory of uncommitted state over all tasks, in bytes: a full buffer commits early. Default: 128 MB.
func WriteBuffer(bytes int64) Option { return func(c *config) { c.writeBuffer = bytes } }

// InputBuffer bounds the memory of fetched records that wait to be processed, over all partitions, in bytes. Default: 12 MB.
func InputBuffer(bytes int64) Option { return func(c *config) { c.inputBuffer = bytes } }

// StateMemory sets the caches of the stores.
func StateMemory(o state.ResourceOptions) Option { return func(c *config) { c.state = o } }

// Lake sets the limits of lake batches; fields that are zero keep their defaults.
func Lake(b LakeBatches) Option {
	return func(c *config) {
		if b.Rows > 0 {
			c.lake.Rows = b.Rows
		}
		if b.Bytes > 0 {
			c.lake.Bytes = b.Bytes
		}
		if b.Every > 0 {
			c.lake.Every = b.Every
		}
		if b.Budget > 0 {
			c.lake.Budget = b.Budget
		}
	}
}

// LookForTopics is how often a running instance looks for topics that begin, or cease, to match the pattern of a source. Topics that are found
// so are read like those at the start: from where StartFrom or the source says. 0: only at the start. Default: 30 s.
func LookForTopics(every time.Duration) Option { return func(c *config) { c.lookEvery = every } }

// PurgeInterval is the time between purges of what has been read from repartition topics, and of what has expired from the changelogs of
// windows. Default: 30 s.
func PurgeInterval(d time.Duration) Option { return func(c *config) { c.purgeEvery = d } }

// CleanStateAfter is how long the directory of a task that runs elsewhere is kept. Default: 10 minutes.
func CleanStateAfter(d time.Duration) Option { return func(c *config) { c.cleanAfter = d } }
