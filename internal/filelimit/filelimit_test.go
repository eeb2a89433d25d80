package filelimit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestExplain: only errors of too many open files get advice, once, and they stay what they are.
func TestExplain(t *testing.T) {
	full := &os.PathError{Op: "open", Path: "/state/000007.log", Err: syscall.EMFILE}
	for _, err := range []error{full, &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}} {
		got := Explain(fmt.Errorf("start: %w", err))
		if !errors.Is(got, syscall.EMFILE) || !strings.Contains(got.Error(), "LimitNOFILE=") || !strings.HasPrefix(got.Error(), "start: "+err.Error()) {
			t.Errorf("%v is explained as %v", err, got)
		}
		if again := Explain(fmt.Errorf("application: %w", got)); strings.Count(again.Error(), "LimitNOFILE=") != 1 {
			t.Errorf("explained twice: %v", again)
		}
	}
	if got := Explain(os.NewSyscallError("pipe2", syscall.ENFILE)); !strings.Contains(got.Error(), "fs.file-max") {
		t.Errorf("of the machine's limit it says %v", got)
	}
	for _, err := range []error{nil, io.EOF} {
		if got := Explain(err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}
