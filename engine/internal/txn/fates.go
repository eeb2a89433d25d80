package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fates is what is known of how this producer's transactions ended, for what brokers have left open of them. What isn't known to be committed was not:
// a commit that the coordinator has decided is seen in its state until the producer starts anew, by this process or the next one.
//
// With transactions of version 2 each has an epoch of its own. Before, those of one life of the producer share it, and a commit is forgotten once
// another transaction has begun.
type fates struct {
	commits []stamp
	last    bool // the transaction before Reset was committed, says the coordinator
}

// stamp is what a transaction's records bear.
type stamp struct {
	id    int64
	epoch int16
}

// committed tells whether records with this id and epoch belong to a transaction that was committed.
func (f *fates) committed(id int64, epoch int16) bool {
	return slices.Contains(f.commits, stamp{id, epoch})
}

// ended notes a commit. What was before is settled, or was ended with it.
func (f *fates) ended(id int64, epoch int16) { f.commits = append(f.commits[:0], stamp{id, epoch}) }

// learnFate asks the coordinator how the last transaction ended. The answer is lost once the producer has a new epoch.
func (p *Producer) learnFate(ctx context.Context) error {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{p.cfg.TransactionalID}
	resp, err := req.RequestWith(ctx, p.client)
	if err == nil && len(resp.TransactionStates) == 1 {
		err = kerr.ErrorForCode(resp.TransactionStates[0].ErrorCode)
	}
	p.fates.last = false
	for _, silent := range []error{
		kerr.TransactionalIDNotFound, kerr.UnsupportedVersion, kerr.TransactionalIDAuthorizationFailed, // new; brokers before 3.0; it will come again
	} {
		if errors.Is(err, silent) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("ask how the last transaction ended: %w", err)
	}
	if len(resp.TransactionStates) != 1 {
		return errors.New("ask how the last transaction ended: the broker's answer lacks it")
	}
	s := resp.TransactionStates[0]
	switch s.State {
	case "PrepareCommit", "CompleteCommit":
		of := stamp{s.ProducerID, s.ProducerEpoch}
		if p.implicit {
			of.epoch-- // the end has given a new one
		}
		p.fates.last = true
		if !p.fates.committed(of.id, of.epoch) {
			p.fates.commits = append(p.fates.commits, of)
		}
	default:
		p.fates.commits = slices.DeleteFunc(p.fates.commits, func(c stamp) bool { return c == stamp{s.ProducerID, s.ProducerEpoch} })
	}
	return nil
}
