package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/offsets"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/offsetset"
	"github.com/tributary-io/tributary/internal/task"
)

// A record of a global topic that is left out is met by every instance, and again by each start whose stores are empty. Its dead letter, or its
// entry in the ledger, is written once all the same: it goes out in a transaction that also notes, in the group of dead letters, that the record's
// letters are written. All instances use one transactional id for that, so that whoever comes second is fenced, reads the note, and has nothing
// left to write. Kafka Streams writes none of them (KIP-1270). What was read is let into the stores only when its letters are written.
//
// Letters are rare. They are written beside the commits, so that nothing waits for them but the global tables.

// letter is a record to be written because of one that the global tables left out.
type letter struct {
	from   task.TopicPartition // of the record; empty if it is about none
	offset int64
	record txn.Record
}

// globalLetters holds the letters of an instance. What isn't said otherwise belongs to whoever runs the global tables: a worker, or, while the
// gate is closed, the conductor.
type globalLetters struct {
	e       *Engine
	waiting []letter
	bytes   int

	// Of a batch on its way. written is nil, or closed at its end; err is to be read after that.
	written chan struct{}
	err     error
	running sync.WaitGroup
}

// lettersWritten tells the conductor that the batch is written, or why it can't be.
type lettersWritten struct{}

// maxWaiting is how many bytes of letters may wait before the global tables read on.
const maxWaiting = 1 << 20

func (g *globalLetters) add(l letter) {
	g.waiting = append(g.waiting, l)
	g.bytes += len(l.record.Key) + len(l.record.Value) + recordOverhead
}

// hold tells that the global tables must not go on before letters are written.
func (g *globalLetters) hold() bool {
	if g.written != nil {
		return true
	}
	if g.bytes > maxWaiting {
		g.e.requestCommit()
		return true
	}
	return false
}

// begin writes what waits, in the background. The gate must be closed.
func (g *globalLetters) begin() {
	batch := g.take()
	done := make(chan struct{})
	g.written = done
	g.running.Go(func() {
		g.err = g.write(g.e.life, batch)
		close(done)
		g.e.tell(lettersWritten{})
	})
}

func (g *globalLetters) take() []letter {
	batch := g.waiting
	g.waiting, g.bytes = nil, 0
	return batch
}

// flush writes all there is, and returns when it is written.
func (g *globalLetters) flush(ctx context.Context) error {
	if g.written != nil {
		select {
		case <-g.written:
		case <-ctx.Done():
			return ctx.Err()
		}
		g.written = nil
		if g.err != nil {
			return g.err
		}
	}
	if len(g.waiting) == 0 {
		return nil
	}
	return g.write(ctx, g.take())
}

// write writes a batch, however long that takes. Errors are for a person, or the context's.
func (g *globalLetters) write(ctx context.Context, batch []letter) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		n, err := g.try(ctx, batch)
		if err == nil {
			g.e.log.Info("dead letters of global tables", "records", len(batch), "written", n, "written_before", len(batch)-n)
			return nil
		}
		if ctx.Err() != nil || txn.Permanent(err) {
			return fmt.Errorf("dead letters of global tables: %w", err)
		}
		if errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.ProducerFenced) {
			g.e.log.Info("another instance writes dead letters of global tables, too: looking what is left", "error", err)
		} else {
			g.e.log.Warn("dead letters of global tables can't be written yet", "error", err, "in", pause)
		}
		if err := sleep(ctx, pause/2+rand.N(pause)); err != nil { // at random: instances that fence one another must not do so for ever
			return fmt.Errorf("dead letters of global tables: %w", err)
		}
	}
}

// lookPatience is how long a transaction that is open is waited for before it is ended.
const lookPatience = time.Second

// try writes those letters of a batch that nobody has written yet, and returns how many these are.
func (g *globalLetters) try(ctx context.Context, batch []letter) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, g.e.cfg.transaction)
	defer cancel()
	look, stop := context.WithTimeout(ctx, lookPatience)
	notes, err := g.notes(look, batch)
	stop()
	if err == nil && len(notes.left(batch)) == 0 { // most of the time: somebody else was faster
		return 0, nil
	}
	producer := g.producer()
	defer producer.Close()
	if err := producer.Reset(ctx); err != nil { // from here on nobody else commits
		return 0, err
	}
	topics := map[string]int32{}
	for _, l := range batch {
		topics[l.record.Topic] = max(topics[l.record.Topic], l.record.Partition+1)
	}
	if _, err := producer.Settle(ctx, topics, txn.Reader{Group: g.e.deadGroup(), Parts: g.parts(batch)}); err != nil {
		return 0, err
	}
	if notes, err = g.notes(ctx, batch); err != nil {
		return 0, err
	}
	left := notes.left(batch)
	if len(left) == 0 {
		return 0, nil
	}
	hand := producer.Hand()
	for _, l := range left {
		if err := hand.Produce(ctx, l.record); err != nil {
			return 0, err
		}
		if set := notes[l.from]; set != nil {
			set.Add(l.offset)
		}
	}
	outcome, err := producer.Commit(ctx, txn.Offsets{Group: g.e.deadGroup(), Member: offsets.Member{Generation: -1}, Positions: g.positions(left, notes)})
	if outcome != txn.Committed {
		return 0, err
	}
	return len(left), nil
}

func (g *globalLetters) producer() *txn.Producer {
	cfg := txn.Config{Client: g.e.clientOptions("letters"), Timeout: g.e.cfg.transaction, Logger: g.e.log}
	if g.e.cfg.guarantee == ExactlyOnce {
		cfg.TransactionalID = g.e.cfg.txnPrefix + lettersID(g.e.plan.ApplicationID)
	}
	return txn.New(cfg)
}

// lettersID is the transactional id by which all instances of an application write the letters of its global tables.
func lettersID(applicationID string) string { return ownPrefix(applicationID) + "global-dead-letters" }

// letterNotes tell, by partition, of which records the letters are written.
type letterNotes map[task.TopicPartition]*offsetset.Set

// left are the letters that are not written yet.
func (n letterNotes) left(batch []letter) []letter {
	var left []letter
	for _, l := range batch {
		if set := n[l.from]; set == nil || !set.Has(l.offset) {
			left = append(left, l)
		}
	}
	return left
}

// parts are the partitions that letters come from.
func (g *globalLetters) parts(batch []letter) []offsets.Partition {
	var parts []offsets.Partition
	seen := map[task.TopicPartition]bool{}
	for _, l := range batch {
		if !seen[l.from] && l.from.Topic != "" {
			seen[l.from] = true
			parts = append(parts, offsets.Partition{Topic: l.from.Topic, ID: g.e.catalog().id(l.from.Topic), Partition: l.from.Partition})
		}
	}
	return parts
}

// notes reads the notes on the partitions of a batch.
func (g *globalLetters) notes(ctx context.Context, batch []letter) (letterNotes, error) {
	found, err := offsets.Fetch(ctx, g.e.control, g.e.deadGroup(), g.parts(batch))
	if err != nil {
		return nil, err
	}
	notes := letterNotes{}
	for _, l := range batch {
		if notes[l.from] == nil && l.from.Topic != "" {
			notes[l.from] = &offsetset.Set{}
		}
	}
	for _, p := range found {
		tp := task.TopicPartition{Topic: p.Topic, Partition: p.Partition.Partition}
		set, err := readNote(p.Offset, p.Metadata, g.e.catalog().id(p.Topic))
		if err != nil {
			return nil, fmt.Errorf("group %s, %s: %w", g.e.deadGroup(), tp, err)
		}
		if notes[tp] != nil {
			*notes[tp] = set
		}
	}
	return notes, nil
}

// positions are the notes as offsets of the group.
func (g *globalLetters) positions(batch []letter, notes letterNotes) []offsets.Position {
	var all []offsets.Position
	for _, p := range g.parts(batch) {
		set := notes[task.TopicPartition{Topic: p.Topic, Partition: p.Partition}]
		text := writeNote(set, p.ID)
		all = append(all, offsets.Position{Partition: p, Offset: set.Below, Metadata: text})
	}
	return all
}

// noteVersion begins a note; see docs/format/offset-metadata.md.
const noteVersion = "letters:"

// maxNote is what brokers take as an offset's metadata (offset.metadata.max.bytes is 4096 by default), less some.
const maxNote = 4000

// writeNote is the metadata beside the offset. Of a set in too many pieces the oldest gaps are given up: their records count as written.
func writeNote(set *offsetset.Set, topic [16]byte) string {
	head := noteVersion + base64.RawURLEncoding.EncodeToString(topic[:]) + ":"
	set.Fit(maxNote - len(head))
	return head + set.Text()
}

// readNote reads what writeNote has written. A note on a topic of the same name that is gone says nothing.
func readNote(offset int64, metadata string, topic [16]byte) (offsetset.Set, error) {
	if offset < 0 {
		return offsetset.Set{}, nil
	}
	text, ok := strings.CutPrefix(metadata, noteVersion)
	id, ranges, cut := strings.Cut(text, ":")
	if !ok || !cut {
		return offsetset.Set{}, fmt.Errorf("the offset's metadata %q is not a note on dead letters: something else commits to the group", metadata)
	}
	if id != base64.RawURLEncoding.EncodeToString(topic[:]) {
		return offsetset.Set{}, nil
	}
	return offsetset.Parse(offset, ranges)
}
