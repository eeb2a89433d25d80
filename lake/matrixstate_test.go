package lake

import (
	"fmt"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// matrixChange is the change number o of row n.
func matrixChange(n, o int64) matrixRow {
	r := matrixRows(n, 1)[0]
	r.Score = float64(o)
	return r
}

// currentState has all sides read a table of current state with deletion vectors, small ones in the log and large ones in files, and where there
// is Spark lets it delete rows, with vectors of its own, and compact. We go on.
func (m *matrix) currentState(t *testing.T) {
	dir, store := localStore(t)
	s := func() sink.Sink {
		return Delta(dir, CurrentState("n"), OrderBy("seen"), DeletionVectors(), Properties(map[string]string{"delta.checkpointInterval": "3"}))
	}
	w := openSink[string, matrixRow](t, s())
	want := map[int64]float64{}
	var at int64
	offer := func(step, n int64) {
		t.Helper()
		from := at
		if from == 0 {
			from = sink.NoOffset
		}
		b := w.NewBatch()
		defer b.Release()
		for i := range n {
			r := matrixChange(i*step, at)
			if err := b.Append(nil, &r, meta(at)); err != nil {
				t.Fatal(err)
			}
			want[r.N] = r.Score
			at++
		}
		if _, err := w.Commit(ctx, b, []sink.Move{move(0, from, at)}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		if got := len(allRows(t, store)); got != len(want) {
			t.Errorf("%s: our reader finds %d rows, want %d", when, got, len(want))
		}
		rows := m.agree(t, dir, "select * from t order by n")
		if len(rows) != len(want) {
			t.Errorf("%s: %d rows, want %d", when, len(rows), len(want))
		}
		for _, r := range rows {
			var n int64
			if _, err := fmt.Sscan(fmt.Sprint(r["n"]), &n); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(r["score"]); !sameNumber(got, fmt.Sprint(want[n])) {
				t.Errorf("%s: row %d has the score %s, want %v", when, n, got, want[n])
			}
		}
		m.agree(t, dir, "select count(*) as n, min(score) as a, max(score) as b from t where score > 3000")
		m.metadata(t, dir, int64(len(want)), at)
	}
	offer(1, 3000)
	offer(3, 1000)
	offer(700, 4)
	offer(500, 6)
	check("after our commits")
	overtaken := false
	beside := &object.Faulty{Inner: store, Plan: func(c object.Call) object.Fault {
		if isEntry(c.Name) && c.Op == object.OpPutIfAbsent && !overtaken {
			overtaken = true
			offer(9, 200)
		}
		return object.NoFault
	}}
	if res := optimize(t, beside, OptimizeOptions{}); res.Commits != 1 || res.Conflicts > 0 || filesOf(t, store)[0].DeletionVector == nil && filesOf(t, store)[1].DeletionVector == nil {
		t.Errorf("a compaction beside changes: %+v", res)
	}
	check("after a compaction that was overtaken by a batch")
	offer(13, 100)
	if m.spark == nil {
		return
	}
	m.spark.Python(t, dir, `
spark.sql("DELETE FROM delta.`+"`%s`"+` WHERE n %% 10 = 7" % table)
out = 1
`, nil)
	for n := range want {
		if n%10 == 7 {
			delete(want, n)
		}
	}
	check("after a deletion by Spark")
	offer(7, 100)
	check("after our commit behind it")
	m.spark.Python(t, dir, `
spark.sql("OPTIMIZE delta.`+"`%s`"+`" % table)
out = 1
`, nil)
	offer(11, 50)
	check("after a compaction by Spark")
}
