package iceberg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/rest"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"github.com/tributary-io/tributary/lake/sink"
)

// maxFailures bounds how many attempts of one Commit may fail other than by a lost race.
const maxFailures = 6

// Commit implements sink.Writer.
func (w *writer) Commit(ctx context.Context, sb sink.Batch, moves []sink.Move) (sink.Commit, error) {
	start := w.env.Now()
	b, ok := sb.(*batch)
	if !ok || b.w != w || b.b == nil {
		return sink.Commit{}, fmt.Errorf("table %s: the batch is not one of this writer's, or was released", w.sink.name)
	}
	var due []sink.Move
	for _, m := range moves {
		if m.From != m.To && m.To >= 0 {
			due = append(due, m)
		}
	}
	rows := int64(b.Rows())
	if rows > 0 && len(due) == 0 {
		return sink.Commit{}, fmt.Errorf("table %s: %d rows without a move of any partition's progress would land again at the next start", w.sink.name, rows)
	}
	if len(due) == 0 {
		return sink.Commit{Version: version(w.table)}, nil
	}
	again := b.given
	b.give()
	c := commit{w: w, b: b, moves: due, all: moves}
	if err := c.run(ctx, again); err != nil {
		return sink.Commit{}, w.refused(err)
	}
	out := sink.Commit{Version: c.version, Rows: rows, Files: len(b.adds), Attempts: c.attempts, Took: w.env.Now().Sub(start)}
	for _, f := range b.adds {
		out.Bytes += f.FileSizeBytes()
	}
	b.landed()
	return out, nil
}

// version numbers the versions of a table for people: by the newest snapshot's place in the order of commits.
func version(t *table.Table) int64 {
	if s := t.CurrentSnapshot(); s != nil {
		return s.SequenceNumber
	}
	return 0
}

// commit is one call of Commit on its way.
type commit struct {
	w          *writer
	b          *batch
	moves, all []sink.Move
	attempts   int
	version    int64
	meta       *recorder // the manifests of the newest attempt
	base       int64     // the snapshot that it was built on
	fit        *fit      // what its files fit
}

// run tries until the batch has landed, or is fenced, or can't land. Each attempt is built on one version of the table, whose
// properties are compared with the moves, and lands on that version's snapshot or not at all.
func (c *commit) run(ctx context.Context, look bool) error {
	failures := 0
	for {
		if look {
			if landed, err := c.look(ctx); err != nil || landed {
				return err
			}
		}
		err := c.attempt(ctx)
		if err == nil {
			return nil
		}
		if look = true; errors.Is(err, errStale) {
			continue
		}
		if !isLost(err) && !isDoubtful(err) {
			return err
		}
		if failures, err = c.failed(ctx, err, failures); err != nil || failures < 0 {
			return err
		}
	}
}

// failed settles an attempt that didn't land for certain: it looks whether it has landed after all (-1 failures), and whether
// another commit came first, which is no failure. An error is one to give up with.
func (c *commit) failed(ctx context.Context, cause error, failures int) (int, error) {
	if isDoubtful(cause) {
		c.w.log.Debug("a commit got no clear answer: looking for it in the table", "attempt", c.attempts, "error", cause)
	}
	if err := pause(ctx, failures+1); err != nil {
		return c.last(context.WithoutCancel(ctx), cause)
	}
	landed, err := c.look(ctx)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w (looking for the commit: %w)", cause, err)
	case landed:
		return -1, nil
	}
	if isLost(cause) || c.w.sink.catalog.settled {
		c.discard()
	} else {
		c.b.doubt = true
	}
	if head(c.w.table) != c.base || c.w.table.Schema().ID != c.fit.schema.ID || c.w.table.Metadata().DefaultPartitionSpec() != c.fit.specID {
		return 0, nil
	}
	if failures++; failures == maxFailures {
		return 0, cause
	}
	c.w.log.Warn("a commit failed; trying again", "attempt", c.attempts, "error", cause)
	return failures, nil
}

// last looks a last time for the commit when the caller has no time for more attempts.
func (c *commit) last(ctx context.Context, cause error) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if landed, err := c.look(ctx); err == nil && landed {
		return -1, nil
	}
	c.b.doubt = c.b.doubt || isDoubtful(cause)
	return 0, cause
}

// head is the newest snapshot's id, 0 for none.
func head(t *table.Table) int64 {
	if s := t.CurrentSnapshot(); s != nil {
		return s.SnapshotID
	}
	return 0
}

// errStale says that an attempt found a newer version of the table.
var errStale = errors.New("the table has moved on")

// look reads the table anew, and tells whether the batch has landed in it.
func (c *commit) look(ctx context.Context) (landed bool, err error) {
	for try := 1; ; try++ {
		err := c.w.refresh(ctx)
		if err == nil {
			break
		}
		var refused *sink.RefusedError
		if errors.As(c.w.refused(err), &refused) || try == maxFailures {
			return false, err
		}
		if err := pause(ctx, try); err != nil {
			return false, err
		}
	}
	for _, s := range c.w.table.Metadata().Snapshots() {
		if s.Summary != nil && s.Summary.Properties[summaryCommit] == c.b.id {
			c.version, c.attempts = s.SequenceNumber, max(c.attempts, 1)
			return true, nil
		}
	}
	return false, nil
}

// attempt builds one snapshot on the newest version that the writer has seen, and hands it to the catalog.
func (c *commit) attempt(ctx context.Context) error {
	w := c.w
	if err := w.fenced(w.table.Properties(), c.moves); err != nil {
		return c.fence(ctx, err)
	}
	f, err := w.fit(ctx)
	if err != nil {
		return err
	}
	// Publishing columns may have moved the writer to a newer version.
	if err := w.fenced(w.table.Properties(), c.moves); err != nil {
		return c.fence(ctx, err)
	}
	if err := c.b.encode(ctx, f); err != nil {
		return err
	}
	fsys, err := w.files(ctx)
	if err != nil {
		return err
	}
	meta := &recorder{WriteFileIO: fsys}
	c.meta, c.base, c.fit = meta, head(w.table), f
	stage := w.stage(func(context.Context) (iceio.IO, error) { return meta, nil })
	// The files are written for one schema and one partition spec: a change of these must refuse them as another snapshot does.
	stage.cat.also = []table.Requirement{table.AssertCurrentSchemaID(f.schema.ID), table.AssertDefaultSpecID(f.specID)}
	tx, err := c.transaction(ctx, stage.table)
	if err != nil {
		c.discard()
		return fmt.Errorf("build a snapshot: %w", err)
	}
	c.attempts++
	t, err := tx.Commit(ctx)
	if err == nil {
		w.table = w.adopt(t)
		c.version = version(t)
		return nil
	}
	if err = stage.outcome(err); !isLost(err) && !isDoubtful(err) {
		c.discard()
	}
	return err
}

// fence makes sure that the table's newest version refuses the batch, too, and then removes the batch's files.
func (c *commit) fence(ctx context.Context, fenced error) error {
	seen := c.w.table.MetadataLocation()
	if err := c.w.refresh(ctx); err != nil {
		return err
	}
	if c.w.table.MetadataLocation() != seen {
		return errStale
	}
	c.b.removeFiles()
	return fenced
}

// discard removes the manifests of an attempt that was refused.
func (c *commit) discard() {
	if _, err := c.meta.remove(); err != nil {
		c.w.log.Warn("some manifests of a refused commit could not be removed; they are orphans", "error", err)
	}
}

// transaction stages snapshot and progress. A batch without rows makes a snapshot, too: only so is a move of progress alone
// refused where another commit came first.
func (c *commit) transaction(ctx context.Context, t *table.Table) (*table.Transaction, error) {
	tx := t.NewTransaction()
	if err := tx.AssertRefSnapshotID(table.MainBranch); err != nil {
		return nil, err
	}
	if err := tx.SetProperties(c.w.progressOf(c.moves)); err != nil {
		return nil, err
	}
	if len(c.b.adds) > 0 {
		return tx, tx.AddDataFiles(ctx, c.b.adds, c.summary(), table.WithoutDuplicateCheck(), table.WithoutAutoNameMapping())
	}
	none, err := array.NewRecordReader(arrow.NewSchema(nil, nil), nil)
	if err != nil {
		return nil, err
	}
	return tx, tx.Append(ctx, none, c.summary())
}

// summary is what the snapshot says of the commit.
func (c *commit) summary() icebergo.Properties {
	var sources, gaps []string
	for _, m := range c.all {
		sources = append(sources, fmt.Sprintf("%s:%d-%d", m.Partition, max(m.From, 0), m.To))
		if !m.Gap.Empty() {
			gaps = append(gaps, fmt.Sprintf("%s:%d-%d (%s)", m.Partition, m.Gap.From, m.Gap.To, m.Gap.Reason))
		}
	}
	p := icebergo.Properties{summaryCommit: c.b.id, summarySources: strings.Join(sources, " ")}
	if len(gaps) > 0 {
		p[summaryGaps] = strings.Join(gaps, " ")
	}
	if c.w.sink.opts.RunID != "" {
		p[summaryRun] = c.w.sink.opts.RunID
	}
	if c.b.tombstones > 0 {
		p[summaryTombstones] = strconv.FormatInt(c.b.tombstones, 10)
	}
	return p
}

// stage is the table for one attempt: with a catalog that answers once.
type stage struct {
	table *table.Table
	cat   *once
}

// stage prepares an attempt on the version that the writer has seen last.
func (w *writer) stage(files table.FSysF) *stage {
	cat := &once{inner: w.cat}
	return &stage{table.New(w.sink.ident, w.table.Metadata(), w.table.MetadataLocation(), files, cat), cat}
}

// adopt makes the table of a stage the writer's.
func (w *writer) adopt(t *table.Table) *table.Table {
	return table.New(w.sink.ident, t.Metadata(), t.MetadataLocation(), w.table.FS, w.cat)
}

// once hands one commit to the catalog and keeps its answer. iceberg-go would commit again after a lost race where the table's
// properties ask for retries, without a look at the offsets.
type once struct {
	inner table.CatalogIO
	also  []table.Requirement
	asked bool
	err   error
}

func (o *once) LoadTable(ctx context.Context, id table.Identifier) (*table.Table, error) {
	return o.inner.LoadTable(ctx, id)
}

func (o *once) CommitTable(ctx context.Context, id table.Identifier, reqs []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	if o.asked {
		return nil, "", errors.New("this attempt has been made")
	}
	o.asked = true
	md, loc, err := o.inner.CommitTable(ctx, id, append(reqs, o.also...), updates)
	if o.err = err; err != nil {
		return nil, "", errors.New(err.Error()) // not ErrCommitFailed, upon which iceberg-go would act
	}
	return md, loc, nil
}

// lostError says that a commit was refused since another came first; doubtError that it has no clear outcome.
type (
	lostError  struct{ error }
	doubtError struct{ error }
)

func (e lostError) Unwrap() error  { return e.error }
func (e doubtError) Unwrap() error { return e.error }

func isLost(err error) bool {
	var l lostError
	return errors.As(err, &l)
}

func isDoubtful(err error) bool {
	var d doubtError
	return errors.As(err, &d)
}

// outcome says what an error of a stage's commit means.
func (s *stage) outcome(err error) error {
	refused := []error{rest.ErrBadRequest, rest.ErrForbidden, rest.ErrUnauthorized, rest.ErrAuthorizationExpired}
	switch {
	case !s.cat.asked:
		return err // it never reached the catalog
	case s.cat.err == nil:
		return doubtError{err} // it landed, and then something failed
	case errors.Is(s.cat.err, table.ErrCommitFailed):
		return lostError{s.cat.err}
	}
	for _, r := range refused {
		if errors.Is(s.cat.err, r) {
			return s.cat.err
		}
	}
	return doubtError{s.cat.err}
}

// pauseUnit is the first pause between attempts; tests shorten it.
var pauseUnit = 50 * time.Millisecond

// pause waits a little, longer with each try, so that writers that race don't meet again.
func pause(ctx context.Context, try int) error {
	limit := pauseUnit << min(try-1, 6)
	t := time.NewTimer(limit/4 + rand.N(limit*3/4))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
