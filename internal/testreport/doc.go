// Package testreport reads what `go test -json` prints and says what came of it: a line a package as it ends, the output of what
// failed, and at the end every test that was skipped with its reason, since a check that silently skips half its tests is worth
// nothing, and what each failed test said by Error or Fatal: where it is followed by other packages, or logs much, or whoever reads
// the output sees only its end, that would be missed. The last line is plain: "N passed, N failed, N skipped".
//
//	go test -json ./... | go run ./internal/testreport/cmd
//
// It counts top-level tests, and subtests that failed or were skipped (a subtest that passed belongs to its test). A package
// that doesn't build, or ends without saying how a test came out, counts as one failure. The package knows nothing of this project.
package testreport
