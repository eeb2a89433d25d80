// Package child runs other processes that must not outlive this one: servers that tests start, and instances of an application that
// tests kill, stop and start again. The latter are this very program once more: it is told by an environment variable which of its roles
// to play, and with what (Main), so that nothing has to be built for them. FreePorts finds ports for servers.
//
// It knows nothing of what the roles do.
package child
