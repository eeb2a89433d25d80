package ods

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// Staged is a row of the staging table. No two are about the same event.
type Staged struct {
	EventID     string    `lake:"event_id,notnull,comment=Identifies the event; no other row has it."`
	OrderID     string    `lake:"order_id,notnull,ods.key=true,comment=Identifies the order."`
	CustomerID  string    `lake:"customer_id,ods.pii=true,comment=Who ordered."`
	Status      string    `lake:"status,comment=What happened: placed, shipped, delivered or returned."`
	AmountCents int64     `lake:"amount,decimal(12,2),comment=The order's value in euros."`
	EventTime   time.Time `lake:"event_time,comment=When it happened."`
	Coupon      *string   `lake:"coupon,comment=The voucher that was used."`
	Channel     *string   `lake:"channel,comment=Where the order was placed; null where the producer doesn't say."`
	Partition   int32     `lake:"raw_partition,notnull,comment=Partition of the event's first record in the raw topic."`
	Offset      int64     `lake:"raw_offset,notnull,comment=Its offset."`
}

const (
	stagingID   = "ods-staging" // the application in the table's progress
	stagingSink = "staging"
)

// Rebuilt is what a rebuild has done.
type Rebuilt struct {
	Version  int64 // of the staging table
	Added    int64 // events that were new
	Repeated int64 // raw rows of events that staging had, or that came more than once
}

// Rebuild brings the staging table up to what has landed in the raw table: one row for each event, that of its first record. The rows and how far
// the raw table has been read land in one commit, as a sink's do: a rebuild that is killed has done nothing, and of two that run at once one
// starts again behind the other. It holds the new rows and the ids of all events in memory.
func (p *Platform) Rebuild(ctx context.Context) (Rebuilt, error) {
	table := lake.Delta(p.place(StagingTable), lake.Name(StagingTable), lake.RunColumns(stagingID),
		lake.Comment("Events of the shop's orders, each once."), lake.Properties(map[string]string{"ods.source": RawTable}))
	if err := table.Bind(reflect.TypeFor[[]byte](), reflect.TypeFor[Staged]()); err != nil {
		return Rebuilt{}, err
	}
	w, err := table.Open(ctx, sink.Env{ApplicationID: stagingID, Name: stagingSink, Logger: p.Log, Now: time.Now})
	if err != nil {
		return Rebuilt{}, err
	}
	defer w.Close()
	for {
		out, err := p.rebuild(ctx, w)
		if !sink.IsFenced(err) {
			return out, err
		}
	}
}

// rebuild tries once. A *sink.FencedError says that another one was faster.
func (p *Platform) rebuild(ctx context.Context, w sink.Writer) (out Rebuilt, err error) {
	moves, err := p.rawMoves(ctx, w)
	if err != nil {
		return out, err
	}
	seen, err := p.stagedIDs(ctx)
	if err != nil {
		return out, err
	}
	rows, err := p.rawRows(ctx, moves)
	if err != nil {
		return out, err
	}
	b := w.NewBatch()
	defer b.Release()
	for i := range rows {
		r := &rows[i]
		if seen[r.EventID] {
			out.Repeated++
			continue
		}
		seen[r.EventID] = true
		out.Added++
		at := r.EventTime.UnixMilli()
		if err := b.Append(nil, r, &sink.Meta{Topic: OrderTopic, Partition: r.Partition, Offset: r.Offset, Timestamp: at, BrokerTimestamp: at}); err != nil {
			return out, fmt.Errorf("staging: raw partition %d offset %d: %w", r.Partition, r.Offset, err)
		}
	}
	landed, err := w.Commit(ctx, b, moves)
	out.Version = landed.Version
	return out, err
}

// rawMoves are from where to where the raw table is read: from the staging table's progress to the raw table's.
func (p *Platform) rawMoves(ctx context.Context, w sink.Writer) ([]sink.Move, error) {
	_, landed, err := lake.ReadProgress(ctx, p.place(RawTable))
	if err != nil {
		return nil, fmt.Errorf("raw table: %w", err)
	}
	next := map[sink.Partition]int64{}
	for _, l := range landed {
		if l.Topic == OrderTopic {
			part := sink.Partition{Topic: l.Topic, Partition: l.Partition}
			next[part] = max(next[part], l.Next)
		}
	}
	parts := make([]sink.Partition, 0, len(next))
	for part := range next {
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b sink.Partition) int { return cmp.Compare(a.Partition, b.Partition) })
	from, err := w.Progress(ctx, parts)
	if err != nil {
		return nil, err
	}
	moves := make([]sink.Move, len(parts))
	for i, part := range parts {
		moves[i] = sink.Move{Partition: part, From: from[part], To: max(next[part], from[part])}
	}
	return moves, nil
}

func (p *Platform) stagedIDs(ctx context.Context) (map[string]bool, error) {
	seen := map[string]bool{}
	for row, err := range lake.ReadRows(ctx, p.place(StagingTable)) {
		if err != nil {
			return nil, fmt.Errorf("staging table: %w", err)
		}
		id, _ := row["event_id"].(string)
		seen[id] = true
	}
	return seen, nil
}

// rawRows are the raw table's rows within the moves, in the order of the topic.
func (p *Platform) rawRows(ctx context.Context, moves []sink.Move) ([]Staged, error) {
	span := map[int32]sink.Move{}
	for _, m := range moves {
		span[m.Partition.Partition] = m
	}
	var rows []Staged
	for row, err := range lake.ReadRows(ctx, p.place(RawTable)) {
		if err != nil {
			return nil, fmt.Errorf("raw table: %w", err)
		}
		partition, _ := row[lake.SourcePartition].(int32)
		offset, _ := row[lake.SourceOffset].(int64)
		if m, ok := span[partition]; !ok || offset < m.From || offset >= m.To {
			continue
		}
		r, err := staged(row)
		if err != nil {
			return nil, fmt.Errorf("raw table: partition %d offset %d: %w", partition, offset, err)
		}
		r.Partition, r.Offset = partition, offset
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Staged) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return rows, nil
}

// staged takes the staged columns from a row of the raw table.
func staged(row lake.Row) (s Staged, err error) {
	text := func(column string) string { v, _ := row[column].(string); return v }
	optional := func(column string) *string {
		if v, ok := row[column].(string); ok {
			return &v
		}
		return nil
	}
	amount, ok := new(big.Rat).SetString(text("amount"))
	if !ok {
		return s, fmt.Errorf("its amount is %v", row["amount"])
	}
	cents := amount.Mul(amount, big.NewRat(100, 1))
	at, ok := row["event_time"].(time.Time)
	if !ok || !cents.IsInt() || !cents.Num().IsInt64() {
		return s, fmt.Errorf("its amount is %v, its time %v", row["amount"], row["event_time"])
	}
	return Staged{EventID: text("event_id"), OrderID: text("order_id"), CustomerID: text("customer_id"), Status: text("status"),
		AmountCents: cents.Num().Int64(), EventTime: at, Coupon: optional("coupon"), Channel: optional("channel")}, nil
}
