// Package demo is the main job on one machine: `tributary demo`. It starts an embedded broker and registry unless it is given real
// ones, makes the topics, emits a day of the order stream, runs the application of examples/orders with the engine until everything
// has landed, and compares the tables with the reference model.
//
// Everything it keeps is below one folder, so a second run goes on from where the first ended: what is emitted is found by the last
// record of each partition, what is processed by the group's offsets, what has landed by the tables themselves.
package demo
