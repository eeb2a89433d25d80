package dlq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Config says what is replayed.
type Config struct {
	Client []kgo.Opt // seed brokers, TLS, SASL
	Topic  string    // of the dead letters
	Filter Filter
	// Again also replays letters that were replayed before and have failed again.
	Again bool
	// Progress is called after each transaction with the letters that have been replayed so far.
	Progress func(done int)
}

// batchSize is how many letters go into one transaction.
const batchSize = 500

// transactionTimeout is how long the letters of a replay that died hold up readers.
const transactionTimeout = 30 * time.Second

// GroupOf is the consumer group that notes which letters of a topic have been replayed.
func GroupOf(topic string) string { return topic + ".replays" }

// Replay is a plan: what would be replayed. Make it with Plan, carry it out with Run, and close it.
type Replay struct {
	cfg    Config
	client *kgo.Client
	admin  *kadm.Client
	id     [16]byte // of the topic

	letters map[int32][]int64 // offsets of all letters
	ends    map[int32]int64
	done    map[int32]replayed

	// Todo are the letters that would be replayed, by partition and offset.
	Todo []*Letter
	// To counts them by the topic that they would go to.
	To map[string]int
	// Replayed counts the chosen letters that have been replayed before, Again those that have failed again since (which only
	// Config.Again replays), and Homeless those that don't say whence they come.
	Replayed, Again, Homeless int
	// Gone counts letters whose topic, or its partition, isn't there any more, by topic.
	Gone map[string]int
}

// Plan reads the letters and finds out what a replay would do. It takes the topic's replays over: another replay of it that is under
// way ends with an error.
func Plan(ctx context.Context, cfg Config) (_ *Replay, err error) {
	return plan(ctx, cfg, false)
}

// Preview is Plan without taking anything over. The result can't be run.
func Preview(ctx context.Context, cfg Config) (*Replay, error) { return plan(ctx, cfg, true) }

func plan(ctx context.Context, cfg Config, preview bool) (_ *Replay, err error) {
	r := &Replay{cfg: cfg, letters: map[int32][]int64{}, ends: map[int32]int64{}, done: map[int32]replayed{}, To: map[string]int{}, Gone: map[string]int{}}
	opts := append(slices.Clone(cfg.Client), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if !preview {
		opts = append(opts, kgo.TransactionalID("tributary-replay-"+cfg.Topic), kgo.TransactionTimeout(transactionTimeout))
	}
	if r.client, err = kgo.NewClient(opts...); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	r.admin = kadm.NewClient(r.client)
	if !preview {
		// From here on nobody else's replay of the topic can commit, so that what is read next stays true.
		if _, _, err := r.client.ProducerID(ctx); err != nil {
			return nil, fmt.Errorf("take over the replays of %s: %w", cfg.Topic, err)
		}
	}
	if err := r.readDone(ctx); err != nil {
		return nil, err
	}
	return r, r.choose(ctx)
}

// Close releases the connections.
func (r *Replay) Close() { r.client.Close() }

// readDone reads the note of what has been replayed.
func (r *Replay) readDone(ctx context.Context) error {
	details, err := r.admin.ListTopics(ctx, r.cfg.Topic)
	if err == nil {
		err = details[r.cfg.Topic].Err
	}
	if err != nil {
		return fmt.Errorf("look at topic %s: %w", r.cfg.Topic, err)
	}
	r.id = details[r.cfg.Topic].ID
	ends, err := r.admin.ListCommittedOffsets(ctx, r.cfg.Topic) // what lies behind an open transaction is left for the next replay
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("list the ends of %s: %w", r.cfg.Topic, err)
	}
	ends.Each(func(o kadm.ListedOffset) { r.ends[o.Partition] = o.Offset })
	got, err := r.committed(ctx)
	if err != nil {
		return err
	}
	var errs []error
	got.Each(func(o kadm.OffsetResponse) {
		if o.Topic != r.cfg.Topic {
			return
		}
		done, err := parseReplayed(o.At, o.Metadata)
		if err != nil {
			errs = append(errs, fmt.Errorf("group %s, partition %d: %w", GroupOf(r.cfg.Topic), o.Partition, err))
		}
		if end, ok := r.ends[o.Partition]; ok && done.Below > end {
			errs = append(errs, fmt.Errorf("group %s has replayed partition %d of %s up to %d, but it ends at %d: the topic was made anew; delete the group to begin again",
				GroupOf(r.cfg.Topic), o.Partition, r.cfg.Topic, done.Below, end))
		}
		r.done[o.Partition] = done
	})
	return errors.Join(errs...)
}

// committed fetches the group's offsets once no transaction on them is open.
func (r *Replay) committed(ctx context.Context) (kadm.OffsetResponses, error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTimeout+10*time.Second)
	defer cancel()
	for {
		got, err := r.admin.FetchOffsets(kadm.RequireStable(ctx), GroupOf(r.cfg.Topic))
		if err == nil {
			err = got.Error()
		}
		if err == nil || errors.Is(err, kerr.GroupIDNotFound) {
			return got, nil
		}
		if !kerr.IsRetriable(err) && !errors.Is(err, kerr.UnstableOffsetCommit) {
			return nil, fmt.Errorf("fetch the offsets of group %s: %w", GroupOf(r.cfg.Topic), err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("fetch the offsets of group %s: %w", GroupOf(r.cfg.Topic), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// choose reads all letters, and sorts out what is to be done.
func (r *Replay) choose(ctx context.Context) error {
	all := Filter{ProducerHeader: r.cfg.Filter.ProducerHeader}
	for l, err := range Read(ctx, r.cfg.Client, r.cfg.Topic, all) {
		if err != nil {
			return err
		}
		if l.Offset >= r.ends[l.Partition] {
			continue // it came after the ends were listed
		}
		r.letters[l.Partition] = append(r.letters[l.Partition], l.Offset)
		if !r.cfg.Filter.Match(l) {
			continue
		}
		done := r.done[l.Partition]
		switch {
		case done.Has(l.Offset):
			r.Replayed++
		case l.Source == "":
			r.Homeless++
		case l.ReplayOf != "" && !r.cfg.Again:
			r.Again++
		default:
			r.Todo = append(r.Todo, l)
		}
	}
	slices.SortFunc(r.Todo, func(a, b *Letter) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	return r.dropGone(ctx)
}

// dropGone takes out the letters whose home isn't there any more.
func (r *Replay) dropGone(ctx context.Context) error {
	homes := map[string]bool{}
	for _, l := range r.Todo {
		homes[l.Source] = true
	}
	if len(homes) == 0 {
		return nil
	}
	details, err := r.admin.ListTopics(ctx, slices.Sorted(maps.Keys(homes))...)
	if err != nil {
		return fmt.Errorf("look at the topics of the letters: %w", err)
	}
	r.Todo = slices.DeleteFunc(r.Todo, func(l *Letter) bool {
		d := details[l.Source]
		_, there := d.Partitions[l.SourcePartition]
		if d.Err != nil || !there {
			r.Gone[l.Source]++
			return true
		}
		r.To[l.Source]++
		return false
	})
	return nil
}

// Run sends the letters of the plan to where they come from, and returns how many it has sent. On an error, those are replayed, and a
// new plan has the others.
func (r *Replay) Run(ctx context.Context) (sent int, err error) {
	for batch := range slices.Chunk(r.Todo, batchSize) {
		if err := r.send(ctx, batch); err != nil {
			return sent, fmt.Errorf("%w; %d letters are replayed, and the same command goes on with the others", err, sent)
		}
		sent += len(batch)
		if r.cfg.Progress != nil {
			r.cfg.Progress(sent)
		}
	}
	return sent, nil
}

// send replays letters, and notes that it did, in one transaction.
func (r *Replay) send(ctx context.Context, batch []*Letter) error {
	notes, err := r.notes(batch)
	if err != nil {
		return err
	}
	if err := r.client.BeginTransaction(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	records := make([]*kgo.Record, len(batch))
	for i, l := range batch {
		records[i] = l.again()
	}
	if err = r.client.ProduceSync(ctx, records...).FirstErr(); err == nil {
		err = r.commitNotes(ctx, notes)
	}
	if err != nil {
		ended := r.client.EndTransaction(context.WithoutCancel(ctx), kgo.TryAbort)
		return errors.Join(fmt.Errorf("replay: %w", err), ended)
	}
	if err := r.client.EndTransaction(ctx, kgo.TryCommit); err != nil {
		return fmt.Errorf("commit the replay: %w", err)
	}
	maps.Copy(r.done, notes)
	return nil
}

// again is the letter as the record that it was, at its place, with a header that tells of the replay.
func (l *Letter) again() *kgo.Record {
	out := &kgo.Record{Topic: l.Source, Partition: l.SourcePartition, Key: l.record.Key, Value: l.record.Value, Timestamp: l.record.Timestamp}
	for _, h := range l.record.Headers {
		if !strings.HasPrefix(h.Key, errorHeaders) && h.Key != HeaderReplay {
			out.Headers = append(out.Headers, h)
		}
	}
	out.Headers = append(out.Headers, kgo.RecordHeader{Key: HeaderReplay, Value: []byte(l.String())})
	return out
}

// notes is what will have been replayed of the batch's partitions after it.
func (r *Replay) notes(batch []*Letter) (map[int32]replayed, error) {
	sent := map[int32]map[int64]bool{}
	for _, l := range batch {
		if sent[l.Partition] == nil {
			sent[l.Partition] = map[int64]bool{}
		}
		sent[l.Partition][l.Offset] = true
	}
	out := map[int32]replayed{}
	for partition, offsets := range sent {
		before := r.done[partition]
		n := note(r.letters[partition], func(o int64) bool { return before.Has(o) || offsets[o] }, r.ends[partition])
		if _, err := n.metadata(); err != nil {
			return nil, fmt.Errorf("partition %d of %s: %w", partition, r.cfg.Topic, err)
		}
		out[partition] = n
	}
	return out, nil
}

// commitNotes puts the notes into the open transaction (KIP-98, TxnOffsetCommit).
func (r *Replay) commitNotes(ctx context.Context, notes map[int32]replayed) error {
	id, epoch, err := r.client.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = "tributary-replay-"+r.cfg.Topic, id, epoch, GroupOf(r.cfg.Topic)
	err = r.retry(ctx, func() error {
		resp, err := add.RequestWith(ctx, r.client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	if err != nil {
		return fmt.Errorf("add the group's offsets to the transaction: %w", err)
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group, req.Generation = add.TransactionalID, id, epoch, add.Group, -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = r.cfg.Topic, r.id
	for _, partition := range slices.Sorted(maps.Keys(notes)) {
		n := notes[partition]
		text, err := n.metadata()
		if err != nil {
			return err
		}
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = partition, n.Below, -1, &text
		topic.Partitions = append(topic.Partitions, p)
	}
	req.Topics = append(req.Topics, topic)
	err = r.retry(ctx, func() error {
		resp, err := req.RequestWith(ctx, r.client)
		if err != nil {
			return err
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("commit the group's offsets in the transaction: %w", err)
	}
	return nil
}

// retry asks a coordinator again while it says that it isn't ready.
func (r *Replay) retry(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil || !kerr.IsRetriable(err) && !errors.Is(err, kerr.ConcurrentTransactions) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
