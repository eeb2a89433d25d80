package delta

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tributary-io/tributary/lake/object"
)

// VacuumOptions say how Vacuum works.
type VacuumOptions struct {
	// Retention is how long a file stays after it was removed from the table, so that readers of older versions find it. 0 means the table's
	// property delta.deletedFileRetentionDuration, and a week without that.
	Retention time.Duration
	// Force allows a retention shorter than that. Readers of older versions, and engines that plan now and read later, may then miss files.
	Force bool
	// InFlight is how old a file must be, whatever the retention, before it counts as an orphan if no version names it: it must be longer than
	// any writer takes from a file to the commit that names it, retries included. 0 means a day.
	InFlight time.Duration
	// DryRun only counts what would be deleted.
	DryRun bool
	// Progress, if set, is called now and then, and at the end, one call at a time.
	Progress func(VacuumResult)
	// Deleted, if set, is called with the name of each file that is deleted, or would be; one call at a time.
	Deleted func(name string)
}

// VacuumResult is what Vacuum has found and done, or has so far.
type VacuumResult struct {
	Version   int64 // of the table that was looked at
	Listed    int   // objects in the table's folder
	Live      int   // data files and deletion vectors that the version, or one within the retention, names
	Removed   int   // files deleted that the table has removed
	Orphans   int   // files deleted that no version names
	Spared    int   // files that no version names, but young enough that one may yet
	Bytes     int64 // of the deleted files
	Sidecars  int   // sidecars of V2 checkpoints deleted that no checkpoint names
	Temporary int   // temporary files deleted that crashes left behind, on local disk
}

// RetentionError says that a vacuum would delete files that readers may still need.
type RetentionError struct {
	Table       string
	Want, Least time.Duration
}

func (e *RetentionError) Error() string {
	return fmt.Sprintf("table %s: a retention of %v is shorter than the %v that the table promises to readers of older versions; force it only if there are none",
		e.Table, e.Want, e.Least)
}

const (
	defaultInFlight = 24 * time.Hour
	vacuumParallel  = 16
	vacuumReport    = 1000 // files between two reports
)

// Vacuum deletes data files and deletion vectors that no version within the retention names: those that the table has removed longer ago,
// and orphans of writers that crashed or lost a race. It lists the files before it reads what is named, so that whatever is committed
// meanwhile is known to be named; and it is safe beside writers of any make as long as none of them takes longer than InFlight from a file
// to its commit. Names that begin with "_" or "." are left alone, but for change data, sidecars that no checkpoint names, and temporary files.
//
// It refuses what it can't know: a table with features that it doesn't know (*UnsupportedError), and a retention that is too short
// (*RetentionError).
func (t *Table) Vacuum(ctx context.Context, o VacuumOptions) (VacuumResult, error) {
	head, err := t.Refresh(ctx)
	if err != nil {
		return VacuumResult{}, err
	}
	if bad := append(head.Protocol.checkRead(), head.Protocol.checkWrite()...); len(bad) > 0 {
		return VacuumResult{}, &UnsupportedError{head.table, "vacuum", bad, "vacuum it with an engine that has them"}
	}
	least := head.Metadata.Interval(propFileRetention, defaultFileRetention)
	if o.Retention == 0 && !o.Force {
		o.Retention = least
	}
	if o.Retention < least && !o.Force {
		return VacuumResult{}, &RetentionError{head.table, o.Retention, least}
	}
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	v := &vacuum{table: t, opts: o, now: t.opts.Now(), promised: least}
	return v.run(ctx)
}

// vacuum is one run.
type vacuum struct {
	table    *Table
	opts     VacuumOptions
	now      time.Time
	promised time.Duration // the table's own retention
	result   VacuumResult

	listed map[string]object.Info // candidates by name
	names  map[string]bool        // of the files that must stay
	gone   map[string]bool        // of files that the table has removed, and that may go
}

func (v *vacuum) run(ctx context.Context) (VacuumResult, error) {
	if err := v.list(ctx); err != nil {
		return v.result, v.table.wrap(fmt.Errorf("vacuum: %w", err))
	}
	if err := v.read(ctx); err != nil {
		return v.result, fmt.Errorf("vacuum: %w", err)
	}
	err := v.remove(ctx, v.choose())
	if err == nil {
		err = v.table.sweepSidecars(ctx, v.opts.DryRun, func(info object.Info) {
			v.result.Sidecars++
			v.result.Bytes += info.Size
			if v.opts.Deleted != nil {
				v.opts.Deleted(info.Name)
			}
		})
	}
	if err == nil && !v.opts.DryRun {
		v.result.Temporary = v.table.sweepTemp()
	}
	v.report()
	return v.result, v.table.wrap(err)
}

func (v *vacuum) report() {
	if v.opts.Progress != nil {
		v.opts.Progress(v.result)
	}
}

// list finds all files that may be the table's data.
func (v *vacuum) list(ctx context.Context) error {
	v.listed = map[string]object.Info{}
	after, atLog := "", true
	for atLog {
		atLog = false
		for info, err := range v.table.store.List(ctx, "", after) {
			if err != nil {
				return err
			}
			if strings.HasPrefix(info.Name, logDir) { // which may have more files than the table: go on behind it
				after, atLog = logDir+"\x7f", true
				break
			}
			if isHidden(info.Name) {
				continue
			}
			v.listed[info.Name] = info
			if v.result.Listed++; v.result.Listed%(10*vacuumReport) == 0 {
				v.report()
			}
		}
	}
	return nil
}

// isHidden says whether a name is none of a vacuum's business, as the reference implementation has it: a part of it begins with "." or "_",
// unless that is a folder of a partition column or of change data.
func isHidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") || strings.HasPrefix(part, "_") && !strings.Contains(part, "=") && part != "_change_data" {
			return true
		}
	}
	return false
}

// read finds what the versions within the retention name.
func (v *vacuum) read(ctx context.Context) error {
	v.names, v.gone = map[string]bool{}, map[string]bool{}
	s, err := v.table.Snapshot(ctx)
	if err != nil {
		return err
	}
	v.result.Version = s.Head.Version
	since := v.now.Add(-v.opts.Retention)
	err = s.replay(ctx, func(a *action) error {
		switch {
		case a.add != nil:
			return v.keep(a.add.Path, a.add.DeletionVector)
		case a.remove != nil && a.remove.DeletionTimestamp > since.UnixMilli():
			return v.keep(a.remove.Path, a.remove.DeletionVector)
		case a.remove != nil:
			v.expired(a.remove)
		}
		return nil
	})
	if err != nil {
		return v.table.wrap(err)
	}
	if v.opts.Retention <= v.promised {
		return nil
	}
	return v.readLog(ctx, since)
}

// readLog finds what was removed longer ago than the table promises, which checkpoints don't tell, but the caller wants kept.
func (v *vacuum) readLog(ctx context.Context, since time.Time) error {
	l, err := listLog(ctx, v.table.store, 0)
	if err != nil {
		return v.table.wrap(err)
	}
	recent := l.commits
	for len(recent) > 0 && recent[0].modified.Before(since) {
		recent = recent[1:]
	}
	return v.table.wrap(fetch(ctx, v.table.store, recent, func(f logFile, data []byte) error {
		return eachAction(data, func(a action) error {
			if a.remove != nil {
				return v.keep(a.remove.Path, a.remove.DeletionVector)
			}
			return nil
		})
	}))
}

// keep notes that a file must stay, and its deletion vector.
func (v *vacuum) keep(path string, dv *DeletionVector) error {
	switch {
	case isAbsolute(path):
		v.keepAbsolute(path)
	default:
		name, err := (&Add{Path: path}).Name()
		if err != nil {
			return err // what can't be read can't be kept
		}
		v.names[name] = true
	}
	switch {
	case dv == nil || dv.StorageType == vectorInline:
	case dv.StorageType == vectorAbsolute:
		v.keepAbsolute(dv.PathOrInlineDv)
	default:
		file, err := dv.File()
		if err != nil {
			return fmt.Errorf("deletion vector of %s: %w", path, err)
		}
		v.names[file] = true
	}
	return nil
}

// vectorAbsolute is the storage type of deletion vectors at absolute paths.
const vectorAbsolute = "p"

// keepAbsolute keeps a file that is named by an absolute path. It may lie in this table all the same, and this package can't tell where the
// table's folder is in it: all names that it may mean stay.
func (v *vacuum) keepAbsolute(path string) {
	path = canonicalPath(path)
	for i := range path {
		if path[i] == '/' {
			v.names[path[i+1:]] = true
		}
	}
}

// expired notes that a file may go, and its deletion vector, unless something else names them.
func (v *vacuum) expired(r *Remove) {
	if name, err := (&Add{Path: r.Path}).Name(); err == nil {
		v.gone[name] = true
	}
	if file, err := r.DeletionVector.File(); err == nil && file != "" {
		v.gone[file] = true
	}
}

// choose returns the names of the files to delete.
func (v *vacuum) choose() (out []string) {
	orphanBefore := v.now.Add(-max(v.opts.Retention, v.opts.InFlight))
	for name, info := range v.listed {
		switch {
		case v.names[name]:
			v.result.Live++
			continue
		case v.gone[name]:
			v.result.Removed++
		case info.Modified.Before(orphanBefore):
			v.result.Orphans++
		default:
			v.result.Spared++
			continue
		}
		v.result.Bytes += info.Size
		out = append(out, name)
	}
	return out
}

// remove deletes files, many at once.
func (v *vacuum) remove(ctx context.Context, names []string) error {
	for start := 0; start < len(names); start += vacuumReport {
		chunk := names[start:min(start+vacuumReport, len(names))]
		if !v.opts.DryRun {
			g, ctx := errgroup.WithContext(ctx)
			g.SetLimit(vacuumParallel)
			for _, name := range chunk {
				g.Go(func() error { return v.table.store.Delete(ctx, name) })
			}
			if err := g.Wait(); err != nil {
				return fmt.Errorf("vacuum, stopped: %w", err)
			}
		}
		for _, name := range chunk {
			if v.opts.Deleted != nil {
				v.opts.Deleted(name)
			}
		}
		v.report()
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
