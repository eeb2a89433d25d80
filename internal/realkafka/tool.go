package realkafka

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/tributary-io/tributary/internal/child"
)

// Tool runs one of Kafka's own command-line tools, by the name of its class, against the cluster, and returns what it prints.
// --bootstrap-server is added.
func (c *Cluster) Tool(ctx context.Context, class string, args ...string) (string, error) {
	all := append([]string{"-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", c.lib + "/*", class,
		"--bootstrap-server", strings.Join(c.Addrs(), ",")}, args...)
	out, err := exec.CommandContext(ctx, "java", all...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", class, strings.Join(args, " "), err, child.LastLines(string(out), 5))
	}
	return string(out), nil
}
