package state

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
)

// Kind is the kind of a store.
type Kind uint8

// The kinds of stores. The numbers are durable: never change them.
const (
	KeyValue            Kind  = 1 // key -> value
	TimestampedKeyValue Kind  = 2 // key -> value, timestamp
	Window              Kind  = 3 // key, window start -> value
	TimestampedWindow   Kind  = 4 // key, window start -> value, timestamp
	Session             Kind  = 5 // key, session -> value
	Versioned           Kind  = 6 // key -> versions (KIP-889)
	JoinList            Kind  = 7 // the store of unmatched records that an outer stream-stream join shares: key -> list of values
	SuppressBuffer      Kind  = 8 // changes held back by suppress, ordered by time
	JoinBuffer          Kind  = 9 // stream records held back by a stream-table join with grace, ordered by time (KIP-923)
	lastKind                  = JoinBuffer
	defaultMinSegmentMs int64 = 60_000
)

func (k Kind) String() string {
	switch k {
	case KeyValue:
		return "keyValue"
	case TimestampedKeyValue:
		return "timestampedKeyValue"
	case Window:
		return "window"
	case TimestampedWindow:
		return "timestampedWindow"
	case Session:
		return "session"
	case Versioned:
		return "versioned"
	case JoinList:
		return "joinList"
	case SuppressBuffer:
		return "suppressBuffer"
	case JoinBuffer:
		return "joinBuffer"
	}
	return "kind " + strconv.Itoa(int(k))
}

// KindOf is the kind that String calls name; ok is false if there is none.
func KindOf(name string) (k Kind, ok bool) {
	for k := KeyValue; k <= lastKind; k++ {
		if k.String() == name {
			return k, true
		}
	}
	return 0, false
}

// SharesChangelog tells whether a store of one kind can be restored from what one of the other kind has logged.
func (k Kind) SharesChangelog(other Kind) bool { return k.logged() == other.logged() }

// logged is one kind of those whose changelogs look alike.
func (k Kind) logged() Kind {
	switch k {
	case TimestampedKeyValue, Versioned:
		return KeyValue
	case TimestampedWindow:
		return Window
	}
	return k
}

// Spec declares a store. It is plain data: the topology derives changelog topics from it, and a DB opens stores by it.
// Times are in milliseconds.
type Spec struct {
	// Name is the store's name, unique in the topology.
	Name string
	Kind Kind

	// InMemory gives the store the order and expiry of Kafka Streams' in-memory stores, and keeps it off the disk: it is
	// restored from its changelog at each start.
	InMemory bool
	// TimeOrdered gives a persistent window or session store the scan order of an in-memory one, as Kafka Streams does for
	// aggregations that emit on window close.
	TimeOrdered bool
	// MaxEntries above 0 makes an in-memory key-value store an LRU map of that many entries. What falls out of a plain one gets a
	// tombstone in the changelog, what falls out of a timestamped one doesn't, as in Kafka Streams: restoring evicts it again.
	MaxEntries int

	// RetentionMs is how long windows and sessions are kept, in stream time.
	RetentionMs int64
	// WindowSizeMs is the size of the windows, which only their end depends on.
	WindowSizeMs int64
	// SegmentIntervalMs is the span of time that expires at once. 0 is max(RetentionMs/2, 60000) for windows and sessions,
	// and grows in steps with the history for versioned stores.
	SegmentIntervalMs int64
	// RetainDuplicates keeps all values put to the same key and time of a window store.
	RetainDuplicates bool
	// HistoryMs is the history retention of a versioned store.
	HistoryMs int64
	// GraceMs is how long a join buffer holds records back.
	GraceMs int64

	// Logged says that the store has a changelog.
	Logged bool
	// LogHeaders puts the current record's headers on changelog records: Kafka Streams 4.3 does so for the window stores of stream
	// joins and for the subscriptions of joins by foreign key. Restoring ignores them.
	LogHeaders bool
	// Caching says that the user wants updates coalesced until the commit. The changelog then has the last record of each key in a
	// generation whatever the policy, and none of a row that was deleted without having been there at the last commit, unless the store is
	// Unsent. Rows of a window store stay visible beyond RetentionMs until their segment expires, as they do in Kafka Streams' record cache.
	Caching bool
	// Unsent says that no operator sends the store's updates on: it is one that a user's processor writes to.
	Unsent bool
	// WrittenOnce says that rows are never changed, and are looked up to see whether they are there, which they seldom are: ids that were seen.
	// Only as many of them are kept in memory in front of the database as are found there again and again. It changes nothing else.
	WrittenOnce bool
	// SourceTopic is set where the store is restored from the topic that it is filled from, instead of a changelog of its own.
	// Such a store emits no changelog records.
	SourceTopic string
	// TopicConfig overrides entries of the changelog topic's configuration.
	TopicConfig map[string]string
	// ChangelogTopic names the changelog topic in full, where it isn't <application id>-<store>-changelog.
	ChangelogTopic string
}

// windowed tells whether entries carry a window and expire.
func (s *Spec) windowed() bool {
	return s.Kind == Window || s.Kind == TimestampedWindow || s.Kind == Session
}

// timestamped tells whether values carry a timestamp of their own.
func (s *Spec) timestamped() bool {
	return s.Kind == TimestampedKeyValue || s.Kind == TimestampedWindow
}

// findsRows tells whether rows are looked up by their keys; joins and sessions scan for theirs.
func (s *Spec) findsRows() bool { return s.Kind != Session && !s.RetainDuplicates }

// logs tells whether writes give changelog records.
func (s *Spec) logs() bool { return s.Logged && s.SourceTopic == "" }

// SegmentMs is the segment interval in effect.
func (s *Spec) SegmentMs() int64 {
	if s.SegmentIntervalMs > 0 {
		return s.SegmentIntervalMs
	}
	if s.Kind == Versioned {
		return defaultVersionedSegmentMs(s.HistoryMs)
	}
	return max(s.RetentionMs/2, defaultMinSegmentMs)
}

// defaultVersionedSegmentMs follows RocksDbVersionedKeyValueBytesStoreSupplier of Kafka Streams.
func defaultVersionedSegmentMs(history int64) int64 {
	switch {
	case history <= 60_000:
		return max(history/3, 2_000)
	case history <= 300_000:
		return max(history/5, 20_000)
	case history <= 3_600_000:
		return max(history/12, 60_000)
	default:
		return max(history/24, 300_000)
	}
}

// Validate checks that the fields fit together.
func (s *Spec) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Name == "" {
		bad("no name")
	}
	if s.Kind == 0 || s.Kind > lastKind {
		bad("unknown kind %d", s.Kind)
	}
	if s.RetentionMs < 0 || s.WindowSizeMs < 0 || s.SegmentIntervalMs < 0 || s.HistoryMs < 0 || s.GraceMs < 0 || s.MaxEntries < 0 {
		bad("negative retention, window size, segment interval, history, grace or entry limit")
	}
	if s.MaxEntries > 0 && (!s.InMemory || s.Kind != KeyValue && s.Kind != TimestampedKeyValue) {
		bad("an entry limit needs an in-memory key-value store, this is %s", s.Kind)
	}
	if s.RetainDuplicates && s.Kind != Window && s.Kind != TimestampedWindow {
		bad("only window stores can retain duplicates, this is %s", s.Kind)
	}
	if s.TimeOrdered && !s.windowed() {
		bad("only window and session stores can be time-ordered, this is %s", s.Kind)
	}
	if s.InMemory && s.Kind == Versioned {
		bad("versioned stores have no in-memory variant")
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("store %q: %w", s.Name, errors.Join(errs...))
}

const (
	// expiredLogKeptMs is how long the changelog of windows and sessions is kept after they have expired: copies of the store that are behind
	// can catch up from there. Kafka Streams has the same day, for the drift of clocks.
	expiredLogKeptMs int64 = 24 * 60 * 60 * 1000
	// versionedAdditionalLagMs is Kafka Streams' default for clock drift.
	versionedAdditionalLagMs int64 = 24 * 60 * 60 * 1000
)

// ChangelogConfig is the configuration of the store's changelog topic: compacted; for versioned stores, as in Kafka Streams, no earlier than
// a day after their history retention. That of windows and sessions allows records to be deleted, which brokers are not to do by the clock on
// the wall, as with Kafka Streams' settings, but whoever runs the store: see Purged. TopicConfig overrides.
func (s *Spec) ChangelogConfig() map[string]string {
	c := map[string]string{"message.timestamp.type": "CreateTime", "cleanup.policy": "compact"}
	switch {
	case s.windowed():
		c["cleanup.policy"] = "compact,delete"
		c["retention.ms"] = "-1"
	case s.Kind == Versioned:
		c["min.compaction.lag.ms"] = strconv.FormatInt(addSaturating(s.HistoryMs, versionedAdditionalLagMs), 10)
	}
	maps.Copy(c, s.TopicConfig)
	return c
}

// Purged tells whether what has expired by stream time is to be deleted from the store's changelog, before DB.ExpiredBefore: that of windows
// and sessions, unless TopicConfig says how brokers are to delete.
func (s *Spec) Purged() bool {
	_, retention := s.TopicConfig["retention.ms"]
	_, policy := s.TopicConfig["cleanup.policy"]
	return s.windowed() && s.logs() && !retention && !policy
}

func addSaturating(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
