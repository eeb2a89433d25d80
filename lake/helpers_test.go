package lake

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/internal/sinktest"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		sinktest.ExitUnless(landSome(dir, 1<<40))
		return
	}
	if place := os.Getenv(soakVariable); place != "" {
		soakUntilKilled(place, soakRows)
		return
	}
	if place := os.Getenv(stateSoakVariable); place != "" {
		soakUntilKilled(place, changeRows)
		return
	}
	if dir := os.Getenv(soakCompactVariable); dir != "" {
		sinktest.ExitUnless(compactUntilKilled(dir))
		return
	}
	if dir := os.Getenv(childStateVariable); dir != "" {
		sinktest.ExitUnless(changeSome(dir, 1<<40))
		return
	}
	leaks.Main(m)
}

var ctx = context.Background()

// The topic's partitions, their progress, and refusals, as in the tests of all table formats.
var part, move, wantRefused = sinktest.Part, sinktest.Move, sinktest.WantRefused

func testEnv() sink.Env {
	return sink.Env{ApplicationID: "app", Name: "orders-sink", Logger: slog.New(slog.DiscardHandler), Now: time.Now}
}

// openSink binds and opens a sink of K and V.
func openSink[K, V any](t testing.TB, s sink.Sink) sink.Writer {
	t.Helper()
	w, err := tryOpen[K, V](s, testEnv())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func tryOpen[K, V any](s sink.Sink, env sink.Env) (sink.Writer, error) {
	return sinktest.Open[K, V](ctx, s, env)
}

// meta is the origin of a row at an offset of partition 0.
func meta(offset int64) *sink.Meta {
	return &sink.Meta{Topic: "orders", Offset: offset, Timestamp: 1780000000000 + offset, BrokerTimestamp: 1780000000123 + offset}
}

// land appends rows with keys "k0", "k1", … from an offset on and commits them.
func land[V any](t testing.TB, w sink.Writer, from int64, rows ...V) sink.Commit {
	t.Helper()
	b := w.NewBatch()
	defer b.Release()
	for i := range rows {
		key := fmt.Sprint("k", from+int64(i))
		if err := b.Append(&key, &rows[i], meta(from+int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	start := from
	if from == 0 {
		start = sink.NoOffset
	}
	c, err := w.Commit(ctx, b, []sink.Move{move(0, start, from+int64(len(rows)))})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// allRows reads a table by our own reader.
func allRows(t testing.TB, store object.Store) (rows []Row) {
	t.Helper()
	for r, err := range readStore(ctx, store, store.String()) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// texts returns a column's values as sorted texts.
func texts(rows []Row, column string) (out []string) {
	for _, r := range rows {
		out = append(out, fmt.Sprint(r[column]))
	}
	slices.Sort(out)
	return out
}

// logEntries counts the versions of a table.
func logEntries(t testing.TB, store object.Store) (n int) {
	t.Helper()
	for info, err := range store.List(ctx, "_delta_log/", "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(info.Name, ".json") && !strings.Contains(info.Name, "checkpoint") {
			n++
		}
	}
	return n
}

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// statsOf returns the statistics of the first file that a log entry adds.
func statsOf(t testing.TB, entry []byte) json.RawMessage {
	t.Helper()
	for line := range strings.SplitSeq(string(entry), "\n") {
		var a struct{ Add *struct{ Stats string } }
		if err := json.Unmarshal([]byte(line), &a); err == nil && a.Add != nil {
			return json.RawMessage(a.Add.Stats)
		}
	}
	t.Fatal("the log entry adds no file")
	return nil
}
