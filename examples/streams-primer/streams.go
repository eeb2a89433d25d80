package primer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// payments are the input of the first two lessons: read as a stream in one, as a table in the other.
var payments = []Record{
	{"payments", "anna", "5", 0}, {"payments", "ben", "7", 1}, {"payments", "anna", "5", 2}, {"payments", "ben", null, 3}, {"payments", "anna", "8", 4},
}

var streamLesson = Lesson{
	Name:   "stream",
	Idea:   "A stream: each record stands for itself, and an equal one counts again. A null is left out here.",
	Topics: map[string]int32{"payments": 1, "out": 1},
	Output: "out",
	Input:  payments,
	Build: func(app App) (*topology.Plan, error) {
		b := app.builder()
		b.Stream(app.Topic("payments"), serde.String, serde.Ptr(serde.String)).
			Filter(func(_ string, v *string) bool { return v != nil }).
			MapValues(func(v *string) string { return "paid " + *v }).
			To(app.Topic("out"))
		return b.Build()
	},
	Result: []string{
		"00:00  anna     paid 5",
		"00:01  ben      paid 7",
		"00:02  anna     paid 5",
		"00:04  anna     paid 8",
	},
}

var tableLesson = Lesson{
	Name:   "table",
	Idea:   "A table: a record is the new row of its key, and a null deletes it. The sum over all rows follows each change.",
	Topics: map[string]int32{"payments": 1, "out": 1},
	Output: "out",
	Input:  payments,
	Build: func(app App) (*topology.Plan, error) {
		b := app.builder()
		rows := b.Table(app.Topic("payments"), serde.String, serde.String, topology.Store("rows"))
		rows.GroupBy(func(_, v string) (string, int64) { return "all", number(v) }, topology.Name("all")).
			Aggregate(func() int64 { return 0 },
				func(_ string, v, sum int64) int64 { return sum + v },
				func(_ string, v, sum int64) int64 { return sum - v }, topology.Store("sum")).
			ToStream().
			MapValues(func(sum int64) string { return "sum of the rows: " + strconv.FormatInt(sum, 10) }).
			To(app.Topic("out"))
		return b.Build()
	},
	Result: []string{
		"00:00  all      sum of the rows: 5",
		"00:01  all      sum of the rows: 12",
		"00:02  all      sum of the rows: 12",
		"00:03  all      sum of the rows: 5",
		"00:04  all      sum of the rows: 8",
	},
}

var globalTableLesson = Lesson{
	Name: "globaltable",
	Idea: "A global table: each instance holds all of it, whatever the partitions. A table holds only the rows of the task's own partition.",
	Topics: map[string]int32{
		"products": 4, "questions": 2, "out": 1,
	},
	Output: "out",
	Input: []Record{
		{"products", "tea", "3.50", 0}, {"products", "coffee", "4.20", 0}, {"products", "milk", "1.10", 0}, {"products", "sugar", "2.00", 0},
		{"questions", "q", "tea coffee milk sugar salt", 5},
	},
	Build: func(app App) (*topology.Plan, error) {
		b := app.builder()
		products := b.GlobalTable(app.Topic("products"), serde.String, serde.String, topology.Store("products"))
		b.Stream(app.Topic("questions"), serde.String, serde.String).
			FlatMap(func(_, v string, emit func(string, string)) {
				for _, product := range strings.Fields(v) {
					emit(product, "")
				}
			}).
			LeftJoinGlobal(products, func(product, _ string) string { return product }, func(_ string, price *string) string {
				if price == nil {
					return "isn't sold"
				}
				return "costs " + *price
			}).
			To(app.Topic("out"))
		return b.Build()
	},
	Result: []string{
		"00:05  tea      costs 3.50",
		"00:05  coffee   costs 4.20",
		"00:05  milk     costs 1.10",
		"00:05  sugar    costs 2.00",
		"00:05  salt     isn't sold",
	},
}

// number reads a number of the lessons' inputs, which are well-formed.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no number", s)) // goes to the processing-error handler
	}
	return n
}
