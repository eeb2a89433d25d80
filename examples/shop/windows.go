package shop

import (
	"cmp"
	"slices"
	"time"

	"github.com/tributary-io/tributary/processors"
)

// Windows is the reference for counts and revenue per region in tumbling windows with grace, on one thread.
//
// Stream time is kept for each partition of the regions, as the task that aggregates a partition keeps it: the highest event time
// that has come by. A window of a partition is closed once stream time has reached its end plus the grace; what comes later for it
// is late. (Kafka Streams 4.3: a record is dropped if its window's end is at or before stream time minus grace.)
type Windows struct {
	size, grace int64
	streamTime  []int64 // by partition; minimal before the first record
	rows        map[windowKey]*WindowRow
	Late        int64 // records that came for a closed window
}

type windowKey struct {
	region string
	start  int64
}

// WindowRow is what one window holds.
type WindowRow struct {
	Region string
	Start  int64 // ms since 1970
	Count  int64 // records in time
	Cents  int64 // their sum
	// What came when the window was closed.
	LateCount, LateCents int64
}

// NewWindows makes a reference with the regions spread over so many partitions, as Kafka's default partitioner does.
func NewWindows(size, grace time.Duration, partitions int32) *Windows {
	w := &Windows{
		size: size.Milliseconds(), grace: grace.Milliseconds(),
		streamTime: make([]int64, partitions), rows: make(map[windowKey]*WindowRow),
	}
	for i := range w.streamTime {
		w.streamTime[i] = -1
	}
	return w
}

func (w *Windows) partition(region string) int32 {
	return processors.PartitionOf([]byte(region), int32(len(w.streamTime)))
}

// Add takes a record. The result depends on the order of the records of a partition.
func (w *Windows) Add(region string, at, cents int64) {
	p := w.partition(region)
	w.streamTime[p] = max(w.streamTime[p], at)
	key := windowKey{region, at - at%w.size}
	row := w.rows[key]
	if row == nil {
		row = &WindowRow{Region: region, Start: key.start}
		w.rows[key] = row
	}
	if w.closed(p, key.start) {
		row.LateCount++
		row.LateCents += cents
		w.Late++
		return
	}
	row.Count++
	row.Cents += cents
}

func (w *Windows) closed(partition int32, start int64) bool {
	return start+w.size+w.grace <= w.streamTime[partition]
}

// IsClosed tells whether stream time has closed the row's window.
func (w *Windows) IsClosed(row WindowRow) bool { return w.closed(w.partition(row.Region), row.Start) }

// Closed returns the windows that have closed with at least one record in time, each of which is emitted once; by start, then by
// region.
func (w *Windows) Closed() []WindowRow { return w.list(true) }

// Open returns the windows that stream time hasn't closed yet.
func (w *Windows) Open() []WindowRow { return w.list(false) }

// All returns every window that a record came for, those for which all came late, too. Count and LateCount together don't depend
// on the order of the records.
func (w *Windows) All() []WindowRow {
	return w.sorted(func(*WindowRow) bool { return true })
}

func (w *Windows) list(closed bool) []WindowRow {
	return w.sorted(func(row *WindowRow) bool {
		return row.Count > 0 && w.closed(w.partition(row.Region), row.Start) == closed
	})
}

func (w *Windows) sorted(wanted func(*WindowRow) bool) []WindowRow {
	var rows []WindowRow
	for _, row := range w.rows {
		if wanted(row) {
			rows = append(rows, *row)
		}
	}
	slices.SortFunc(rows, func(a, b WindowRow) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Region, b.Region))
	})
	return rows
}
