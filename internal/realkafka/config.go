package realkafka

import (
	"fmt"
	"path/filepath"
	"strings"
)

// node is one combined broker and controller.
type node struct {
	id         int // from 1
	dir        string
	port       int // of clients
	controller int // port of the controller quorum
}

func (n *node) addr() string   { return fmt.Sprintf("127.0.0.1:%d", n.port) }
func (n *node) config() string { return filepath.Join(n.dir, "server.properties") }
func (n *node) log() string    { return filepath.Join(n.dir, "broker.log") }

// properties are the node's settings: failures are noticed within seconds, cleaners run every second, and clients may ask for
// short sessions. Topics are not made by themselves.
func properties(n *node, all []*node, extra map[string]string) string {
	quorum := make([]string, len(all))
	for i, o := range all {
		quorum[i] = fmt.Sprintf("%d@127.0.0.1:%d", o.id, o.controller)
	}
	replicas, inSync := 1, 1
	if len(all) >= 3 {
		replicas, inSync = 3, 2
	}
	settings := []string{
		"process.roles=broker,controller",
		fmt.Sprintf("node.id=%d", n.id),
		"controller.quorum.voters=" + strings.Join(quorum, ","),
		"controller.listener.names=CONTROLLER",
		fmt.Sprintf("listeners=PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d", n.addr(), n.controller),
		"advertised.listeners=PLAINTEXT://" + n.addr(),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"inter.broker.listener.name=PLAINTEXT",
		"log.dirs=" + filepath.Join(n.dir, "data"),
		"num.network.threads=2",
		"num.io.threads=4",
		"auto.create.topics.enable=false",
		fmt.Sprintf("default.replication.factor=%d", replicas),
		fmt.Sprintf("min.insync.replicas=%d", inSync),
		fmt.Sprintf("offsets.topic.replication.factor=%d", replicas),
		"offsets.topic.num.partitions=4",
		fmt.Sprintf("transaction.state.log.replication.factor=%d", replicas),
		fmt.Sprintf("transaction.state.log.min.isr=%d", inSync),
		"transaction.state.log.num.partitions=4",
		"transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
		fmt.Sprintf("share.coordinator.state.topic.replication.factor=%d", replicas),
		fmt.Sprintf("share.coordinator.state.topic.min.isr=%d", inSync),
		"group.initial.rebalance.delay.ms=0",
		"broker.session.timeout.ms=6000",
		"broker.heartbeat.interval.ms=1000",
		"controller.quorum.election.timeout.ms=1000",
		"controller.quorum.fetch.timeout.ms=2000",
		"replica.lag.time.max.ms=6000",
		"group.min.session.timeout.ms=1000",
		"group.streams.initial.rebalance.delay.ms=0",
		"group.streams.min.heartbeat.interval.ms=200",
		"group.streams.heartbeat.interval.ms=200",
		"group.streams.min.session.timeout.ms=6000",
		"group.streams.session.timeout.ms=6000",
		"group.streams.assignment.interval.ms=0",
		"log.cleaner.dedupe.buffer.size=16777216",
		"log.cleaner.backoff.ms=1000",
		"log.retention.check.interval.ms=1000",
		"log.initial.task.delay.ms=500",
	}
	for k, v := range extra {
		settings = append(settings, k+"="+v)
	}
	return strings.Join(settings, "\n") + "\n"
}
