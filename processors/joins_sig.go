package processors

import "github.com/tributary-io/tributary/serde"

// Joiner makes the result of a join. A side that is missing is nil; what the pointers point to is valid until the call returns.
type Joiner[K, L, R, O any] func(key K, left *L, right *R) (O, error)

// StreamTableJoin joins each record of a stream with a table's row of the same key. It is a Supplier.
type StreamTableJoin[K, L, R, O any] struct {
	Table ViewSupplier[K, R]
	Join  Joiner[K, L, R, O]
	Left  bool // left join: a record without a row is joined with nil
	// GraceMs above 0 holds records back that long, in stream time, so that the row as of the record's time can be known; it needs a
	// versioned table and Buffer, the name of a store of kind JoinBuffer, with the serdes of the stream.
	GraceMs int64
	Buffer  Store[K, L]
}

// New implements Supplier.
func (j StreamTableJoin[K, L, R, O]) New(rt Runtime, children []Child) (Instance, error) {
	return Instance{}, errUnbuilt
}

// GlobalTableJoin joins each record of a stream with the row of a global table that Select names. It is a Supplier.
type GlobalTableJoin[K, L, GK, R, O any] struct {
	Table  ViewSupplier[GK, R]
	Select func(K, L) (GK, error)
	Join   Joiner[K, L, R, O]
	Left   bool
}

// New implements Supplier.
func (j GlobalTableJoin[K, L, GK, R, O]) New(rt Runtime, children []Child) (Instance, error) {
	return Instance{}, errUnbuilt
}

// JoinKind says which side of a join may be missing.
type JoinKind int

// The kinds of joins.
const (
	InnerJoin JoinKind = iota
	LeftJoin
	OuterJoin
)

// TableJoin is a join of two tables: three nodes. This takes the updates of the left table, Other those of the right one, and both
// send to Merge, which is the result.
type TableJoin[K, L, R, O any] struct {
	This, Other TableJoinSide
	Merge       Table[K, O]
}

// TableJoinSide is one side of a TableJoin. Stores are those that have to be connected to it.
type TableJoinSide interface {
	Supplier
	VersionedSemantics
	Stores() []string
}

// NewTableJoin makes a table-table join. store is nil where the result has no store of its own. It enables old values in both tables
// as Kafka Streams does.
func NewTableJoin[K, L, R, O any](kind JoinKind, left Table[K, L], right Table[K, R], join Joiner[K, L, R, O], store *Store[K, O]) *TableJoin[K, L, R, O] {
	return nil
}

// StreamJoin is a windowed join of two streams: a record on the right joins one on the left if its time is within
// left - BeforeMs .. left + AfterMs. Five nodes: each side first puts its records into its own window store (ThisWindow,
// OtherWindow), then looks into the other's (This, Other); both send to a PassThrough.
type StreamJoin[K, L, R, O any] struct {
	Kind                       JoinKind
	BeforeMs, AfterMs, GraceMs int64
	Join                       Joiner[K, L, R, O]
	ThisStore                  Store[K, L] // of kind Window, retaining duplicates
	OtherStore                 Store[K, R]
	// Outer is the store of kind JoinList that both sides share for records that have no match yet; for left and outer joins.
	Outer string
	// EmitIntervalMs throttles how often, in wall-clock time, unmatched records are looked for; 0 looks at each record. Kafka
	// Streams' default is 1000.
	EmitIntervalMs int64
}

// ThisWindow is the node that stores the left side's records: K, L to K, L.
func (j *StreamJoin[K, L, R, O]) ThisWindow() Supplier { return unbuilt() }

// OtherWindow is the node that stores the right side's records: K, R to K, R.
func (j *StreamJoin[K, L, R, O]) OtherWindow() Supplier { return unbuilt() }

// This is the node that joins the left side's records: K, L to K, O.
func (j *StreamJoin[K, L, R, O]) This() Supplier { return unbuilt() }

// Other is the node that joins the right side's records: K, R to K, O.
func (j *StreamJoin[K, L, R, O]) Other() Supplier { return unbuilt() }

// StreamSelfJoin joins a stream with itself over one store (topology optimization single.store.self.join). It follows a node that
// puts its records into ThisStore. It is a Supplier.
type StreamSelfJoin[K, V, O any] struct {
	BeforeMs, AfterMs, GraceMs int64
	Join                       Joiner[K, V, V, O]
	Store                      Store[K, V]
}

// New implements Supplier.
func (j StreamSelfJoin[K, V, O]) New(rt Runtime, children []Child) (Instance, error) {
	return Instance{}, errUnbuilt
}

// ForeignKeyJoin is a join of a left table with the row of a right table that a foreign key names (KIP-213). In order of the flow:
//
//	left  -> Send -> topic Subscription -> Receive -> SubscriptionJoin -\
//	right -> ForeignJoin ------------------------------------------------> topic Response -> Resolve -> Result
//
// Keys in the subscription topic are KR, its values Subscription; keys in the response topic are K, its values Response.
type ForeignKeyJoin[K, L, KR, R, O any] struct {
	Left       bool // left join
	LeftTable  Table[K, L]
	RightTable Table[KR, R]
	// ForeignKey gives the key of the right row; nil of a nullable KR is none.
	ForeignKey func(K, L) (KR, error)
	Join       Joiner[K, L, R, O]

	LeftKey    serde.Serde[K]
	LeftValue  serde.Serde[L]
	RightKey   serde.Serde[KR]
	RightValue serde.Serde[R]

	SubscriptionTopic, ResponseTopic string // full names
	// SubscriptionStore is of kind TimestampedKeyValue (raw bytes).
	SubscriptionStore string
	// Store is the result's own, of kind TimestampedKeyValue; nil for none.
	Store *Store[K, O]
}

// Subscription is a value of the subscription topic: a left row registers with its foreign key.
type Subscription[K any] struct {
	Instruction byte
	Hash        [16]byte
	HashNull    bool
	Key         K
	Version     byte
	Partition   int32
}

// Response is a value of the response topic: the right row for a left row.
type Response[R any] struct {
	Hash      [16]byte
	HashNull  bool
	Value     R
	Null      bool
	Version   byte
	Partition int32
}

// SubscriptionSerde is the wire format of the subscription topic's values.
func SubscriptionSerde[K any](key serde.Serde[K]) serde.Serde[Subscription[K]] { return nil }

// ResponseSerde is the wire format of the response topic's values.
func ResponseSerde[R any](value serde.Serde[R]) serde.Serde[Response[R]] { return nil }

// Send: K, Change[L] to KR, Subscription[K]; the subscription topic's sink follows.
func (j *ForeignKeyJoin[K, L, KR, R, O]) Send() Supplier { return unbuilt() }

// Receive: KR, Subscription[K] to an internal type that SubscriptionJoin takes. It keeps SubscriptionStore.
func (j *ForeignKeyJoin[K, L, KR, R, O]) Receive() Supplier { return unbuilt() }

// SubscriptionJoin answers subscriptions: to K, Response[R]; the response topic's sink follows. Connect the right view's stores.
func (j *ForeignKeyJoin[K, L, KR, R, O]) SubscriptionJoin() Supplier { return unbuilt() }

// ForeignJoin answers for updates of right rows: KR, Change[R] to K, Response[R]. Connect SubscriptionStore.
func (j *ForeignKeyJoin[K, L, KR, R, O]) ForeignJoin() Supplier { return unbuilt() }

// Resolve joins responses with the left rows: K, Response[R] to K, O. Connect the left view's stores.
func (j *ForeignKeyJoin[K, L, KR, R, O]) Resolve() Supplier { return unbuilt() }

// Result turns joined rows into a table: K, O to K, Change[O].
func (j *ForeignKeyJoin[K, L, KR, R, O]) Result() *TableSource[K, O] { return nil }

// UseVersionedSemantics tells whether the left and the right table are versioned.
func (j *ForeignKeyJoin[K, L, KR, R, O]) UseVersionedSemantics(left, right bool) {}

// ResponsePartitioner sends each response to the partition that its subscription came from.
func ResponsePartitioner[K, R any](topic string, r *Record[K, Response[R]], partitions int32) (int32, error) {
	return 0, errUnbuilt
}

// Suppression holds a table's updates back. It makes a Table.
type Suppression[K, V any] struct {
	// UntilWindowCloses holds each window's result back until the window is closed, with GraceMs; K is then a Windowed key and
	// deletes are left out. Else a key's update is held back for WaitMs since the first one that is held.
	UntilWindowCloses bool
	GraceMs           int64
	WaitMs            int64
	// WindowEnd gives the end of the key's window; needed with UntilWindowCloses.
	WindowEnd func(K) int64
	// MaxRecords and MaxBytes bound the buffer; 0 is no bound.
	MaxRecords int64
	MaxBytes   int64
	// ShutDownWhenFull makes a full buffer a *BufferFullError, fatal for the task; else the oldest updates are sent early.
	ShutDownWhenFull bool
	// Buffer names the store of kind SuppressBuffer.
	Buffer Store[K, V]
}

// NewSuppress makes the node. It enables old values in parent.
func NewSuppress[K, V any](parent Table[K, V], s Suppression[K, V]) Table[K, V] { return nil }
