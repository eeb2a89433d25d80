package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/internal/kafkaflags"
	"github.com/tributary-io/tributary/internal/verify"
)

// clusterFlags choose a cluster for commands that only look: a real one, or the demonstration's.
type clusterFlags struct {
	brokers  []string
	dir      string
	security kafkaflags.Flags
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.brokers, "brokers", nil, "brokers of the cluster, host:port")
	cmd.Flags().StringVar(&f.dir, "dir", "tributary-demo", "without --brokers: the demonstration's folder, whose embedded broker is started")
	f.security.Add(cmd.Flags())
}

// securityOptions are client options for brokers. Without any an embedded one runs, which knows no security: what the environment says
// is not for it.
func securityOptions(f *kafkaflags.Flags, brokers []string) ([]kgo.Opt, error) {
	if len(brokers) == 0 {
		if f.Given() {
			return nil, errors.New("the --tls and --sasl flags are for real brokers: give --brokers")
		}
		return nil, nil
	}
	return f.Options(os.Getenv)
}

// connect returns a client's options that reach the brokers, and what ends an embedded one.
func (f *clusterFlags) connect() (client []kgo.Opt, end func() error, err error) {
	if client, err = securityOptions(&f.security, f.brokers); err != nil {
		return nil, nil, err
	}
	if len(f.brokers) > 0 {
		return append(client, kgo.SeedBrokers(f.brokers...)), func() error { return nil }, nil
	}
	dir := filepath.Join(f.dir, "broker")
	if _, err := os.Stat(dir); err != nil {
		return nil, nil, fmt.Errorf("which cluster? Give --brokers, or --dir of a demonstration: there is none in %s", f.dir)
	}
	b, err := embedded.StartBroker(embedded.BrokerConfig{Dir: dir})
	if err != nil {
		return nil, nil, fmt.Errorf("no --brokers given, and the demonstration's can't be started: %w", err)
	}
	return []kgo.Opt{kgo.SeedBrokers(b.Addrs()...)}, b.Close, nil
}

func newLakeVerify() *cobra.Command {
	var (
		cluster     clusterFlags
		topic, dead string
	)
	cmd := &cobra.Command{
		Use:   "verify TABLE --topic TOPIC",
		Short: "Prove that a table holds each accepted record of its topic, once",
		Long: "Reads the topic again, read_committed, and accounts for each record up to where the table says that it has come: landed once, or\n" +
			"dead-lettered. What retention and compaction have taken, aborted transactions and records without a value are no gaps. The table\n" +
			"must have the columns _kafka_partition and _kafka_offset. Where its rows come through an internal topic, the application's committed\n" +
			"offsets say how far it has read, and what the internal topic holds for the table waits. Where a transaction is open in the dead letters\n" +
			"or the internal topic, it waits for its end: one that a killed instance leaves ends by its timeout.",
		Example: "  tributary lake verify tributary-demo/lake/raw/demo__order_events --topic ods.demo.order_events \\\n" +
			"    --dead-letters ods.demo.order_events.dead_letters",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return lakeVerify(cmd.Context(), cmd.OutOrStdout(), &cluster, args[0], topic, dead)
		},
	}
	cluster.add(cmd)
	cmd.Flags().StringVar(&topic, "topic", "", "the topic that the rows come from")
	cmd.Flags().StringVar(&dead, "dead-letters", "", "the topic with the dead letters, if there is one")
	if err := cmd.MarkFlagRequired("topic"); err != nil {
		panic(err)
	}
	return cmd
}

func lakeVerify(ctx context.Context, out io.Writer, cluster *clusterFlags, table, topic, dead string) (err error) {
	client, end, err := cluster.connect()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	r, err := verify.Table(ctx, verify.Config{
		Table: table, Topic: topic, DeadLetters: dead, Client: client,
		Progress: func(what string, n int64) { fmt.Fprintf(out, "%d %s read\n", n, what) },
		Waits: func(topic string) {
			fmt.Fprintf(out, "waiting for the ends of transactions that are open in %s\n", topic)
		},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s in %s: %s in %s, %d dead-lettered, %d without a value\n",
		counted(r.Records, "record"), topic, counted(r.Rows, "row"), table, r.DeadLettered, r.Tombstones)
	if r.Waiting > 0 {
		fmt.Fprintf(out, "%d records wait behind the table's progress\n", r.Waiting)
	}
	if r.Outlived > 0 {
		fmt.Fprintf(out, "%d rows have outlived their records in the topic: nothing can be said of them\n", r.Outlived)
	}
	fault := func(what string, f verify.Fault) {
		if f.Count > 0 {
			fmt.Fprintf(out, "%d %s, such as %v\n", f.Count, what, f.Examples)
		}
	}
	fault("records are missing", r.Missing)
	fault("records landed more than once", r.Doubled)
	fault("rows come from no record of the topic", r.Unexplained)
	if !r.OK() {
		return fmt.Errorf("table %s does not hold what topic %s says", table, topic)
	}
	fmt.Fprintln(out, "verified: each record is accounted for, once")
	return nil
}
