package s3_test

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/tributary-io/tributary/lake/iceberg"
	_ "github.com/tributary-io/tributary/lake/iceberg/s3"
	"github.com/tributary-io/tributary/lake/iceberg/sqlite"
	"github.com/tributary-io/tributary/lake/object/storetest"
	"github.com/tributary-io/tributary/lake/sink"
)

type play struct {
	ID string `lake:"id"`
}

// TestLandsOnS3 lands small batches and reads them, over few connections: left to themselves, 20 commits make 104.
func TestLandsOnS3(t *testing.T) {
	const commits, connections = 20, 50
	callers := &storetest.Callers{Handler: storetest.S3(t)}
	server := httptest.NewServer(callers)
	t.Cleanup(server.Close)
	catalog := sqlite.Named("default", filepath.Join(t.TempDir(), "catalog.db"), "s3://bucket/warehouse", map[string]string{
		"s3.endpoint": server.URL, "s3.region": "us-east-1", "s3.access-key-id": "key", "s3.secret-access-key": "secret"})
	land(t, iceberg.Table("streaming.plays", catalog), commits)

	var got []string
	for row, err := range iceberg.ReadRows(t.Context(), "streaming.plays", catalog) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row["id"].(string))
	}
	slices.Sort(got)
	if len(got) != commits || got[0] != "play 0" || len(slices.Compact(got)) != commits {
		t.Errorf("read %v", got)
	}
	if n := callers.Count(); n > connections {
		t.Errorf("%d connections for %d commits, want at most %d", n, commits, connections)
	}
}

// land commits batches of one row each.
func land(t *testing.T, table sink.Sink, commits int64) {
	t.Helper()
	if err := table.Bind(reflect.TypeFor[string](), reflect.TypeFor[play]()); err != nil {
		t.Fatal(err)
	}
	w, err := table.Open(t.Context(), sink.Env{ApplicationID: "player", Name: "plays"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	at, key := sink.NoOffset, "session"
	for n := range commits {
		batch := w.NewBatch()
		if err := batch.Append(&key, &play{fmt.Sprint("play ", n)}, &sink.Meta{Topic: "plays", Offset: n}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(t.Context(), batch, []sink.Move{{Partition: sink.Partition{Topic: "plays"}, From: at, To: n + 1}}); err != nil {
			t.Fatal(err)
		}
		batch.Release()
		at = n + 1
	}
}
