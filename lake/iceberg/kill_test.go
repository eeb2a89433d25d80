package iceberg_test

import (
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/iceberg"
	"github.com/tributary-io/tributary/lake/icebergreaders"
	"github.com/tributary-io/tributary/lake/sink"
)

// childVariable names the folder that a child process of the test lands rows in.
const childVariable = "ICEBERG_TEST_LANDS_IN"

// landSome lands rows from the table's progress on, a random number at a time, until an offset.
func landSome(dir string, until int64) error {
	s := iceberg.Table("db.t", place{dir}.catalog(), iceberg.PartitionBy(iceberg.Bucket(2, "o")))
	w, err := tryOpen[string, numbered](s)
	if err != nil {
		return err
	}
	defer w.Close()
	return sinktest.Advance(w, part(0), until, 20, func(b sink.Batch, o int64) error {
		return b.Append(nil, &numbered{O: o, S: "s"}, &sink.Meta{Offset: o})
	})
}

// TestKill9 kills a landing process again and again, at any moment. Every offset up to the table's progress has its row, once.
func TestKill9(t *testing.T) {
	p := newPlace(t)
	at := sink.NoOffset
	sinktest.KillLoop(t, 8, childVariable, p.dir, 200*time.Millisecond, 600*time.Millisecond, func() bool {
		at = progress(t, openSink[string, numbered](t, iceberg.Table("db.t", p.catalog())), 0)
		return at != sink.NoOffset
	})
	if err := landSome(p.dir, at+100); err != nil {
		t.Fatal(err)
	}
	wantOnce(t, icebergreaders.Open(t).Table(t, p.readers(), "db.t"), 1, at+100)
	o, err := iceberg.RemoveOrphansNow(ctx, "db.t", p.catalog())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows landed, and %d orphans of killed processes removed", at+100, o.Files)
	wantOnce(t, icebergreaders.Open(t).Table(t, p.readers(), "db.t"), 1, at+100)
}
