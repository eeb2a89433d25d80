package primer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

var revenueLesson = Lesson{
	Name:   "revenue",
	Idea:   "Revenue per minute, told once for each minute, when the minute and ten seconds of grace are over.",
	Topics: map[string]int32{"sales": 1, "out": 1},
	Output: "out",
	Input: []Record{
		{"sales", "shop", "10", 5}, {"sales", "shop", "20", 59}, // the first minute
		{"sales", "shop", "5", 65}, {"sales", "shop", "7", 50}, // late, but within the grace
		{"sales", "shop", "1", 70},  // closes the first minute
		{"sales", "shop", "9", 55},  // too late: dropped and counted
		{"sales", "shop", "2", 130}, // closes the second
	},
	Build: revenue,
	Result: []string{
		"00:59  shop     37 in [00:00 01:00)",
		"01:10  shop     6 in [01:00 02:00)",
	},
}

func revenue(app App) (*topology.Plan, error) {
	b := app.builder()
	b.Stream(app.Topic("sales"), serde.String, serde.String).
		GroupByKey().
		Windowed(topology.Tumbling(time.Minute).Grace(10*time.Second)).
		Aggregate(func() int64 { return 0 }, func(_, sale string, sum int64) int64 { return sum + number(sale) }, topology.Store("revenue")).
		EmitFinal(topology.Name("closed")).
		ToStream().
		Map(func(w topology.Window[string], sum int64) (string, string) {
			return w.Key, fmt.Sprintf("%d in %s", sum, span(w.Window.Start, w.Window.End))
		}).
		To(app.Topic("out"))
	return b.Build()
}

var windowsLesson = Lesson{
	Name:   "windows",
	Idea:   "The same records in tumbling, hopping, sliding and session windows, and how many are in each at last.",
	Topics: map[string]int32{"visits": 1, "out": 1},
	Output: "out",
	Input: []Record{
		{"visits", "anna", "x", 11}, {"visits", "anna", "x", 14}, {"visits", "anna", "x", 22}, {"visits", "anna", "x", 37},
	},
	Build: windows,
	Play: func(s *Stage) ([]string, error) {
		lines, err := s.Run()
		return sideBySide(lines), err
	},
	Result: []string{
		"tumbling           hopping            sliding            session",
		"[00:10 00:20) 2    [00:05 00:15) 2    [00:01 00:11] 1    [00:11 00:22] 3",
		"[00:20 00:30) 1    [00:10 00:20) 2    (00:11 00:21] 1    [00:37 00:37] 1",
		"[00:30 00:40) 1    [00:15 00:25) 1    [00:04 00:14] 2",
		"                   [00:20 00:30) 1    (00:14 00:24] 1",
		"                   [00:30 00:40) 1    [00:12 00:22] 2",
		"                   [00:35 00:45) 1    [00:27 00:37] 1",
	},
}

// kinds of windows, in the order in which they are shown.
var kinds = []string{"tumbling", "hopping", "sliding", "session"}

// windows counts visits in four ways into one topic.
func windows(app App) (*topology.Plan, error) {
	b := app.builder()
	visits := b.Stream(app.Topic("visits"), serde.String, serde.String).GroupByKey()
	const size = 10 * time.Second
	counts := map[string]*topology.WindowedTable[string, int64]{
		"tumbling": visits.Windowed(topology.Tumbling(size)).Count(topology.Store("tumbling")),
		"hopping":  visits.Windowed(topology.Hopping(size, size/2)).Count(topology.Store("hopping")),
		"sliding":  visits.Windowed(topology.Sliding(size)).Count(topology.Store("sliding")),
		"session":  visits.Sessions(topology.Session(size)).Count(topology.Store("session")),
	}
	for _, kind := range kinds {
		// A session that grows is another window: the old one comes as a null, which Changes lets a function see.
		topology.Changes(topology.FlattenTable(counts[kind])).
			Map(func(w topology.Window[string], n *int64) (string, string) {
				if n == nil {
					return kind, bounds(kind, w.Window.Start, w.Window.End) + " " + null
				}
				return kind, fmt.Sprintf("%s %d", bounds(kind, w.Window.Start, w.Window.End), *n)
			}, topology.ValueSerde(serde.String)).
			To(app.Topic("out"))
	}
	return b.Build()
}

// bounds shows a window as its kind counts: sliding and session windows contain their end, and of the sliding ones that begin behind a record, by a
// millisecond, the beginning is open.
func bounds(kind string, start, end int64) string {
	text := span(start, end)
	if kind == "sliding" || kind == "session" {
		text = strings.Replace(text, ")", "]", 1)
	}
	if start%1000 != 0 {
		text = strings.Replace(text, "[", "(", 1)
	}
	return text
}

// sideBySide puts the last count of each window, as the output tells it, into a column for its kind.
func sideBySide(lines []string) []string {
	columns := map[string][]string{}
	for _, l := range lines {
		f := strings.Fields(l) // time, kind, start, end, count
		kind, window, count := f[1], f[2]+" "+f[3], f[4]
		column := columns[kind]
		switch at := slices.IndexFunc(column, func(cell string) bool { return strings.HasPrefix(cell, window) }); {
		case at < 0:
			column = append(column, window+" "+count)
		case count == null:
			column = slices.Delete(column, at, at+1)
		default:
			column[at] = window + " " + count
		}
		columns[kind] = column
	}
	rows := 0
	for _, column := range columns {
		rows = max(rows, len(column))
	}
	table := []string{fmt.Sprintf("%-18s %-18s %-18s %s", kinds[0], kinds[1], kinds[2], kinds[3])}
	for i := range rows {
		text := ""
		for _, kind := range kinds {
			cell := ""
			if i < len(columns[kind]) {
				cell = columns[kind][i]
			}
			text += fmt.Sprintf("%-18s ", cell)
		}
		table = append(table, strings.TrimRight(text, " "))
	}
	return table
}
