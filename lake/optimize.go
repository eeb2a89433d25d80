package lake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
)

// OptimizeOptions say how Optimize works. The zero value is right for most tables.
type OptimizeOptions struct {
	// TargetSize is the size in bytes that files are compacted to. 0 means the table's property delta.targetFileSize, and 128 MiB without that.
	TargetSize int64
	// SortBy is a column of numbers, dates, timestamps, strings or the like, by which the rows of each new file are sorted, so that readers that
	// look for a range skip most row groups and files. Files that aren't sorted by it yet are written anew whatever their size. Sorting holds the
	// rows of a file in memory.
	SortBy string
	// Where restricts the work to partitions: all conditions must hold. See ParseCondition.
	Where []Condition
	// Parallel is how many files are written at once; 0 means one for each core, at most 4.
	Parallel int
	// DryRun only counts what would be done.
	DryRun bool
	// Progress, if set, is called after each step, one call at a time.
	Progress func(OptimizeResult)
	// Logger gets conflicts and what was left; nil means none.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// OptimizeResult is what Optimize has done, or has done so far.
type OptimizeResult struct {
	Version      int64 // of the table after the last commit
	Groups, Done int   // groups of files to be written as one each, and those that have been
	Commits      int
	FilesRemoved int   // small or unsorted files that are in the table no more
	BytesRemoved int64 // of them
	FilesAdded   int
	BytesAdded   int64
	Rows         int64 // that were moved
	Conflicts    int   // groups that another writer was faster with; those still worth it were tried again
	Left         []LeftFiles
}

// LeftFiles are files that were left as they are, and why.
type LeftFiles struct {
	Paths  []string // as in the log
	Reason string
}

const (
	defaultTargetSize = 128 << 20
	targetProperty    = "delta.targetFileSize"
	maxParallel       = 4
	// optimizePasses bounds how often what others were faster with is looked for anew.
	optimizePasses = 3
)

// Optimize compacts a Delta table: groups of small files of the same partition become one file each, of about the target size, without a
// change of any row (dataChange is false in the log, so that streams which read the table see nothing new). It is safe beside writers of any
// make: their appends don't disturb it, nor do deletions of rows where the table has deletion vectors: the new file gets one. Else, where another has removed a
// chosen file meanwhile, that group is dropped and looked at again. The old files stay until Vacuum, for readers of older versions.
//
// A group is written only if that makes it a whole file, or a file half as large again as its largest one: so a row is rewritten a
// few times in its life, however often Optimize runs. Rows keep their order, by the age of their files, unless SortBy is set.
//
// It may be interrupted at any time: what is committed stays, and what isn't are orphans for Vacuum.
func Optimize(ctx context.Context, place string, opts OptimizeOptions) (OptimizeResult, error) {
	store, err := openToRead(ctx, place)
	if err != nil {
		return OptimizeResult{}, err
	}
	return optimizeStore(ctx, store, opts)
}

func optimizeStore(ctx context.Context, store object.Store, opts OptimizeOptions) (OptimizeResult, error) {
	opts = opts.withDefaults()
	t, err := delta.Open(ctx, store, delta.Options{Now: opts.Now, Logger: opts.Logger})
	if err != nil {
		return OptimizeResult{}, err
	}
	o := &optimizer{table: t, opts: opts}
	return o.run(ctx)
}

func (o OptimizeOptions) withDefaults() OptimizeOptions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Parallel <= 0 {
		o.Parallel = min(runtime.GOMAXPROCS(0), maxParallel)
	}
	if o.Progress == nil {
		o.Progress = func(OptimizeResult) {}
	}
	return o
}

// optimizer is one run of Optimize.
type optimizer struct {
	table  *delta.Table
	opts   OptimizeOptions
	result OptimizeResult
	// claim, if set, gives a move that every commit carries, and is told when one has landed. See claim.
	claim *claim
}

func (o *optimizer) run(ctx context.Context) (OptimizeResult, error) {
	if err := o.table.Head().CheckWrite(); err != nil {
		return o.result, err
	}
	for range optimizePasses {
		p, err := o.plan(ctx)
		if err != nil {
			return o.result, err
		}
		o.result.Groups = o.result.Done + len(p.groups)
		o.opts.Progress(o.result)
		if o.opts.DryRun {
			o.countPlan(p)
			return o.result, nil
		}
		before := o.result.Conflicts
		if err := o.rewrite(ctx, p); err != nil {
			return o.result, err
		}
		if o.result.Conflicts == before {
			break
		}
	}
	o.result.Groups = o.result.Done
	o.opts.Progress(o.result)
	if o.result.Done == 0 && len(o.result.Left) > 0 {
		return o.result, fmt.Errorf("table %s: no file could be rewritten: %s", o.table.Store(), o.result.Left[0].Reason)
	}
	return o.result, nil
}

// countPlan fills in what would be done.
func (o *optimizer) countPlan(p *plan) {
	for _, g := range p.groups {
		o.result.FilesRemoved += len(g.files)
		o.result.BytesRemoved += g.size
		o.result.FilesAdded++
		for i := range g.files {
			n, _ := g.files[i].NumRecords()
			o.result.Rows += n
		}
	}
}

// errPlanAgain says that the table's columns changed while files were written.
var errPlanAgain = errors.New("the table's columns changed meanwhile")

// leave notes a group that stays as it is.
func (o *optimizer) leave(g *fileGroup, reason string) {
	l := LeftFiles{Reason: reason}
	for i := range g.files {
		l.Paths = append(l.Paths, g.files[i].Path)
	}
	o.result.Left = append(o.result.Left, l)
	o.opts.Logger.Warn("files are left as they are", "table", o.table.Store().String(), "files", len(l.Paths), "reason", reason)
}
