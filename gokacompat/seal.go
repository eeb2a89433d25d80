package gokacompat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// SealKey is the key of the tombstones that SealTable writes. No value is ever set under it.
const SealKey = "__tributary_seal"

// SealTable makes a table topic that was written in transactions readable for goka. goka takes a table for recovered when it has read the record
// before the end of the log; behind a transaction there is none, but the transaction's marker, and goka waits for ever. SealTable writes a
// tombstone, outside of any transaction, behind the last marker of each partition.
//
// Call it when a group is handed back to goka, before that is started, and for tables that goka's views, joins and look-ups read, whenever one
// of them may start while nothing else is written. It may run beside the application. goka has to read committed records only
// (config.Consumer.IsolationLevel = sarama.ReadCommitted), or it would take up what was aborted.
func SealTable(ctx context.Context, topic string, opts ...kgo.Opt) error {
	client, err := kgo.NewClient(append(slices.Clone(opts), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("list the partitions of table %s: %w", topic, err)
	}
	var records []*kgo.Record
	for _, partition := range slices.Sorted(maps.Keys(ends[topic])) {
		if ends[topic][partition].Offset > 0 { // nothing to wait for
			records = append(records, &kgo.Record{Topic: topic, Partition: partition, Key: []byte(SealKey)})
		}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("seal table %s: %w", topic, err)
	}
	return nil
}

// HandBack seals the group's table, so that a goka processor can take over where this application has stopped. Its instances have to be stopped
// before. See SealTable for what goka's configuration needs.
func (a *Application) HandBack(ctx context.Context, opts ...kgo.Opt) error {
	table := a.graph.GroupTable()
	if table == nil {
		return nil
	}
	if err := SealTable(ctx, table.Topic(), opts...); err != nil {
		return errors.Join(err, errors.New("goka would wait for the end of its table for ever"))
	}
	return nil
}
