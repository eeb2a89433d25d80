// Package learning is a learning platform's data products, built on the library's public API: a raw landing in JSON Lines, activity tiles,
// a cohort, an auditor, and a batch that is reconciled with the tiles. README.md tells a data engineer how to run it.
//
//	learning.progress ───┬─ learning-progress-raw-landing ──→ raw/progress (JSON Lines with manifests) ─→ course_day (batch)
//	                     │                               └──→ learning.progress.dlq                            │
//	                     ├─ learning-course-activity ───────→ learning.course_activity, .late ────→ reconciliation
//	                     ├─ learning-distinct-activity        → the same without duplicates
//	                     └─ learning-progress-quality ──────→ learning.progress.quality (by hour)
//	learning.enrollment ─── learning-enrollment-cohort ─────→ learning.enrollment.current, learning.course_seats, HTTP
//	                                                     └──→ learning.enrollment.dlq
//
// Each product is an application with a group, and so a cursor, of its own (products.go). All of them judge records by one validator
// (progress.go, enrollment.go), which the producer (produce.go) uses, too. generate.go makes a seeded input and knows what must come out of it.
package learning
