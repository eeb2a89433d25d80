package engine

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sys/unix"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
)

// limitFiles makes the number of files that the process may have open so small.
func limitFiles(n int) error {
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(n), Max: uint64(n)})
}

// TestAnInstanceWithTooFewFilesSaysSoAndLosesNothing: it warns before its stores are opened, ends with what is to be done in its error, and one that may
// open more goes on from what it has left.
func TestAnInstanceWithTooFewFilesSaysSoAndLosesNothing(t *testing.T) {
	a := newApp(t, brokertest.Embedded(t), "few-files")
	const tasks, records = 24, 240
	a.create("in", tasks)
	a.create("out", 1)
	out := a.read("out")
	a.produce("in", tasks, numbered(records, 40)...)
	few := a.spawnWith("i1", instanceArgs{Files: 100}) // the databases' alone are 96
	eventually(t, "the instance ends", func() bool { return !few.Running() })
	for _, text := range []string{"may need more files than the process may open", "tasks_with_state=24", "too many open files", "no more than 100 files", "LimitNOFILE="} {
		if !says(few, text) {
			t.Errorf("it doesn't say %q", text)
		}
	}
	if says(few, "panic") || says(few, "fatal error") {
		t.Error("it doesn't end in order")
	}
	if t.Failed() {
		t.Logf("%s", few.Log())
	}
	enough := a.spawn("i1")
	eventually(t, "all is counted", func() bool { return total(out.lastCounts()) == records })
	if err := enough.Stop(waitLimit); err != nil {
		t.Error(err)
	}
}

// TestConnectionsThatCantBeMadeForTheLimitAreTold: the client itself says no more than that a broker can't be reached.
func TestConnectionsThatCantBeMadeForTheLimitAreTold(t *testing.T) {
	var log bytes.Buffer
	o := outages{log: slog.New(slog.NewTextHandler(&log, nil))}
	to := kgo.BrokerMetadata{Host: "kafka-1", Port: 9092}
	o.OnBrokerConnect(to, 0, nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	if log.Len() > 0 {
		t.Errorf("of a broker that is away it says %s", &log)
	}
	for range 3 {
		o.OnBrokerConnect(to, 0, nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)})
	}
	if got := log.String(); strings.Count(got, "LimitNOFILE=") != 1 || !strings.Contains(got, "kafka-1:9092") {
		t.Errorf("it says %q", got)
	}
	if n := o.failed.Load(); n != 4 {
		t.Errorf("%d attempts failed, want 4", n)
	}
}

// TestClientsThatAreIdleLoseTheirConnection, which would be a file for each of them else, for as long as they please.
func TestClientsThatAreIdleLoseTheirConnection(t *testing.T) {
	defer func(before time.Duration) { idleClients = before }(idleClients)
	idleClients = 50 * time.Millisecond
	a := newApp(t, brokertest.Embedded(t), "idle-clients")
	a.create("in", 1)
	a.create("out", 1)
	i := a.start(counts(a.name), "i1", HTTP("127.0.0.1:0"))
	defer i.stop(t)
	eventually(t, "HTTP is served", func() bool { return i.HTTPAddr() != "" })
	conn, err := net.Dial("tcp", i.HTTPAddr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) {
		t.Errorf("the connection is still open, or was closed with %v after %q", err, answer)
	}
}
