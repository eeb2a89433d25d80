// Package plansafety tells what a change of a topology does to what is durable: stores and their changelogs, internal topics, and the
// progress that lake tables keep.
//
// Snapshot turns a plan into a Plan of plain data, which is written as JSON (docs/format/plan-json.md) and kept beside the code; Compare
// takes two of them and says of each durable thing whether it is kept, renamed, orphaned, partitioned anew, changed or new, with what
// to do. A test of your own can hold the line:
//
//	old, err := plansafety.ReadFile("testdata/plan.json")
//	...
//	if report := plansafety.Compare(old, plansafety.Snapshot(plan)); report.Loses() {
//		t.Fatal(report)
//	}
//
// `tributary diff OLD NEW` does the same on files.
//
// It compares declarations. It can't see what is inside of Go functions, of a schema registry, or of the brokers: an operator that
// computes something else under the same name is the same to it. The package does no I/O but on files of plans, and knows neither the
// engine nor a Kafka client.
package plansafety
