package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/devbroker"
)

// devFlags say how the development broker runs.
type devFlags struct {
	dir                string
	port, registryPort int
	topics             []string
}

func newDev() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a Kafka broker and a schema registry for development, until interrupted",
		Long: "Runs a broker and a Confluent-compatible schema registry in this process, on 127.0.0.1, so that applications can be tried where nothing is\n" +
			"installed. The broker speaks Kafka's protocol, with transactions, groups, compaction and retention; any client can connect to it. It is one\n" +
			"process without replication and security: no place for data that matters. Without --dir everything is in memory.\n\n" +
			"In a program or a test of your own, package engine/devbroker starts the same.",
		Example: "  tributary dev --topic plays:3 --topic users\n" +
			"  echo 'anna:hello' | tributary dev write plays\n" +
			"  tributary dev read plays",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return dev(cmd.Context(), cmd.OutOrStdout(), f)
		},
	}
	cmd.Flags().StringVar(&f.dir, "dir", "", "folder that keeps topics and schemas over restarts")
	cmd.Flags().IntVar(&f.port, "port", 9092, "port of the broker; 0 takes a free one")
	cmd.Flags().IntVar(&f.registryPort, "registry-port", 8081, "port of the registry; 0 takes a free one")
	cmd.Flags().StringArrayVar(&f.topics, "topic", nil, "a topic to make where it is missing, NAME or NAME:PARTITIONS; may be given more than once")
	cmd.AddCommand(newDevTopic(), newDevWrite(), newDevRead())
	return cmd
}

func newDevTopic() *cobra.Command {
	var brokers []string
	cmd := &cobra.Command{
		Use:     "topic NAME[:PARTITIONS]...",
		Short:   "Make topics that are missing, while the broker runs",
		Example: "  tributary dev topic plays:3 plays.dead",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			topics, err := parseTopics(args)
			if err != nil {
				return err
			}
			if err := makeTopics(cmd.Context(), brokers, topics); err != nil {
				return err
			}
			showTopics(cmd.OutOrStdout(), topics)
			return nil
		},
	}
	addDevBrokers(cmd, &brokers)
	return cmd
}

func showTopics(out io.Writer, topics []declared) {
	for _, t := range topics {
		fmt.Fprintf(out, "topic     %s, %s\n", t.name, counted(t.partitions, "partition"))
	}
}

func dev(ctx context.Context, out io.Writer, f devFlags) (err error) {
	topics, err := parseTopics(f.topics)
	if err != nil {
		return err
	}
	below := func(name string) string {
		if f.dir == "" {
			return ""
		}
		return filepath.Join(f.dir, name)
	}
	broker, err := devbroker.Start(devbroker.Config{Dir: below("broker"), Port: f.port})
	if err != nil {
		return fmt.Errorf("broker on port %d: %w", f.port, err)
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	registry, err := devbroker.StartRegistry(devbroker.RegistryConfig{Dir: below("registry"), Port: f.registryPort})
	if err != nil {
		return fmt.Errorf("registry on port %d: %w", f.registryPort, err)
	}
	defer func() { err = errors.Join(err, registry.Close()) }()
	if err := makeTopics(ctx, broker.Addrs(), topics); err != nil {
		return err
	}
	fmt.Fprintf(out, "broker    %s\nregistry  %s\n", strings.Join(broker.Addrs(), ","), registry.URL())
	showTopics(out, topics)
	where := "in memory"
	if f.dir != "" {
		where = "kept in " + f.dir
	}
	fmt.Fprintf(out, "Everything is %s. Interrupt to end.\n", where)
	<-ctx.Done()
	return nil
}

// parseTopics reads NAME or NAME:PARTITIONS; the partitions are 0 where they aren't given.
func parseTopics(texts []string) (all []declared, err error) {
	for _, text := range texts {
		name, count, counted := strings.Cut(text, ":")
		n := 0
		if counted {
			if n, err = strconv.Atoi(count); err != nil || n < 1 {
				return nil, fmt.Errorf("topic %s: give NAME or NAME:PARTITIONS, such as plays:3", text)
			}
		}
		if name == "" {
			return nil, fmt.Errorf("topic %s: the name is missing", text)
		}
		all = append(all, declared{name: name, partitions: int32(n)})
	}
	return all, nil
}

// makeTopics makes topics that are missing, with one partition where no number is given. Those that are there must have as many as are given;
// where none is, it is noted in topics how many they have.
func makeTopics(ctx context.Context, brokers []string, topics []declared) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for i, t := range topics {
		topics[i].partitions = max(1, t.partitions)
		_, err := admin.CreateTopic(ctx, topics[i].partitions, -1, nil, t.name)
		switch {
		case errors.Is(err, kerr.TopicAlreadyExists) && t.partitions == 0:
			there, err := admin.ListTopics(ctx, t.name)
			if err := errors.Join(err, there.Error()); err != nil {
				return fmt.Errorf("look at topic %s: %w", t.name, err)
			}
			topics[i].partitions = int32(len(there[t.name].Partitions))
		case errors.Is(err, kerr.TopicAlreadyExists):
			if state, ok, err := oneTopic(ctx, admin, t, -1, false); err != nil || !ok {
				return errors.Join(err, fmt.Errorf("topic %s %s", t.name, state))
			}
		case err != nil:
			return fmt.Errorf("make topic %s: %w", t.name, err)
		}
	}
	return nil
}
