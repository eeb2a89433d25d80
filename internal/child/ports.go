package child

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below what kernels give to outgoing connections (from 32768 on, on Linux): else a connection could take the port of a server that
// is not up yet, or down, and it could not come up.
const firstPort, lastPort = 15_000, 32_000

// FreePorts finds ports of 127.0.0.1 that are free now, at random, since others may be looking at the same time. All are held until the last is known, so
// that they differ. It is for servers that are told their port, and keep it over restarts.
func FreePorts(n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n; tries++ {
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			if tries > 100*n {
				return nil, fmt.Errorf("find a free port: %w", err)
			}
			continue
		}
		defer l.Close()
		ports = append(ports, port)
	}
	return ports, nil
}
