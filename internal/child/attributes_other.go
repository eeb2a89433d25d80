//go:build !linux

package child

import "syscall"

// Attributes are the default where the kernel has no parent death signal.
func Attributes() *syscall.SysProcAttr { return nil }
