package child

import "syscall"

// Attributes put a process into a group of its own (a terminal's ctrl-C is for its parent) and let it end with its parent, even if that is
// killed.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
