// Package orders is the application that `tributary demo` runs, and a pattern for applications of its kind.
//
// It reads the events of a shop's orders (Avro, with a schema registry) and its customers, and lands three Delta tables, each row
// exactly once:
//
//	ods.demo.order_events ─┬─ every event, repetitions too ─────────────────────────────→ raw/demo__order_events
//	                       └─ dedup by event_id ─ join ─┬───────────────────────────────→ curated/demo__orders_enriched
//	ods.demo.customers ──────────────────────────(table)┘└ by region, 5-minute windows ─→ curated/demo__revenue_by_region
//
// Records that can't be decoded go to a dead-letter topic with their bytes as they are and the reason in headers. Windows have ten
// minutes of grace and come out once, when they close; records that come later are counted and left out.
//
// Topology declares it. topology_test.go shows how it is tested without a broker.
package orders
