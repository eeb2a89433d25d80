package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/kafkaflags"
	"github.com/tributary-io/tributary/schemas"
)

func newTopics() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "Create or check the topics of the declared streams",
		Long:  "The streams are those that package schemas declares. Internal topics are the engine's business: it creates and checks them itself.",
	}
	cmd.AddCommand(newTopicsCommand("create", "Create the declared topics that are missing, and check the others", true),
		newTopicsCommand("check", "Check that the declared topics are there as declared", false))
	return cmd
}

func newTopicsCommand(use, short string, create bool) *cobra.Command {
	var (
		brokers     []string
		replication int16
		security    kafkaflags.Flags
	)
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := securityOptions(&security, brokers)
			if err != nil {
				return err
			}
			return topics(cmd.Context(), cmd.OutOrStdout(), append(client, kgo.SeedBrokers(brokers...)), replication, create)
		},
	}
	cmd.Flags().StringSliceVar(&brokers, "brokers", nil, "brokers of the cluster, host:port")
	if err := cmd.MarkFlagRequired("brokers"); err != nil {
		panic(err)
	}
	security.Add(cmd.Flags())
	if create {
		cmd.Flags().Int16Var(&replication, "replication", -1, "replicas of new topics; -1 is the brokers' default")
	}
	return cmd
}

// declared is a topic as it has to be.
type declared struct {
	name       string
	partitions int32
	config     map[string]string
}

func declaredTopics() []declared {
	var all []declared
	for _, s := range schemas.Streams() {
		all = append(all, declared{s.Topic, s.Partitions, s.TopicConfig()})
		if s.DeadLetters != "" {
			all = append(all, declared{s.DeadLetters, s.Partitions, nil})
		}
	}
	return all
}

func topics(ctx context.Context, out io.Writer, opts []kgo.Opt, replication int16, create bool) error {
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	bad := 0
	for _, t := range declaredTopics() {
		state, ok, err := oneTopic(ctx, admin, t, replication, create)
		if err != nil {
			return err
		}
		if !ok {
			bad++
		}
		fmt.Fprintf(w, "%s\t%s\n", t.name, state)
	}
	w.Flush()
	if bad > 0 {
		return fmt.Errorf("%d topics are not as declared", bad)
	}
	return nil
}

// oneTopic looks at a topic, and creates it if it may and must.
func oneTopic(ctx context.Context, admin *kadm.Client, t declared, replication int16, create bool) (state string, ok bool, err error) {
	if create {
		configs := map[string]*string{}
		for k, v := range t.config {
			configs[k] = &v
		}
		_, err := admin.CreateTopic(ctx, t.partitions, replication, configs, t.name)
		if err == nil {
			return "created with " + counted(t.partitions, "partition"), true, nil
		}
		if !errors.Is(err, kerr.TopicAlreadyExists) {
			return "", false, fmt.Errorf("create topic %s: %w", t.name, err)
		}
	}
	details, err := admin.ListTopics(ctx, t.name)
	if err != nil {
		return "", false, fmt.Errorf("look at topic %s: %w", t.name, err)
	}
	d, there := details[t.name]
	if !there || errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
		return "missing: create it with `tributary topics create`", false, nil
	}
	if d.Err != nil {
		return "", false, fmt.Errorf("look at topic %s: %w", t.name, d.Err)
	}
	if n := len(d.Partitions); n != int(t.partitions) {
		return fmt.Sprintf("has %s, declared are %d: keys would change their partition, so make it anew", counted(n, "partition"), t.partitions), false, nil
	}
	differences, err := differingConfig(ctx, admin, t)
	if err != nil {
		return "", false, err
	}
	if len(differences) > 0 {
		return fmt.Sprintf("differs: %v", differences), false, nil
	}
	return "as declared, " + counted(t.partitions, "partition"), true, nil
}

func differingConfig(ctx context.Context, admin *kadm.Client, t declared) ([]string, error) {
	if len(t.config) == 0 {
		return nil, nil
	}
	described, err := admin.DescribeTopicConfigs(ctx, t.name)
	if err != nil {
		return nil, fmt.Errorf("describe topic %s: %w", t.name, err)
	}
	rc, err := described.On(t.name, nil)
	if err = errors.Join(err, rc.Err); err != nil {
		return nil, fmt.Errorf("describe topic %s: %w", t.name, err)
	}
	have := map[string]string{}
	for _, c := range rc.Configs {
		have[c.Key] = c.MaybeValue()
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(t.config)) {
		if have[k] != t.config[k] {
			all = append(all, fmt.Sprintf("%s is %q, declared is %q", k, have[k], t.config[k]))
		}
	}
	return all, nil
}
