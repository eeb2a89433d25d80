package shop

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Everything that the demonstration claims to cope with must be in its stream.
func TestModelMeetsEverything(t *testing.T) {
	s := spec(t, "2026-06-01", 5000, 42)
	m := NewModel(s)
	if n := s.Count(); n != len(events(s)) {
		t.Errorf("the count is %d, the events are %d", n, len(events(s)))
	}
	outOfOrder, repeatsFromYesterday, high := 0, 0, int64(0)
	for d := range 2 {
		date := s.Date.AddDate(0, 0, d)
		today := s
		today.Date = date
		for e := range today.Events() {
			if e.Flaw == Sound && e.Time < high {
				outOfOrder++
			}
			if e.Flaw == Sound {
				high = max(high, e.Time)
			}
			if _, seen := m.seen[e.ID]; d == 1 && e.Flaw == Sound && seen && e.Arrival < date.UnixMilli()+10*minute {
				repeatsFromYesterday++
			}
			m.Add(e)
		}
	}
	if m.Raw.Rows != m.Duplicates+m.Distinct || m.Distinct != m.Unjoined+m.Enriched.Rows {
		t.Errorf("rows don't add up: %d raw, %d duplicates, %d distinct, %d unjoined, %d enriched",
			m.Raw.Rows, m.Duplicates, m.Distinct, m.Unjoined, m.Enriched.Rows)
	}
	produced, raw, byRegion, inWindows := int64(0), int64(0), int64(0), m.Windows.Late
	for p := range Partitions {
		produced += m.Records[p]
		raw += m.RawRows[p]
		if m.RawRows[p] < m.Raw.Rows/5 {
			t.Errorf("partition %d has only %d of %d rows", p, m.RawRows[p], m.Raw.Rows)
		}
	}
	for _, totals := range m.ByRegion {
		byRegion += totals.Rows
	}
	for _, w := range slices.Concat(m.Windows.Closed(), m.Windows.Open()) {
		inWindows += w.Count
	}
	if produced != m.Raw.Rows+m.Quarantined || raw != m.Raw.Rows || byRegion != m.Enriched.Rows || inWindows != m.Enriched.Rows {
		t.Errorf("produced %d, raw %d and %d, by region %d and in windows %d of %d", produced, raw, m.Raw.Rows, byRegion, inWindows, m.Enriched.Rows)
	}
	for f := BadMagic; f < flawKinds; f++ {
		if m.ByFlaw[f] == 0 {
			t.Errorf("no record with a flaw: %s", f)
		}
	}
	for name, n := range map[string]int64{
		"duplicates": m.Duplicates, "unjoined": m.Unjoined, "late": m.Windows.Late, "without coupon": m.Raw.NullCoupons,
		"with coupon": m.Raw.Rows - m.Raw.NullCoupons, "returned": m.Raw.BySteps[Returned], "out of order": int64(outOfOrder),
		"repetitions from the day before": int64(repeatsFromYesterday), "closed windows": int64(len(m.Windows.Closed())),
		"open windows": int64(len(m.Windows.Open())),
	} {
		if n == 0 {
			t.Errorf("%s: none", name)
		}
	}
	if regions := slices.Sorted(maps.Keys(m.ByRegion)); len(regions) != len(Regions()) {
		t.Errorf("regions %v of %v", regions, Regions())
	}
	if m.Enriched.MaxTime <= m.Enriched.MinTime || m.Enriched.Cents <= 0 {
		t.Errorf("totals %+v", m.Enriched)
	}
}

func TestWindowsCloseAfterTheGrace(t *testing.T) {
	w := NewWindows(5*time.Minute, 10*time.Minute, 1)
	at := func(m, s int64) int64 { return m*minute + s*second }
	w.Add("a", at(4, 59), 1)
	w.Add("b", at(5, 0), 2) // the next window
	w.Add("a", at(0, 0), 4)
	w.Add("a", at(14, 59), 8) // the first window closes at 15:00
	w.Add("a", at(1, 0), 16)
	w.Add("b", at(15, 0), 32)
	w.Add("a", at(1, 0), 64) // late, though another region has moved the time
	w.Add("a", at(5, 0), 128)
	want := []WindowRow{{Region: "a", Start: 0, Count: 3, Cents: 21, LateCount: 1, LateCents: 64}}
	if d := cmp.Diff(want, w.Closed()); d != "" {
		t.Error(d)
	}
	want = []WindowRow{
		{Region: "a", Start: at(5, 0), Count: 1, Cents: 128},
		{Region: "b", Start: at(5, 0), Count: 1, Cents: 2},
		{Region: "a", Start: at(10, 0), Count: 1, Cents: 8},
		{Region: "b", Start: at(15, 0), Count: 1, Cents: 32},
	}
	if d := cmp.Diff(want, w.Open()); d != "" {
		t.Error(d)
	}
	if w.Late != 1 {
		t.Errorf("%d late, want 1", w.Late)
	}
	w.Add("c", at(60, 0), 0)
	if n := len(w.Closed()); n != 5 {
		t.Errorf("%d windows closed, want 5", n)
	}
	w.Add("d", at(1, 0), 3)
	want = []WindowRow{{Region: "d", LateCount: 1, LateCents: 3}}
	if d := cmp.Diff(want, w.All()[1:2]); d != "" {
		t.Errorf("a window for which all came late: %s", d)
	}
}

// What the model says of the engine's results must not depend on how partitions interleave.
func TestTotalsDoNotDependOnTheOrder(t *testing.T) {
	s := spec(t, "2026-06-01", 1000, 9)
	inOrder, byPartition := NewModel(s), NewModel(s)
	inOrder.AddDay(s.Date)
	for p := range int32(Partitions) {
		for e := range s.Events() {
			if e.Partition == p {
				byPartition.Add(e)
			}
		}
	}
	if inOrder.Windows.Late == byPartition.Windows.Late {
		t.Error("one partition after the other makes no more records late: the test tests nothing")
	}
	total := func(m *Model) []WindowRow {
		rows := m.Windows.All()
		for i := range rows {
			rows[i] = WindowRow{rows[i].Region, rows[i].Start, rows[i].Count + rows[i].LateCount, rows[i].Cents + rows[i].LateCents, 0, 0}
		}
		return rows
	}
	if d := cmp.Diff(total(inOrder), total(byPartition)); d != "" {
		t.Error(d)
	}
	for _, m := range []*Model{inOrder, byPartition} {
		m.Windows, m.Strict = nil, nil
	}
	if d := cmp.Diff(inOrder, byPartition, cmp.AllowUnexported(Model{}), cmp.AllowUnexported(Spec{})); d != "" {
		t.Error(d)
	}
}

func TestWindowsKeepTimeByPartition(t *testing.T) {
	w := NewWindows(5*time.Minute, 0, 1000)
	if w.partition("a") == w.partition("b") {
		t.Fatal("the regions share a partition")
	}
	w.Add("a", 60*minute, 1)
	w.Add("b", 1*minute, 1)
	if w.Late != 0 || len(w.Closed()) != 0 {
		t.Errorf("time passed in one partition and closed the window of another: %d late", w.Late)
	}
}
