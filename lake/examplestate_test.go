package lake_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/sink"
)

// Enrollment is a change in a source database: its position in the source's log says which of two is the newer.
type Enrollment struct {
	Learner string   `lake:"learner"`
	Course  string   `lake:"course"`
	Op      string   `lake:"op"`
	Status  string   `lake:"status"`
	LSN     lake.LSN `lake:"source_lsn"` // written as 16/B374D848, compared as a number
}

// A stream of changes ends in a table of current state: one row for each learner in each course. Changes come in any order.
func ExampleCurrentState() {
	dir, err := os.MkdirTemp("", "lake")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	table := lake.Delta(dir,
		lake.CurrentState("learner", "course"),
		lake.OrderBy("source_lsn"),
		lake.DeleteWhere("op", "delete"))
	if err := table.Bind(reflect.TypeFor[string](), reflect.TypeFor[Enrollment]()); err != nil {
		panic(err)
	}
	ctx := context.Background()
	w, err := table.Open(ctx, sink.Env{ApplicationID: "school", Name: "cohort", Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		panic(err)
	}
	defer w.Close()

	from := sink.Partition{Topic: "enrollments"}
	at := sink.NoOffset
	land := func(changes ...Enrollment) { // the engine does this
		batch := w.NewBatch()
		defer batch.Release()
		for i := range changes {
			if err := batch.Append(nil, &changes[i], &sink.Meta{Topic: "enrollments"}); err != nil {
				panic(err)
			}
		}
		to := max(at, 0) + int64(len(changes))
		if _, err := w.Commit(ctx, batch, []sink.Move{{Partition: from, From: at, To: to}}); err != nil {
			panic(err)
		}
		at = to
		var rows []string
		for row, err := range lake.ReadRows(ctx, dir) {
			if err != nil {
				panic(err)
			}
			rows = append(rows, fmt.Sprint(row["learner"], " ", row["status"], " ", row["source_lsn"]))
		}
		fmt.Println(strings.Join(rows, "; "))
	}
	land(Enrollment{"ada", "go", "upsert", "active", 0x10_00000000}, Enrollment{"bob", "go", "upsert", "active", 0x10_00000008})
	land(Enrollment{"ada", "go", "upsert", "invited", 0x9_FFFFFFFF}) // late: 9/FFFFFFFF is before 10/0
	land(Enrollment{"bob", "go", "delete", "", 0x10_00000010})
	land(Enrollment{"bob", "go", "upsert", "paused", 0x10_0000000C}) // late: older than the deletion
	// Output:
	// ada active 10/0; bob active 10/8
	// ada active 10/0; bob active 10/8
	// ada active 10/0
	// ada active 10/0
}
