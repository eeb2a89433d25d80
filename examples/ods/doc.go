// Package ods is a platform's streaming ingest: declared streams land in raw tables as they are, staging has each event once, and a table is
// published back as a stream. README.md tells how to run it.
//
//	streams/ (declarations) ─┐
//	ods.demo.order_events ───┴→ sink (package land) ──→ raw/demo__order_events ──→ staging/demo__order_events ──→ ods.demo.order_events_staged
//	                              └→ dead letters        └─ notices, at a pace ───────┘ (staging.go)   (publish.go)
//
// The sink is the library's own, as `tributary land` runs it (land.go). Staging is rebuilt when the sink's observer gives notice of new rows; it
// keeps its progress in its own table, as the sink does. The publisher keeps its progress in the topic that it writes. So each of the three can be
// killed at any moment and started again. Input is a seeded day of examples/shop (emit.go).
//
// The package uses nothing but what other users of the library can use.
package ods
