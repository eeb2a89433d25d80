package primer

import (
	"strings"
	"time"

	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

var joinTableLesson = Lesson{
	Name:   "join-table",
	Idea:   "A stream joined with a table: each record meets the row of its key as it is then. A change of the table alone sends nothing.",
	Topics: map[string]int32{"orders": 1, "customers": 1, "out": 1},
	Output: "out",
	Input: []Record{
		{"orders", "anna", "book", 0}, // there is no row yet
		{"customers", "anna", "Basel", 10},
		{"orders", "anna", "lamp", 20},
		{"customers", "anna", "Bern", 30}, // sends nothing
		{"orders", "anna", "chair", 40},
		{"customers", "anna", null, 50}, // sends nothing
		{"orders", "anna", "table", 60},
	},
	Build: func(app App) (*topology.Plan, error) { return joinTable(app, 0) },
	Result: []string{
		"00:20  anna     lamp to Basel",
		"00:40  anna     chair to Bern",
	},
}

// joinTable joins orders with customers. With partitions the orders go through a topic with so many of them first.
func joinTable(app App, partitions int) (*topology.Plan, error) {
	b := app.builder()
	orders := b.Stream(app.Topic("orders"), serde.String, serde.String)
	if partitions > 0 {
		orders = orders.Repartition(topology.Name("orders-as-customers"), topology.Partitions(partitions))
	}
	customers := b.Table(app.Topic("customers"), serde.String, serde.String, topology.Store("customers"))
	orders.Join(customers, func(item, city string) string { return item + " to " + city }).To(app.Topic("out"))
	return b.Build()
}

var copartitionLesson = Lesson{
	Name:   "copartition",
	Idea:   "What is joined must be partitioned alike: it is checked at the start. Repartition repairs it.",
	Topics: map[string]int32{"orders": 3, "customers": 2, "out": 1},
	Output: "out",
	Input: []Record{
		{"customers", "anna", "Basel", 0}, {"customers", "ben", "Bern", 0},
		{"orders", "anna", "lamp", 20}, {"orders", "ben", "desk", 20},
	},
	Build: func(app App) (*topology.Plan, error) { return joinTable(app, 2) },
	Play: func(s *Stage) ([]string, error) {
		refused, err := joinTable(s.App, 0)
		if err != nil {
			return nil, err
		}
		if err = s.RunRefused(refused); err == nil {
			return []string{"it was started though the partitions differ"}, nil
		}
		lines := []string{"refused: " + s.Anonymous(err.Error())}
		repaired, err := s.Run()
		return append(append(lines, "with Repartition:"), repaired...), err
	},
	Result: []string{
		"refused: application APP: start: topics that are joined must have the same number of partitions: APP-customers has 2, APP-orders has 3; " +
			"send one side through Repartition with Partitions(n), or create the topic anew with the other's number",
		"with Repartition:",
		"00:20  anna     lamp to Basel",
		"00:20  ben      desk to Bern",
	},
}

var joinGlobalLesson = Lesson{
	Name:   "join-global",
	Idea:   "A stream joined with a global table by a key that is derived from each record: nothing is repartitioned.",
	Topics: map[string]int32{"orders": 1, "shops": 2, "out": 1},
	Output: "out",
	Input: []Record{
		{"shops", "b1", "Barfi", 0}, {"shops", "z7", "Zytglogge", 0},
		{"orders", "anna", "b1/book", 10}, {"orders", "ben", "z7/lamp", 20}, {"orders", "anna", "x9/desk", 30}, // there is no shop x9
	},
	Build: func(app App) (*topology.Plan, error) {
		b := app.builder()
		shops := b.GlobalTable(app.Topic("shops"), serde.String, serde.String, topology.Store("shops"))
		shopOf := func(_, order string) string { shop, _, _ := strings.Cut(order, "/"); return shop }
		b.Stream(app.Topic("orders"), serde.String, serde.String).
			JoinGlobal(shops, shopOf, func(order, shop string) string {
				_, item, _ := strings.Cut(order, "/")
				return item + " from " + shop
			}).
			To(app.Topic("out"))
		return b.Build()
	},
	Result: []string{
		"00:10  anna     book from Barfi",
		"00:20  ben      lamp from Zytglogge",
	},
}

var joinStreamsLesson = Lesson{
	Name:   "join-streams",
	Idea:   "Two streams joined: records of one key meet that are at most ten seconds apart, whichever came first.",
	Topics: map[string]int32{"clicks": 1, "orders": 1, "out": 1},
	Output: "out",
	Input: []Record{
		{"clicks", "anna", "ad-1", 0}, {"orders", "anna", "book", 8}, // 8 s apart
		{"clicks", "anna", "ad-2", 12},                               // 4 s after the order
		{"orders", "anna", "lamp", 23},                               // 11 s after ad-2
		{"orders", "ben", "desk", 30}, {"clicks", "ben", "ad-3", 40}, // 10 s: just in
	},
	Build: func(app App) (*topology.Plan, error) {
		b := app.builder()
		clicks := b.Stream(app.Topic("clicks"), serde.String, serde.String)
		b.Stream(app.Topic("orders"), serde.String, serde.String).
			JoinStream(clicks, func(item, ad string) string { return item + " with " + ad }, topology.JoinWithin(10*time.Second), topology.Store("both")).
			To(app.Topic("out"))
		return b.Build()
	},
	Result: []string{
		"00:08  anna     book with ad-1",
		"00:12  anna     book with ad-2",
		"00:40  ben      desk with ad-3",
	},
}
