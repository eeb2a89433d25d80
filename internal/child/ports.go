package child

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Ports come from below what kernels give to outgoing connections (from 32768 on, on Linux): else a connection could take the port of a server that
// is not up yet, or down, and it could not come up.
const firstPort, lastPort = 15_000, 32_000

// FreePorts finds ports of 127.0.0.1 that are free now. It is for servers that are told their port, and keep it over restarts: no process that asks
// FreePorts, this one included, is given one of them as long as this process lives.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		port := firstPort + rand.IntN(lastPort-firstPort)
		taken, err := take(port)
		if err == nil && taken {
			ports = append(ports, port)
			continue
		}
		if err != nil || tries > 100*n {
			return nil, errors.Join(errors.New("find a free port"), err)
		}
	}
	return ports, nil
}

// taken are the ports of this process. The others' are locked in a file: the byte at a port's number by who has it, which the system lets go when the
// process ends. The file is closed by nobody, since that would let go of all.
var taken = struct {
	sync.Mutex
	ports map[int]bool
	locks *os.File
}{ports: map[int]bool{}}

// take takes a port, unless somebody has it.
func take(port int) (bool, error) {
	taken.Lock()
	defer taken.Unlock()
	if taken.ports[port] {
		return false, nil
	}
	if taken.locks == nil {
		var err error
		if taken.locks, err = os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("tributary-ports-%d", os.Getuid())), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return false, err
		}
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1}
	switch err := unix.FcntlFlock(taken.locks.Fd(), unix.F_SETLK, &lock); {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("lock port %d: %w", port, err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false, nil // somebody else's
	}
	taken.ports[port] = true
	return true, l.Close()
}
