package lake

import (
	"context"

	"github.com/tributary-io/tributary/lake/delta"
)

// VacuumOptions say how Vacuum works. The zero value keeps what readers of older versions may need, as long as the table promises.
type VacuumOptions = delta.VacuumOptions

// VacuumResult is what Vacuum has found and done.
type VacuumResult = delta.VacuumResult

// RetentionError is what Vacuum returns for a retention that is shorter than the table promises, unless it is forced.
type RetentionError = delta.RetentionError

// Vacuum deletes the files of a Delta table that no version within the retention needs: those that compaction, updates and deletes have removed
// longer ago than that (a week, or the table's delta.deletedFileRetentionDuration), and orphans of batches that did not land. Files that no
// version names are spared while they are younger than the longest batch may take (a day unless VacuumOptions.InFlight says otherwise). It is
// safe beside writers and readers of any make, and may be interrupted at any time. See delta.Table.Vacuum.
func Vacuum(ctx context.Context, place string, opts VacuumOptions) (VacuumResult, error) {
	store, err := openToRead(ctx, place)
	if err != nil {
		return VacuumResult{}, err
	}
	t, err := delta.Open(ctx, store, delta.Options{})
	if err != nil {
		return VacuumResult{}, err
	}
	return t.Vacuum(ctx, opts)
}
