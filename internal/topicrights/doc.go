// Package topicrights asks brokers what a client may do with a topic before it is tried: a refused record takes the work of its whole transaction
// back. The engine asks it of topics of dead letters, and landing does when a stream begins.
//
// It knows nothing of what is written.
package topicrights
