package realregistry

import "syscall"

// childAttributes put the registry into a process group of its own (a terminal's ctrl-C is for the test) and let it end with the
// test binary, even if that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
