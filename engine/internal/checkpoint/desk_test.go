package checkpoint

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// A checkpoint stays while its checksums are waited for, which a fetcher of before ?sums=later does ahead of the first file.
func TestStaysWhileItIsSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take := func(task, dir string) (*Manifest, error) {
			return &Manifest{Task: task}, os.CopyFS(dir, fstest.MapFS{"000004.sst": {Data: []byte("table")}})
		}
		d, err := NewDesk(DeskConfig{Dir: t.TempDir(), Fresh: time.Hour, Idle: time.Minute, Log: slog.New(slog.DiscardHandler), Take: take})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		k, err := d.take("1_2")
		if err != nil {
			t.Fatal(err)
		}
		d.summing.Wait()
		sums := k.whole
		k.whole = func() (*Manifest, error) {
			time.Sleep(5 * time.Minute)
			return sums()
		}
		r := httptest.NewRequest(http.MethodGet, "/checkpoints/1_2", nil)
		r.SetPathValue("task", "1_2")
		w := httptest.NewRecorder()
		d.ServeManifest(w, r)
		if kept := d.use("1_2", k.manifest.ID); w.Code != http.StatusOK || kept == nil {
			t.Errorf("answered %d, kept %v: want it to be there for its files", w.Code, kept != nil)
		}
	})
}
