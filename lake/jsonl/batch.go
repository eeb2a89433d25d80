package jsonl

import (
	"cmp"
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/lake/sink"
)

// input is a partition that a sink reads, by name: the id of a topic doesn't change while a batch is open.
type input struct {
	topic     string
	partition int32
}

// section is the lines of one input partition and one event date: what becomes a file.
type section struct {
	in          input
	day         int32
	text        []byte
	rows        int64
	first, last int64 // least and greatest offset of the input
	file        *File // once it is written
}

// counts are a batch's figures for one input partition.
type counts struct {
	rows, rejects, tombstones int64
	oldest, newest            int64 // timestamps in ms of rows and rejects; newest < oldest if there are none
}

func (c *counts) saw(ts int64) {
	if ts >= 0 { // a record without a time says nothing
		c.oldest, c.newest = min(c.oldest, ts), max(c.newest, ts)
	}
}

// sectionKey finds a section.
type sectionKey struct {
	in  input
	day int32
}

// batch is what is landed together. It implements sink.Batch.
type batch struct {
	w        *writer
	sections map[sectionKey]*section
	last     *section // where the row before went: the next one mostly goes there, too
	counts   map[input]*counts
	lastIn   input
	lastOf   *counts
	rows     int
	bytes    int64
	sealed   bool // Commit was called
	released bool

	// Once made, manifests stay the same over repeated calls of Commit, and so does what has landed already.
	manifests map[sink.Partition]*pending
}

// pending is a manifest on its way.
type pending struct {
	manifest *Manifest
	text     []byte
	landed   bool
}

// Append implements sink.Batch. A null value makes no row, and is no error, unless the sink lands tombstones.
func (b *batch) Append(key, value any, meta *sink.Meta) error {
	if b.sealed {
		return errors.New("a batch that was given to Commit takes no more rows")
	}
	in := input{meta.InputTopic, meta.InputPartition}
	c := b.countsOf(in)
	err := b.append(in, c, key, value, meta)
	var row *sink.RowError
	if errors.As(err, &row) {
		c.rejects++
		c.saw(meta.BrokerTimestamp)
	}
	return err
}

func (b *batch) append(in input, c *counts, key, value any, meta *sink.Meta) error {
	opts := &b.w.landing.opts
	if err := b.w.landing.CheckRow(key, value, meta); err != nil {
		return err
	}
	if isNull(value) {
		value = nil
	}
	if value == nil && !opts.tombstones {
		c.tombstones++
		return nil
	}
	d, err := day(meta.Timestamp)
	if err != nil {
		return &sink.RowError{Err: err}
	}
	s := b.sectionOf(in, d)
	text, err := appendLine(s.text, key, value, meta)
	if err != nil {
		return err
	}
	b.bytes += int64(len(text) - len(s.text))
	s.text = text
	if s.rows == 0 {
		s.first, s.last = meta.InputOffset, meta.InputOffset
	}
	s.first, s.last = min(s.first, meta.InputOffset), max(s.last, meta.InputOffset)
	s.rows++
	b.rows++
	c.rows++
	c.saw(meta.BrokerTimestamp)
	return nil
}

// isNull tells of values that are null though their pointer isn't: bytes that are nil.
func isNull(value any) bool {
	data, ok := value.(*[]byte)
	return ok && *data == nil
}

func (b *batch) countsOf(in input) *counts {
	if b.lastOf != nil && b.lastIn == in {
		return b.lastOf
	}
	c := b.counts[in]
	if c == nil {
		c = &counts{oldest: 1<<63 - 1, newest: -1 << 63}
		b.counts[in] = c
	}
	b.lastIn, b.lastOf = in, c
	return c
}

func (b *batch) sectionOf(in input, day int32) *section {
	if s := b.last; s != nil && s.day == day && s.in == in {
		return s
	}
	k := sectionKey{in, day}
	s := b.sections[k]
	if s == nil {
		s = b.w.newSection()
		s.in, s.day = in, day
		b.sections[k] = s
	}
	b.last = s
	return s
}

// inOrder are the sections by partition and date. Those of rejects only have no rows, and make no file.
func (b *batch) inOrder() []*section {
	var all []*section
	for _, s := range b.sections {
		if s.rows > 0 {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y *section) int {
		return cmp.Or(cmp.Compare(x.in.topic, y.in.topic), cmp.Compare(x.in.partition, y.in.partition), cmp.Compare(x.day, y.day))
	})
	return all
}

// manifest makes what a move's manifest says. The files of the partition's sections must be written.
func (b *batch) manifest(m sink.Move) *Manifest {
	w := b.w
	out := &Manifest{
		Format: formatName, Version: formatVersion, ID: uuid.NewString(), Written: w.env.Now().UTC(),
		Application: w.env.ApplicationID, Sink: w.env.Name,
		Topic: m.Partition.Topic, TopicID: uuid.UUID(m.Partition.TopicID).String(), Partition: m.Partition.Partition, Round: w.rounds[m.Partition].number,
		Start: max(m.From, 0), End: m.To - 1, Files: []File{},
	}
	in := input{m.Partition.Topic, m.Partition.Partition}
	if c := b.counts[in]; c != nil {
		out.Rows, out.Rejects, out.Tombstones = c.rows, c.rejects, c.tombstones
		if c.newest >= c.oldest {
			out.OldestTimestamp, out.NewestTimestamp = &c.oldest, &c.newest
		}
	}
	for _, s := range b.inOrder() {
		if s.in == in {
			out.Files = append(out.Files, *s.file)
		}
	}
	if g := m.Gap; !g.Empty() {
		out.Gaps = []Gap{{Start: g.From, End: g.To - 1, Reason: g.Reason}}
	}
	return out
}

// Rows implements sink.Batch.
func (b *batch) Rows() int { return b.rows }

// Bytes implements sink.Batch: the text of the lines. Growing buffers may hold up to twice as much for a moment.
func (b *batch) Bytes() int64 { return b.bytes }

// Release implements sink.Batch.
func (b *batch) Release() {
	if b.released {
		return
	}
	b.released = true
	for _, s := range b.sections {
		b.w.recycle(s)
	}
	b.sections, b.last = nil, nil
}
