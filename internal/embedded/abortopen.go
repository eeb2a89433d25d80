package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// abortOpen has the broker write markers for the transactions that a crash left open, which also fences their producers. It takes the place of each producer
// and aborts an empty transaction in the same partitions.
func (w *watched) abortOpen(cluster *kfake.Cluster, open map[int64][]partition) error {
	if len(open) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.Dialer(w.dial))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	all, err := admin.ListTransactions(ctx, nil, nil)
	if err != nil {
		return err
	}
	for _, found := range all.Sorted() {
		partitions := slices.DeleteFunc(open[found.ProducerID], func(p partition) bool { // of a topic that is deleted
			return cluster.PartitionInfo(p.topic, p.number) == nil
		})
		if len(partitions) == 0 || found.State == "Ongoing" { // that goes on: the broker was closed, and kept it
			continue
		}
		if err := abortIn(ctx, client, found, partitions); err != nil {
			return fmt.Errorf("abort what transaction %s left open: %w", found.TxnID, err)
		}
	}
	return nil
}

func abortIn(ctx context.Context, client *kgo.Client, found kadm.ListedTransaction, partitions []partition) error {
	known, err := kadm.NewClient(client).DescribeTransactions(ctx, found.TxnID)
	if err == nil {
		err = known[found.TxnID].Err
	}
	if err != nil {
		return err
	}
	init := kmsg.NewPtrInitProducerIDRequest()
	init.TransactionalID, init.ProducerID, init.ProducerEpoch = &found.TxnID, -1, -1
	init.TransactionTimeoutMillis = known[found.TxnID].TimeoutMillis // what is asked for is what the next start reads
	as, err := init.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(as.ErrorCode)
	}
	if err != nil || as.ProducerID != found.ProducerID { // a new id has nothing to abort
		return err
	}
	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = found.TxnID, as.ProducerID, as.ProducerEpoch
	for _, p := range partitions {
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic, t.Partitions = p.topic, []int32{p.number}
		add.Topics = append(add.Topics, t)
	}
	added, err := add.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, t := range added.Topics {
		for _, p := range t.Partitions {
			err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	if err != nil {
		return err
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch = found.TxnID, as.ProducerID, as.ProducerEpoch
	ended, err := end.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(ended.ErrorCode)
}

// dial connects to a broker by its address.
func (w *watched) dial(_ context.Context, _, addr string) (net.Conn, error) {
	for _, l := range w.listeners {
		if l.Addr().String() == addr {
			return l.dial()
		}
	}
	return nil, fmt.Errorf("no broker listens on %s", addr)
}
