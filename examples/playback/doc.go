// Package playback is the landing of a streaming service: what its players send becomes a table that analysts query, and views that
// operators watch. README.md tells how to run it.
//
//	players ──> streaming.playback_events (6 partitions, 7 days, keyed by session)
//	              ├─> lander (land.go)           exactly once into an Iceberg or Delta table, partitioned by event date and hour
//	              ├─> append lander (append.go)  at least once, the way it is written by hand; readers drop duplicates by event id
//	              └─> views (views.go)           sessions, watch time per title and hour, concurrent viewers per title
//
// Events come from a seeded generator (generate.go), which also knows what every view must say (Expected), or from a file of JSON
// Lines (produce.go). Settings come from the environment (settings.go). The program is in run.
//
// The package uses nothing but what other users of the library can use.
package playback
