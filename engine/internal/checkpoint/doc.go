// Package checkpoint brings checkpoints of tasks' state from one instance to another: directories of files that don't change any more.
//
// A checkpoint passes through like this. A Desk, on the instance that has the state, has one made when it is asked for, writes down what it
// is in a Manifest (the task, the changelogs with their offsets, each file with its size and checksum), and serves manifest and files over HTTP
// for as long as somebody reads. The instance that wants it reads the manifest, decides by it, and has Fetch bring the files from an
// Origin into a directory: several at a time, each resumed where a connection broke, each checked.
//
// A Vault keeps the latest checkpoint of each task in an object store, for times when no instance has the state: it is an Origin, too.
//
// The formats are in docs/format/checkpoints.md. What a manifest promises is checked here, but not what it means: whether a checkpoint fits
// a task is for the engine to decide. The package knows neither databases nor Kafka.
package checkpoint
