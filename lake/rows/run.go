package rows

import "github.com/tributary-io/tributary/lake/columns"

// Names of the columns of the run, which landed the row.
const (
	CreatedAt  = "_ods_created_at"  // timestamp: when the row was made, by the clock of the instance that landed it
	ModifiedAt = "_ods_modified_at" // timestamp: when it was last changed; the same, since landed rows never change
	RunID      = "_ods_run_id"      // string: what landed it
)

func runFields() []columns.Field {
	f := func(name string, k columns.Kind, comment string) columns.Field {
		return columns.Field{Name: name, Type: columns.Type{Kind: k}, Comment: comment}
	}
	return []columns.Field{
		f(CreatedAt, columns.Timestamp, "when the row was made in this table, UTC"),
		f(ModifiedAt, columns.Timestamp, "when the row was last changed in this table, UTC"),
		f(RunID, columns.String, "what landed the row"),
	}
}

// fillRun appends the run's columns; at is the batch's time in microseconds.
func (l *Layout) fillRun(b *columns.Builder, at int64) {
	c := b.Columns()[l.runAt:]
	c[0].AppendInt64(at)
	c[1].AppendInt64(at)
	c[2].AppendString(l.runID)
}
