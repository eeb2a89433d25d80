package iceberg

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/iceberg-go/table"
)

// Orphans says what RemoveOrphans has found.
type Orphans struct {
	Files int   // that no version of the table refers to
	Bytes int64 // of these
}

// RemoveOrphans deletes the files of a table that no version of it refers to: what writers left that were killed between writing
// files and committing them, or whose commit had no clear outcome. Files younger than minAge are spared, which must be more than
// the longest that any writer takes from its first file to its commit; at least an hour. dryRun only counts.
func RemoveOrphans(ctx context.Context, name string, c Catalog, minAge time.Duration, dryRun bool) (Orphans, error) {
	if minAge < time.Hour {
		return Orphans{}, fmt.Errorf("table %s: files younger than an hour may belong to a commit on its way; %v is too little", name, minAge)
	}
	return removeOrphans(ctx, name, c, minAge, dryRun)
}

func removeOrphans(ctx context.Context, name string, c Catalog, minAge time.Duration, dryRun bool) (out Orphans, err error) {
	t, done, err := load(ctx, name, c)
	if err != nil {
		return out, err
	}
	defer done()
	r, err := t.DeleteOrphanFiles(ctx, table.WithFilesOlderThan(minAge), table.WithDryRun(dryRun))
	if err != nil {
		return out, fmt.Errorf("table %s: orphans: %w", name, err)
	}
	return Orphans{Files: len(r.OrphanFiles), Bytes: r.TotalSizeBytes}, nil
}
