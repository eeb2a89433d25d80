//go:build !linux

package realregistry

import "syscall"

// childAttributes are the default where the kernel has no parent death signal.
func childAttributes() *syscall.SysProcAttr { return nil }
