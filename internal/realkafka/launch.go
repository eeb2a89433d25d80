package realkafka

import "fmt"

// Launch starts a cluster for a program that is not a test, such as a benchmark. jvm are options of the brokers' JVMs, settings are
// broker settings over the package's own. The caller stops it by Stop; should the program be killed, its brokers end with it.
func Launch(nodes int, jvm []string, settings map[string]string) (*Cluster, error) {
	c, err := startCluster(nodes, jvm, settings)
	if err != nil {
		return nil, fmt.Errorf("start Kafka %s: %w", Version(), err)
	}
	return c, nil
}

// Stop kills all nodes and removes their files.
func (c *Cluster) Stop() error { return c.stop() }

// Pid is the process id of node i (from 1), 0 if it doesn't run.
func (c *Cluster) Pid(i int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cmd := c.running[i]; cmd != nil {
		return cmd.Process.Pid
	}
	return 0
}

// Dir is where all nodes have their files.
func (c *Cluster) Dir() string { return c.dir }
