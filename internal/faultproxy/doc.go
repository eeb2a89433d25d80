// Package faultproxy puts TCP proxies between clients and servers, for tests of what bad connections do: each connection can be cut, delayed
// or turned into a black hole, by itself, while the others go on.
//
// A Network's Dial is the dialer of the client under test: it leads every address through a proxy of its own, so whatever addresses a server
// advertises, nothing gets around it. Bytes pass unchanged and in order; what a fault swallows is never followed by what came later.
package faultproxy
