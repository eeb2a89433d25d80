package lake

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// TestOthersWriteTheTableToo lets delta-rs append to, compact and checkpoint the table between and during our batches.
func TestOthersWriteTheTableToo(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	w := openSink[string, order](t, Delta(dir))
	for i := range int64(4) {
		land(t, w, i, order{ID: fmt.Sprint("ours-", i), Amount: float64(i)})
	}
	b := w.NewBatch()
	row := order{ID: "ours-4"}
	if err := b.Append(nil, &row, meta(4)); err != nil {
		t.Fatal(err)
	}
	r.Python(t, dir, `
dt = deltalake.DeltaTable(table)
deltalake.write_deltalake(dt, pa.table({"id": ["theirs"], "amount": [9.5], "note": pa.array([None], pa.string())}), mode="append")
dt = deltalake.DeltaTable(table)
dt.optimize.compact()
dt.create_checkpoint()
out = dt.version()
`, nil)
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, 4, 5)}); err != nil {
		t.Fatal(err)
	}
	b.Release()
	land(t, w, 5, order{ID: "ours-5"})
	want := "[ours-0 ours-1 ours-2 ours-3 ours-4 ours-5 theirs]"
	if got := fmt.Sprint(texts(allRows(t, store), "id")); got != want {
		t.Errorf("our reader finds %s, want %s", got, want)
	}
	d := r.DeltaRS(t, dir, readers.Query("select id from t order by id"))
	if len(d.Rows) != 7 {
		t.Errorf("delta-rs finds %d rows", len(d.Rows))
	}
	info, err := Show(ctx, dir, 100)
	if err != nil || info.Rows != 7 || len(info.Progress) != 1 || info.Progress[0].Next != 6 {
		t.Errorf("%+v, %v", info, err)
	}
	// A sink that starts anew reads the same progress from what they left.
	again := openSink[string, order](t, Delta(dir))
	got, err := again.Progress(ctx, []sink.Partition{part(0)})
	if err != nil || got[part(0)] != 6 {
		t.Errorf("progress after all that: %v, %v", got, err)
	}
}

// TestUpkeep commits past the checkpoint interval: checkpoints and checksums appear, and the table opens by them.
func TestUpkeep(t *testing.T) {
	r := readers.Open(t)
	dir, store := localStore(t)
	s := Delta(dir, Properties(map[string]string{"delta.checkpointInterval": "10"}))
	w, err := tryOpen[string, order](s, testEnv())
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(25) {
		land(t, w, i, order{ID: fmt.Sprint(i)})
	}
	if err := w.Close(); err != nil { // waits for the rounds that are due
		t.Fatal(err)
	}
	checkpoints, checksums := 0, 0
	for info, err := range store.List(ctx, "_delta_log/", "") {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(info.Name, ".checkpoint.parquet"):
			checkpoints++
		case strings.HasSuffix(info.Name, ".crc"):
			checksums++
		}
	}
	if checkpoints == 0 || checksums == 0 {
		t.Errorf("%d checkpoints and %d checksums after 25 commits", checkpoints, checksums)
	}
	if d := r.DeltaRS(t, dir); d.Count != 25 {
		t.Errorf("delta-rs finds %d rows", d.Count)
	}
}

// TestUpkeepFailuresAreLoggedOnly breaks everything but the commits.
func TestUpkeepFailuresAreLoggedOnly(t *testing.T) {
	inner := object.NewMemory("t")
	faulty := &object.Faulty{Inner: inner, Plan: func(c object.Call) object.Fault {
		if strings.HasSuffix(c.Name, ".crc") || strings.Contains(c.Name, "checkpoint") {
			return object.Fail
		}
		return object.NoFault
	}}
	var lines strings.Builder
	env := testEnv()
	env.Logger = textLogger(&lines)
	w, err := tryOpen[string, order](Delta("mem", Store(faulty), Properties(map[string]string{"delta.checkpointInterval": "2"})), env)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(6) {
		land(t, w, i, order{ID: fmt.Sprint(i)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if rows := allRows(t, inner); len(rows) != 6 {
		t.Errorf("%d rows, want 6", len(rows))
	}
	if !strings.Contains(lines.String(), "upkeep") {
		t.Errorf("nothing is logged: %s", lines.String())
	}
}

// TestStoreWithoutConditionIsRefused opens a sink on a store that overwrites.
func TestStoreWithoutConditionIsRefused(t *testing.T) {
	faulty := &object.Faulty{Inner: object.NewMemory("t"), Plan: func(c object.Call) object.Fault { return object.StaleWins }}
	_, err := tryOpen[string, order](Delta("mem", Store(faulty)), testEnv())
	wantRefused(t, err, "put only if absent")
}

// TestFullDiskLandsNothing runs out of space in each step of a commit; once there is space, the same batch lands.
func TestFullDiskLandsNothing(t *testing.T) {
	for _, op := range []object.Op{object.OpCreate, object.OpWrite, object.OpClose, object.OpSync, object.OpPutIfAbsent} {
		inner := object.NewMemory("t")
		full := false
		faulty := &object.Faulty{Inner: inner, Plan: func(c object.Call) object.Fault {
			if full && c.Op == op {
				return object.NoSpace
			}
			return object.NoFault
		}}
		w := openSink[string, order](t, Delta("mem", Store(faulty), func(o *options) { o.inlineUpkeep = true }))
		b := w.NewBatch()
		row := order{ID: "x"}
		if err := b.Append(nil, &row, meta(0)); err != nil {
			t.Fatal(err)
		}
		full = true
		moves := []sink.Move{move(0, sink.NoOffset, 1)}
		if _, err := w.Commit(ctx, b, moves); err == nil || !strings.Contains(err.Error(), "space") {
			t.Errorf("%s: %v", op, err)
		}
		if rows := allRows(t, inner); len(rows) != 0 {
			t.Errorf("%s: %d rows landed", op, len(rows))
		}
		full = false
		if _, err := w.Commit(ctx, b, moves); err != nil {
			t.Errorf("%s: %v", op, err)
		}
		b.Release()
		if rows := allRows(t, inner); len(rows) != 1 {
			t.Errorf("%s: %d rows, want 1", op, len(rows))
		}
	}
}

// topicSource is a registry in which the producer's schema moves on.
type topicSource map[int]string

func (s topicSource) SchemaByID(id int) (WriterSchema, error) {
	if text, ok := s[id]; ok {
		return WriterSchema{Schema: text}, nil
	}
	return WriterSchema{}, fmt.Errorf("%w: %d", ErrUnknownSchema, id)
}

// TestAvroProducersMoveOn lands records of three schema versions in one table of the declared one.
func TestAvroProducersMoveOn(t *testing.T) {
	record := func(fields string) string { return `{"type":"record","name":"R","fields":[` + fields + `]}` }
	src := topicSource{
		1: record(`{"name":"id","type":"int"}`),
		2: record(`{"name":"more","type":"string"},{"name":"id","type":"long"},{"name":"note","type":["null","string"]}`),
		3: record(`{"name":"id","type":"string"}`),
	}
	store := object.NewMemory("t")
	w := openSink[string, []byte](t, Delta("mem", Store(store), KeyColumn("key"), SourceColumns(),
		AvroValue(record(`{"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}`), src)))
	b := w.NewBatch()
	defer b.Release()
	key := "k"
	for i, c := range []struct {
		value []byte
		fails string
	}{
		{[]byte{0, 0, 0, 0, 1, 2}, ""}, {[]byte{0, 0, 0, 0, 2, 2, 'm', 4, 2, 2, 'n'}, ""}, {[]byte{0, 0, 0, 0, 3, 2, 'x'}, "id"},
		{[]byte{0, 0, 0, 0, 9, 2}, "no such schema"}, {[]byte("{}"), "0x7b"}, {nil, ""}, {[]byte{}, "empty"}, {[]byte{0, 0, 0, 0, 1, 6}, ""},
	} {
		err := b.Append(&key, &c.value, meta(int64(i)))
		if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("record %d: %v", i, err)
		}
	}
	if _, err := w.Commit(ctx, b, []sink.Move{move(0, sink.NoOffset, 8)}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range allRows(t, store) {
		got = append(got, fmt.Sprint(row["id"], row["note"], row[SourceOffset]))
	}
	if want := "[1<nil>0 2n1 3<nil>7]"; strings.ReplaceAll(fmt.Sprint(got), " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("rows are %v, want %s", got, want)
	}
}
