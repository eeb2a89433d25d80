// Package leaks looks for goroutines that tests leave behind, with goleak, and gives them time to end: connections and clients are closed in the
// background, and goleak itself waits less than half a second, which a busy machine may need for that.
//
//	func TestMain(m *testing.M) { leaks.Main(m) }
package leaks
