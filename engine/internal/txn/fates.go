package txn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// fates is what is known of how this producer's transactions ended, for what brokers have left open of them. What isn't known to be committed was not:
// a commit that the coordinator has decided is seen in its state until the producer starts anew, by this process or the next one.
//
// With transactions of version 2 each has an epoch of its own. Before, those of one life of the producer share it, and a commit is forgotten once
// another transaction has begun.
type fates struct {
	commits []stamp
	last    bool // the last transaction was committed, and what is left of it hasn't been looked for
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

// remembered is how many commits are known: as many as may follow one whose end brokers have not marked, before that is looked for.
const remembered = 256

// ended notes a commit.
func (f *fates) ended(id int64, epoch int16) {
	f.last = true
	f.commits = slices.DeleteFunc(f.commits, func(c stamp) bool { return c == stamp{id, epoch} })
	f.commits = append(f.commits[max(0, len(f.commits)+1-remembered):], stamp{id, epoch})
}

// begun notes that there is a transaction whose fate isn't known. Brokers may not tell it later on.
func (f *fates) begun(ownEpoch bool) {
	f.last = false
	if !ownEpoch {
		f.commits = f.commits[:0]
	}
}

// learnFate asks the coordinator how the last transaction ended. The answer is lost once the producer has a new epoch.
func (p *Producer) learnFate(ctx context.Context) error {
	s, err := p.describe(ctx)
	if err != nil {
		return err
	}
	switch s.State {
	case "PrepareCommit", "CompleteCommit":
		epoch := s.ProducerEpoch
		if p.implicit {
			epoch-- // the end has given a new one
		}
		p.fates.ended(s.ProducerID, epoch)
	case "Empty", "": // nothing since the last start
	default:
		p.fates.last = false
		p.fates.commits = slices.DeleteFunc(p.fates.commits, func(c stamp) bool { return c == stamp{s.ProducerID, s.ProducerEpoch} })
	}
	return nil
}

// AwaitMarks waits until the coordinator has the end of the last transaction marked everywhere, or takes it for marked. Commit returns before.
func (p *Producer) AwaitMarks(ctx context.Context) error {
	for {
		s, err := p.describe(ctx)
		if err != nil || s.State != "PrepareCommit" && s.State != "PrepareAbort" {
			return err
		}
		if err := offsets.Pause(ctx); err != nil {
			return err
		}
	}
}

// coordinatorTries is how often a coordinator is asked that isn't ready, as none is for a moment in a cluster that is new, before that is an error.
const coordinatorTries = 20

// describe asks the coordinator for the state of the last transaction; there is none of a producer that is new, or where brokers don't tell.
func (p *Producer) describe(ctx context.Context) (state kmsg.DescribeTransactionsResponseTransactionState, err error) {
	if p.cfg.TransactionalID == "" {
		return state, nil
	}
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{p.cfg.TransactionalID}
	for tries := 1; ; tries++ {
		resp, failed := req.RequestWith(ctx, p.client)
		if err = failed; err == nil && len(resp.TransactionStates) != 1 {
			err = errors.New("the broker's answer lacks it")
		}
		if err == nil {
			state = resp.TransactionStates[0]
			err = kerr.ErrorForCode(state.ErrorCode)
		}
		if !kerr.IsRetriable(err) || tries == coordinatorTries || offsets.Pause(ctx) != nil {
			break
		}
	}
	for _, silent := range []error{
		kerr.TransactionalIDNotFound, kerr.UnsupportedVersion, kerr.TransactionalIDAuthorizationFailed, // new; brokers before 3.0; what follows will tell
	} {
		if errors.Is(err, silent) {
			state.State = ""
			return state, nil
		}
	}
	if err != nil {
		return state, fmt.Errorf("ask how the last transaction ended: %w", err)
	}
	return state, nil
}
