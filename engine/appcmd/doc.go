// Package appcmd makes a command line of an application: run it, describe its topology, save its plan and compare it with the one that
// runs in production, print the rights that it needs, reset it. A program that is nothing but the application is a call of Main:
//
//	func main() {
//		appcmd.Main(appcmd.Application{Build: Topology})
//	}
//
// A program with more to it adds Commands to its own (spf13/cobra).
//
// An instance that serves HTTP serves the page of package console, too.
//
// No record passes through here: the package builds the plan and gives it to package engine. It knows nothing of what the topology does.
package appcmd
