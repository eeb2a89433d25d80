//go:build !linux

package realkafka

import "syscall"

// childAttributes are the default where the kernel has no parent death signal.
func childAttributes() *syscall.SysProcAttr { return nil }
