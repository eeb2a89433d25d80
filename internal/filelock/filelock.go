//go:build unix

package filelock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrHeld is wrapped by the error of TryLock when another process (or another holder in this one) has the lock.
var ErrHeld = errors.New("held by another process")

// Lock is a held lock. Release gives it back.
type Lock struct{ file *os.File }

// TryLock takes the lock on path, making the file where there is none. It doesn't wait: where the lock is held already, the
// error wraps ErrHeld and names the holder's process id as far as it is known.
func TryLock(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		owner := readOwner(file)
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w%s", path, ErrHeld, owner)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := writeOwner(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("write lock file %s: %w", path, err)
	}
	return &Lock{file: file}, nil
}

func readOwner(file *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	pid := strings.TrimSpace(string(b))
	if err != nil || pid == "" {
		return ""
	}
	return " (pid " + pid + ")"
}

func writeOwner(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Release gives the lock back. The file stays: removing it would let two processes lock two files of the same name. Closing the file isn't enough: a child that
// is just being started has it, too, until it runs its program.
func (l *Lock) Release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}
