package land

import (
	"context"
	"reflect"

	"github.com/tributary-io/tributary/lake"
)

// ownProperties is the prefix of the properties that tables have of their streams.
const ownProperties = "ods."

// Rewrite makes the metadata of a stream's table what the configuration declares: comments, tags and properties that were dropped from it go. Without
// execute it only looks. Instances may run meanwhile.
func Rewrite(ctx context.Context, cfg Config, stream *Stream, execute bool) (*lake.Rewritten, error) {
	table := cfg.table(stream, harnessed{}, 0)
	if err := table.Bind(reflect.TypeFor[[]byte](), reflect.TypeFor[[]byte]()); err != nil {
		return nil, err
	}
	return lake.Rewrite(ctx, table, lake.RewriteOptions{Properties: ownProperties, Execute: execute})
}
