// Package primer shows the ideas of stream processing, one small topology each: streams, tables and global tables; their joins; windows; what
// happens to state, to work that is shared, and in a crash.
//
// Each idea is a Lesson in a file of its own, with its topology, its input and what comes out. The command run plays lessons on a broker, the
// tests play the same ones in the harness and on real Kafka: the results are the same. README.md has the pictures.
//
// A record's way in a lesson: its input is written first, then an instance reads it in the order of its event times, and what it writes is
// read back and printed. See Lesson.
package primer
