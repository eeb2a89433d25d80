package land

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/verify"
	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/schemas"
)

// stamped makes a table with in-commit timestamps in the place of a stream's.
func (w *world) stamped(t *testing.T, s *Stream, at time.Time) {
	t.Helper()
	log := filepath.Join(w.cfg.TablePlace(s), "_delta_log")
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	for _, action := range []map[string]any{
		{"commitInfo": map[string]any{"timestamp": at.UnixMilli(), "inCommitTimestamp": at.UnixMilli(), "operation": "CREATE TABLE", "operationParameters": map[string]any{}}},
		{"protocol": map[string]any{"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": []string{"inCommitTimestamp"}}},
		{"metaData": map[string]any{"id": "0b9f6a0e-57f2-4c0e-8f0a-2f9f3c1b7d11", "format": map[string]any{"provider": "parquet", "options": map[string]any{}}, "partitionColumns": []string{},
			"schemaString":  `{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}`,
			"configuration": map[string]string{"delta.enableInCommitTimestamps": "true"}}},
	} {
		if err := e.Encode(action); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(log, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(log, "00000000000000000000.json"), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// inCommitTimestamps are those of a table's commits, in their order.
func (w *world) inCommitTimestamps(t *testing.T, s *Stream) (all []int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(w.cfg.TablePlace(s), "_delta_log", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := bytes.Cut(text, []byte("\n"))
		var action struct {
			CommitInfo struct{ InCommitTimestamp int64 }
		}
		if err := json.Unmarshal(first, &action); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, action.CommitInfo.InCommitTimestamp)
	}
	return all
}

// TestClocksJump lands while the instance's clock and the records' times jump back and forth, over a restart: each row lands once, no batch
// waits for the clock to come back to where it was, and in-commit timestamps only grow.
func TestClocksJump(t *testing.T) {
	w := newWorld(t, nil, "")
	s, err := Of(schemas.Stream{Topic: "ods.shop.clocks", Schema: small, Partitions: 1, Timestamps: schemas.CreateTime})
	if err != nil {
		t.Fatal(err)
	}
	var jump atomic.Int64
	clock := func() time.Time { return time.Unix(0, time.Now().UnixNano()+jump.Load()) } // without a monotonic part, unlike time.Now
	w.cfg.Clock, w.cfg.Streams = clock, []Stream{s}
	w.stamped(t, &s, clock())
	_, stop := w.start(t)
	id := w.id(t, &s)
	rows := 0
	for i, hours := range []time.Duration{0, -2, 5, -48, 3, -1} {
		if i == 3 { // an instance that starts with its clock behind what the table says
			stop()
		}
		at := clock()
		for n := range int64(20) {
			if n == 10 { // while a batch is open
				jump.Store(int64(hours * time.Hour))
				at = clock()
			}
			r := &kgo.Record{Topic: s.Topic, Timestamp: at, Value: smallValue(id, int64(rows)+n)}
			if err := w.client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		rows += 20
		if i == 3 {
			_, stop = w.start(t)
		}
		eventually(t, "landed", func() bool { return len(w.rows(t, &s)) >= rows })
	}
	stop()
	r, err := verify.Table(t.Context(), verify.Config{Table: w.cfg.TablePlace(&s), Topic: s.Topic, DeadLetters: s.DeadLetters, Client: []kgo.Opt{kgo.SeedBrokers(w.cfg.Brokers...)}})
	if err != nil || !r.OK() || r.Records != int64(rows) {
		t.Errorf("verify: %+v, %v", r, err)
	}
	ids := map[any]lake.Row{}
	for _, row := range w.rows(t, &s) {
		ids[row["id"]] = row
	}
	if len(ids) != rows {
		t.Errorf("%d different rows, want %d", len(ids), rows)
	}
	stamps := w.inCommitTimestamps(t, &s)
	if len(stamps) < 6 || !slices.IsSortedFunc(stamps, func(a, b int64) int { return int(min(1, a-b+1)) }) {
		t.Errorf("in-commit timestamps that don't grow: %v", stamps)
	}
}

// TestNoticesOutliveAWrongClock gives a notice although the table's last one is of a time that has not come yet.
func TestNoticesOutliveAWrongClock(t *testing.T) {
	w := newWorld(t, nil, "")
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	w.cfg.Clock = func() time.Time { return now }
	status := func(landed int64) []StreamStatus {
		return []StreamStatus{{Topic: "a", Table: "raw/a", TableVersion: landed, Partitions: []PartitionStatus{{Landed: landed}}}}
	}
	for _, step := range []struct {
		landed int64
		at     time.Time
	}{{5, now.AddDate(1, 0, 0)}, {9, now}, {12, now.Add(2 * time.Hour)}} {
		now = step.at
		n := newNotifier(&w.cfg)
		if err := n.tell(t.Context(), status(step.landed)); err != nil {
			t.Fatal(err)
		}
		if n.before["a"] != step.landed {
			t.Errorf("at %v no notice was given of what had landed up to %d", step.at, step.landed)
		}
		if err := n.close(); err != nil {
			t.Error(err)
		}
	}
}
