package realkafka

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/tributary-io/tributary/internal/child"
)

const (
	startLimit = 4 * time.Minute  // for a broker to be ready, on a busy machine
	stopLimit  = 30 * time.Second // for a controlled shutdown
)

// smallJVM keeps a broker light, for tests: little memory, and no more compiling than is needed for a short life.
var smallJVM = []string{"-Xmx320m", "-Xms64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

// Cluster is a running Kafka cluster.
type Cluster struct {
	dir   string
	lib   string
	jvm   []string // options of the brokers' JVMs
	nodes []*node

	mu      sync.Mutex
	running map[int]*exec.Cmd // by node id
	ended   map[int]chan struct{}
}

// startCluster starts nodes brokers and waits until all answer. extra are broker settings over the package's own.
func startCluster(count int, jvm []string, extra map[string]string) (*Cluster, error) {
	lib, err := jars()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tributary-kafka-")
	if err != nil {
		return nil, err
	}
	c := newCluster(dir, lib, jvm)
	if err := c.prepare(count, extra); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.upAll(); err != nil {
		return nil, err
	}
	return c, nil
}

func newCluster(dir, lib string, jvm []string) *Cluster {
	return &Cluster{dir: dir, lib: lib, jvm: jvm, running: map[int]*exec.Cmd{}, ended: map[int]chan struct{}{}}
}

// upAll starts all nodes and waits for them; after an error nothing is left.
func (c *Cluster) upAll() error {
	for i := range c.nodes {
		if err := c.up(i + 1); err != nil {
			return errors.Join(err, c.stop())
		}
	}
	for i := range c.nodes {
		if err := c.waitReady(i + 1); err != nil {
			return errors.Join(err, c.stop())
		}
	}
	return nil
}

func (c *Cluster) prepare(count int, extra map[string]string) error {
	ports, err := child.FreePorts(2 * count)
	if err != nil {
		return err
	}
	for i := range count {
		n := &node{id: i + 1, dir: filepath.Join(c.dir, fmt.Sprintf("n%d", i+1)), port: ports[2*i], controller: ports[2*i+1]}
		c.nodes = append(c.nodes, n)
	}
	return c.format(extra)
}

// format writes the nodes' settings and makes their storage.
func (c *Cluster) format(extra map[string]string) error {
	cluster := uuid.New()
	for _, n := range c.nodes {
		if err := os.MkdirAll(n.dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(n.config(), []byte(properties(n, c.nodes, extra)), 0o644); err != nil {
			return err
		}
		out, err := exec.Command("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", c.lib+"/*",
			"kafka.tools.StorageTool", "format", "-t", kafkaID(cluster), "-c", n.config()).CombinedOutput()
		if err != nil {
			return fmt.Errorf("format storage of node %d: %w: %s", n.id, err, child.LastLines(string(out), 5))
		}
	}
	return nil
}

// Addrs are the clients' addresses of all nodes, those that are down too.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.addr()
	}
	return addrs
}

// up starts node i without waiting for it.
func (c *Cluster) up(i int) error {
	n := c.nodes[i-1]
	log, err := os.OpenFile(n.log(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("java", slices.Concat(c.jvm, []string{
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-cp", c.lib + "/*", "kafka.Kafka", n.config()})...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, child.Attributes()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node %d: %w", i, err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait() // the way it ends is in its log
		close(ended)
	}()
	c.mu.Lock()
	c.running[i], c.ended[i] = cmd, ended
	c.mu.Unlock()
	return nil
}

// waitReady waits until node i says that it has started and its port answers.
func (c *Cluster) waitReady(i int) error {
	n := c.nodes[i-1]
	c.mu.Lock()
	ended := c.ended[i]
	c.mu.Unlock()
	limit := time.After(startLimit)
	for {
		log, err := os.ReadFile(n.log())
		if err == nil && bytes.Contains(log, []byte("Kafka Server started")) && answers(n.addr()) {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("node %d ended while starting: %s", i, child.LastLines(string(log), 5))
		case <-limit:
			return fmt.Errorf("node %d not ready within %v: %s", i, startLimit, child.LastLines(string(log), 5))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// Kill9 kills node i (from 1) without warning and waits until it is gone.
func (c *Cluster) Kill9(i int) error { return c.down(i, syscall.SIGKILL) }

// Pause stops node i's process without ending it; Resume lets it go on. In between it is a broker that doesn't answer.
func (c *Cluster) Pause(i int) error { return c.signal(i, syscall.SIGSTOP) }

// Resume ends a Pause.
func (c *Cluster) Resume(i int) error { return c.signal(i, syscall.SIGCONT) }

// Restart stops node i if it runs, starts it again on the same ports and data, and waits until it is ready.
func (c *Cluster) Restart(i int) error {
	if err := c.down(i, syscall.SIGTERM); err != nil {
		return err
	}
	if err := c.up(i); err != nil {
		return err
	}
	return c.waitReady(i)
}

func (c *Cluster) signal(i int, sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	cmd := c.running[i]
	if cmd == nil {
		return nil
	}
	return cmd.Process.Signal(sig)
}

func (c *Cluster) down(i int, sig syscall.Signal) error {
	if err := c.signal(i, sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal node %d: %w", i, err)
	}
	return c.awaitEnd(i)
}

// awaitEnd waits for node i to end, and kills it where it takes too long.
func (c *Cluster) awaitEnd(i int) error {
	c.mu.Lock()
	cmd, ended := c.running[i], c.ended[i]
	delete(c.running, i)
	delete(c.ended, i)
	c.mu.Unlock()
	if cmd == nil {
		return nil
	}
	select {
	case <-ended:
		return nil
	case <-time.After(stopLimit):
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill node %d: %w", i, err)
	}
	<-ended
	return nil
}

// stop kills all nodes and removes their files: nobody reads them again, so there is nothing to shut down in order.
func (c *Cluster) stop() error {
	var errs []error
	for i := range c.nodes {
		errs = append(errs, c.down(i+1, syscall.SIGKILL))
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}

// kafkaID is a UUID the way Kafka writes it: URL-safe base64 without padding. An id that starts with '-' would be taken for a
// flag by the command line.
func kafkaID(id uuid.UUID) string {
	id[0] &= 0x7f // the first character is then a letter
	return strings.TrimRight(urlBase64(id[:]), "=")
}
