package lake

import (
	"errors"

	"github.com/tributary-io/tributary/lake/rows"
)

// Names of the columns that RunColumns adds.
const (
	CreatedAt  = rows.CreatedAt  // timestamp: when the row was made, by the clock of the instance that landed it
	ModifiedAt = rows.ModifiedAt // timestamp: when it was last changed; the same, since landed rows never change
	RunID      = rows.RunID      // string: what landed it
)

// RunColumns adds the columns _ods_created_at, _ods_modified_at and _ods_run_id behind all others, as the platform's tables have
// them. All rows of a batch have the same times, those of the batch's first row. runID names what lands the rows, such as
// "stream:orders"; each commit's record has it, too, as "run".
func RunColumns(runID string) Option {
	return func(o *options) {
		if runID == "" {
			o.errs = append(o.errs, errors.New("RunColumns: the run has no name"))
		}
		o.RunID = runID
	}
}
