// Package filelimit knows how many files and connections the process may have open at a time, and says what to do about errors of those that
// couldn't be opened for it.
//
// The Go runtime raises the soft limit to the hard one when a program starts, so what counts is the hard limit: ulimit -Hn, the second number of
// LimitNOFILE= in a systemd unit.
package filelimit
