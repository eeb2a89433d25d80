// Package filelock keeps two processes from using one directory.
//
// A lock is an advisory flock(2) on a file. The kernel drops it when the process ends, however it ends, so a lock never
// outlives a crash and needs no cleaning up. The file itself stays and holds the owner's process id, for messages only.
package filelock
