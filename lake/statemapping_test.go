package lake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-io/tributary/lake/delta"
	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/readers"
	"github.com/tributary-io/tributary/lake/sink"
)

// mappedMembers makes the table of membersOf with column mapping, as it is after another engine has renamed all of its columns.
func mappedMembers(t rapid.TB, store object.Store, mode string, vectors bool, partitionBy ...string) {
	t.Helper()
	var fields []string
	for i, name := range []string{"learner", "course", "op", "status", "lsn"} {
		fields = append(fields, fmt.Sprintf(`{"name":%q,"type":"string","nullable":true,"metadata":{"delta.columnMapping.id":%d,"delta.columnMapping.physicalName":"col-%[2]d"}}`, name, i+1))
	}
	config := map[string]string{"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "5", "delta.checkpointInterval": "4", "delta.targetFileSize": "4000",
		stateOwnerKey: "app/orders-sink", stateKeysKey: `["learner","course"]`, stateOrderKey: "lsn"}
	features := []string{"columnMapping"}
	if vectors {
		config["delta.enableDeletionVectors"] = "true"
		features = append(features, "deletionVectors")
	}
	firstEntry(t, store, `{"type":"struct","fields":[`+strings.Join(fields, ",")+`]}`, partitionBy, config, features...)
}

// editColumns changes a table's columns as another engine does.
func editColumns(t testing.TB, store object.Store, edit func(f []delta.Field)) {
	t.Helper()
	table, err := delta.Open(ctx, store, delta.Options{})
	if err == nil {
		_, err = table.Commit(ctx, delta.Commit{Metadata: func(m *delta.Metadata) (*delta.Metadata, error) {
			fields := slices.Clone(m.Schema.Fields)
			edit(fields)
			return m.WithSchema(&delta.StructType{Fields: fields}), nil
		}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// offered tries to land one change.
func offered(w sink.Writer, at int64, m member) error {
	b := w.NewBatch()
	defer b.Release()
	if err := b.Append(nil, &m, meta(at)); err != nil {
		return err
	}
	_, err := w.Commit(ctx, b, []sink.Move{move(0, at, at+1)})
	return err
}

// TestMappedStateReadByOthers keeps current state in tables with column mapping: rows that come, go and are copied lie under the physical names, which
// we, delta-rs and DuckDB read.
func TestMappedStateReadByOthers(t *testing.T) {
	r := readers.Open(t)
	for _, mode := range []string{delta.MappingName, delta.MappingID} {
		for how, opts := range modes {
			t.Run(mode+" "+how, func(t *testing.T) {
				dir, store := localStore(t)
				mappedMembers(t, store, mode, opts != nil)
				w := openSink[string, member](t, Delta(dir, CurrentState("learner", "course"), OrderBy("lsn"), DeleteWhere("op", "delete")))
				offerAll(t, w, 0, member{"a", "x", "upsert", "one", 1}, member{"b", "x", "upsert", "one", 2}, member{"c", "x", "upsert", "one", 3})
				offerAll(t, w, 3, member{"a", "x", "upsert", "two", 9}, member{"b", "x", "delete", "", 8})
				offerAll(t, w, 5, member{"b", "x", "upsert", "late", 7}, member{"c", "x", "upsert", "late", 2})
				optimize(t, store, OptimizeOptions{})
				offerAll(t, w, 7, member{"c", "y", "upsert", "new", 1}, member{"c", "x", "upsert", "two", 4})
				want := map[string]string{"a/x": "two@0/9", "c/x": "two@0/4", "c/y": "new@0/1"}
				wantState(t, store, want)
				const query = "select learner || '/' || course as k, status || '@' || lsn as v from t"
				answers := map[string][]readers.Row{"DuckDB": r.DuckDB(t, dir, query).Rows}
				if mode == delta.MappingName { // delta-rs 1.6 finds columns by their names alone
					answers["delta-rs"] = r.DeltaRS(t, dir, readers.Query(query)).Rows
				}
				for who, rows := range answers {
					got := map[string]string{}
					for _, row := range rows {
						got[fmt.Sprint(row["k"])] += fmt.Sprint(row["v"])
					}
					if !maps.Equal(got, want) {
						t.Errorf("%s finds %v, want %v", who, got, want)
					}
				}
			})
		}
	}
}

// TestMappedStateRenamed renames columns of a table of current state. Those of key and order are refused, whether the sink runs or starts; another one is
// a new column to a sink that starts again.
func TestMappedStateRenamed(t *testing.T) {
	for how, opts := range modes {
		t.Run(how, func(t *testing.T) {
			store := object.NewMemory("t")
			mappedMembers(t, store, delta.MappingName, opts != nil)
			w := openSink[string, member](t, membersOf(store))
			offerAll(t, w, 0, member{"a", "x", "upsert", "one", 1}, member{"b", "x", "upsert", "one", 2})
			change := func(edit func(f []delta.Field)) {
				editColumns(t, store, edit)
				if _, err := w.Progress(ctx, []sink.Partition{part(0)}); err != nil { // sees the change
					t.Fatal(err)
				}
			}
			rename := func(column int, name string) { change(func(f []delta.Field) { f[column].Name = name }) }
			for column, name := range map[int]string{0: "learner", 4: "lsn"} {
				rename(column, "other")
				wantRefused(t, offered(w, 2, member{"a", "x", "upsert", "two", 5}), name, "renamed or dropped", "mem://t")
				_, err := tryOpen[string, member](membersOf(store), testEnv())
				wantRefused(t, err, name, "renamed or dropped", "mem://t")
				rename(column, name)
			}
			// The two columns of the key change their names: what the index knows is of other keys.
			change(func(f []delta.Field) { f[0].Name, f[1].Name = f[1].Name, f[0].Name })
			wantRefused(t, offered(w, 2, member{"a", "x", "upsert", "two", 5}), "col-1", "col-2")
			change(func(f []delta.Field) { f[0].Name, f[1].Name = f[1].Name, f[0].Name })
			rename(3, "state")
			wantRefused(t, offered(w, 2, member{"a", "x", "upsert", "two", 5}), "lost column status")
			again := openSink[string, member](t, membersOf(store))
			offerAll(t, again, 2, member{"a", "x", "upsert", "two", 5})
			wantState(t, store, map[string]string{"a/x": "two@0/5", "b/x": "<nil>@0/2"})
			for _, row := range allRows(t, store) {
				if want := map[string]any{"b": "one"}[row["learner"].(string)]; row["state"] != want {
					t.Errorf("%v, want the old value %v", row, want)
				}
			}
		})
	}
}

// TestMappedStateFilesAreWrittenAnew lets two columns change their names after a batch's files were written, and before they land: they must not land under
// the names of the other column.
func TestMappedStateFilesAreWrittenAnew(t *testing.T) {
	for how, opts := range modes {
		t.Run(how, func(t *testing.T) {
			store := object.NewMemory("t")
			mappedMembers(t, store, delta.MappingName, opts != nil)
			var swap func()
			faulty := &object.Faulty{Inner: store, Plan: func(c object.Call) object.Fault {
				if do := swap; do != nil && c.Op == object.OpPutIfAbsent {
					swap = nil
					do()
				}
				return object.NoFault
			}}
			w := openSink[string, member](t, membersOf(faulty, func(o *options) { o.inlineUpkeep = true }))
			offerAll(t, w, 0, member{"a", "x", "upsert", "one", 1}, member{"b", "x", "upsert", "one", 2})
			swap = func() {
				editColumns(t, store, func(f []delta.Field) { f[2].Name, f[3].Name = f[3].Name, f[2].Name })
			}
			offerAll(t, w, 2, member{"c", "x", "upsert", "two", 5})
			if swap != nil {
				t.Fatal("the columns' names were not changed")
			}
			got := map[string]string{}
			for _, row := range allRows(t, store) {
				got[fmt.Sprint(row["learner"])] = fmt.Sprint(row["op"], " ", row["status"])
			}
			if want := map[string]string{"a": "one upsert", "b": "one upsert", "c": "upsert two"}; !maps.Equal(got, want) {
				t.Errorf("op and status are %v, want %v", got, want)
			}
		})
	}
}
