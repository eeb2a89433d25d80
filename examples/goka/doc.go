// Package loyalty is an application written for goka: a shop's loyalty programme. Purchases earn points, at a rate that depends on the
// customer's tier; whoever has brought the customer in gets a tenth of them; each full hundred points is a reward; and at the end of the year
// everybody gets a statement.
//
// It uses what a goka application uses: an input, a joined and a looked-up table, a loop, an output, a table of its own and a visitor. Nothing in
// this package knows Tributary. The command before runs it with goka, the command after with Tributary's engine, and compare does both on the
// same input and broker, and looks at what came out.
//
// Group is where to start reading; README.md has the pictures.
package loyalty
