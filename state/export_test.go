package state

import "github.com/cockroachdb/pebble/v2/vfs"

// UseMemFS makes the databases opened with r live in memory, so that tests that open many of them don't wait for the disk.
func (r *Resources) UseMemFS() { r.fs = vfs.NewMem() }
