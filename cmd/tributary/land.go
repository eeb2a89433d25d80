package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-io/tributary/console"
	"github.com/tributary-io/tributary/internal/embedded"
	"github.com/tributary-io/tributary/internal/kafkaflags"
	"github.com/tributary-io/tributary/land"
	"github.com/tributary-io/tributary/schemas"
)

// landFlags say what is landed and where; what they leave open, the environment and then the defaults say.
type landFlags struct {
	config, declarations, schema, table string
	format                              string
	partitions                          int32
	over                                land.Config
	security                            kafkaflags.Flags
}

func (f *landFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.config, "config", "", "file that declares the streams, such as streams.yaml")
	flags.StringVar(&f.declarations, "declarations", "", "folder of declarations, <topic>.yaml and <topic>.avsc each")
	flags.StringVar(&f.schema, "schema", "", "with a topic as argument: file with its Avro schema; without it the registry's newest")
	flags.StringVar(&f.format, "format", "", "with a topic as argument: avro (the default), json or protobuf; --schema declares the columns of all")
	flags.StringVar(&f.table, "table", "", "with a topic as argument: its table below the lake (default raw/<source>__<entity>)")
	flags.Int32Var(&f.partitions, "partitions", land.DefaultPartitions, "with a topic as argument: partitions, if it has to be made")
	flags.StringSliceVar(&f.over.Brokers, "brokers", nil, "brokers of the cluster, host:port (ODS_SINK_BROKERS)")
	flags.StringVar(&f.over.Registry, "registry", "", "URL of a Confluent-compatible schema registry (ODS_SINK_REGISTRY)")
	flags.StringVar(&f.over.Lake, "lake", "", "where the tables go: a folder or the URL of a store (ODS_SINK_LAKE)")
	flags.StringVar(&f.over.Group, "group", "", "consumer group, default "+land.DefaultGroup+" (ODS_SINK_GROUP)")
	f.security.Add(flags)
}

// resolve puts together what flags, file, environment and argument say.
func (f *landFlags) resolve(ctx context.Context, args []string) (cfg land.Config, err error) {
	var errs []error // of files and environment, all of them at once
	if f.config != "" {
		cfg, err = land.Load(f.config)
		errs = append(errs, err)
	}
	if len(f.over.Brokers) > 0 {
		cfg.Brokers = f.over.Brokers
	}
	for to, text := range map[*string]string{&cfg.Registry: f.over.Registry, &cfg.Lake: f.over.Lake, &cfg.Group: f.over.Group, &cfg.State: f.over.State, &cfg.HTTP: f.over.HTTP} {
		if text != "" {
			*to = text
		}
	}
	if f.over.Observe > 0 {
		cfg.Observe = f.over.Observe
	}
	if f.over.Notice > 0 {
		cfg.Notice = f.over.Notice
	}
	cfg.Optimize = cmp.Or(f.over.Optimize, cfg.Optimize)
	cfg.Vacuum = cmp.Or(f.over.Vacuum, cfg.Vacuum)
	if f.over.NoticeURL != "" {
		cfg.NoticeURL = f.over.NoticeURL
	}
	cfg.Log = slog.Default()
	errs = append(errs, cfg.Environment(os.Getenv))
	if f.declarations != "" {
		streams, err := land.LoadFolder(f.declarations)
		errs = append(errs, err)
		cfg.Streams = append(cfg.Streams, streams...)
	}
	if err := errors.Join(errs...); err != nil {
		return cfg, err
	}
	if cfg.Client, err = securityOptions(&f.security, cfg.Brokers); err != nil {
		return cfg, err
	}
	if len(args) == 1 {
		s, err := f.oneTopic(ctx, &cfg, args[0])
		if err != nil {
			return cfg, err
		}
		cfg.Streams = []land.Stream{s}
	}
	return cfg, nil
}

// oneTopic is the stream of a topic: as the configuration declares it, else as package schemas does, else with the schema that a file or
// the registry gives.
func (f *landFlags) oneTopic(ctx context.Context, cfg *land.Config, topic string) (land.Stream, error) {
	for _, s := range cfg.Streams {
		if s.Topic == topic {
			return s, nil
		}
	}
	d := schemas.Stream{Topic: topic, Partitions: f.partitions}
	for _, s := range schemas.Streams() {
		if s.Topic == topic {
			d = s
		}
	}
	switch {
	case f.schema != "":
		text, err := os.ReadFile(f.schema)
		if err != nil {
			return land.Stream{}, err
		}
		d.Schema = string(text)
	case d.Schema == "":
		text, err := land.NewestSchema(ctx, cfg.Registry, topic)
		if err != nil {
			return land.Stream{}, fmt.Errorf("topic %s is declared nowhere, no --schema is given, and the registry has none: %w", topic, err)
		}
		d.Schema = text
	}
	s, err := land.WithTable(d, f.table)
	if f.format != "" {
		s.Format = land.Format(f.format)
	}
	return s, err
}

func newLand() *cobra.Command {
	var f landFlags
	var untilLanded, looked bool
	cmd := &cobra.Command{
		Use:   "land [TOPIC]",
		Short: "Land topics in Delta tables, each record once",
		Long: "Lands topics of Avro, JSON or Protobuf records, each in a Delta table raw/<source>__<entity> of its own, until it is interrupted. Topics and\n" +
			"subjects are made if they are missing. Records that don't fit go to the topic's dead letters. Start more instances with the\n" +
			"same group to share the work. Batches land by seconds, rows or bytes: ODS_SINK_BATCH_SECONDS (30), ODS_SINK_BATCH_ROWS (50000),\n" +
			"ODS_SINK_BATCH_BYTES (32 MB). See docs/operations/land.md.",
		Example: "  tributary land --config streams.yaml\n" +
			"  tributary land ods.demo.order_events --brokers localhost:9092 --registry http://localhost:8081 --lake /data/lake",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := f.resolve(cmd.Context(), args)
			if err != nil {
				return err
			}
			if untilLanded {
				cfg.Batch.Every = min(cfg.Batch.Every, time.Second) // nobody waits for a batch to fill
			}
			if looked {
				cfg.Engine = append(cfg.Engine, console.Serve())
			}
			return landRun(cmd.Context(), cmd.OutOrStdout(), cfg, untilLanded)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.over.State, "state", "", "folder for the instance's identity; instances on one machine need one each (ODS_SINK_STATE)")
	cmd.Flags().StringVar(&f.over.HTTP, "http", "", "address to serve /console, /metrics, /healthz, /readyz, /streams and /catalogue on (ODS_SINK_HTTP)")
	cmd.Flags().BoolVar(&looked, "console", true, "serve the page about the instance there")
	cmd.Flags().DurationVar(&f.over.Observe, "observe", 0, "observe all streams at this pace, such as 1m (ODS_SINK_OBSERVE_SECONDS)")
	cmd.Flags().DurationVar(&f.over.Notice, "notice", 0, "with --observe: least time between two notices of new rows, default 1h (ODS_SINK_NOTICE_SECONDS)")
	cmd.Flags().DurationVar(&f.over.Optimize, "optimize", 0, "compact each table at this pace, such as 1h (ODS_SINK_OPTIMIZE_SECONDS)")
	cmd.Flags().DurationVar(&f.over.Vacuum, "vacuum", 0, "delete files that no version of a table needs at this pace, such as 24h (ODS_SINK_VACUUM_SECONDS)")
	cmd.Flags().BoolVar(&untilLanded, "until-landed", false, "end when all that the topics hold now has landed")
	cmd.Flags().StringVar(&f.over.NoticeURL, "notice-url", "", "with --observe: send notices of new rows there, as JSON (ODS_SINK_NOTICE_URL)")
	cmd.AddCommand(newLandStatus(), newLandProve(), newLandReset(), newLandRewrite())
	return cmd
}

func landRun(ctx context.Context, out io.Writer, cfg land.Config, untilLanded bool) error {
	cfg.Memory = cmp.Or(cfg.Memory, land.DefaultMemory)
	s, err := land.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range cfg.Streams {
		fmt.Fprintf(out, "%s lands in %s\n", cfg.Streams[i].Topic, cfg.TablePlace(&cfg.Streams[i]))
	}
	run := s.Run
	if untilLanded {
		run = s.RunUntilLanded
	}
	if err := run(ctx); err != nil {
		return err
	}
	stats := s.Stats()
	for _, l := range stats.Lake {
		fmt.Fprintf(out, "%s: %s in %s\n", l.Sink, counted(l.Rows, "row"), counted(l.Commits, "commit"))
	}
	for _, d := range stats.Dropped {
		fmt.Fprintf(out, "%s: %s left out: %s\n", d.Node, counted(d.Count, "record"), d.Reason)
	}
	return nil
}

func newLandStatus() *cobra.Command {
	var f landFlags
	var asJSON, catalogue bool
	cmd := &cobra.Command{
		Use:   "status [TOPIC]",
		Short: "Show how far each stream has landed, by its table",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := f.resolve(cmd.Context(), args)
			if err != nil {
				return err
			}
			all, err := land.Status(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if !asJSON && !catalogue {
				return printStatus(cmd.OutOrStdout(), all)
			}
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			if catalogue {
				return e.Encode(cfg.Catalogue(all))
			}
			return e.Encode(all)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with partitions")
	cmd.Flags().BoolVar(&catalogue, "catalogue", false, "print the streams' catalogue entries as JSON")
	return cmd
}

func printStatus(out io.Writer, all []land.StreamStatus) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "topic\tevents\tlanded\twaiting\tpartitions\tschema\ttable\tversion")
	bad := 0
	for _, s := range all {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%d\n", s.Topic, s.Events, s.Landed, s.Lag, len(s.Partitions), s.SchemaVersion, s.Table, s.TableVersion)
	}
	w.Flush()
	for _, s := range all {
		if s.Error != "" {
			fmt.Fprintf(out, "%s: %s\n", s.Topic, s.Error)
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d streams could not be seen whole", bad, len(all))
	}
	return nil
}

func newLandProve() *cobra.Command {
	var (
		f  landFlags
		pc land.ProofConfig
	)
	cmd := &cobra.Command{
		Use:   "prove [TOPIC]",
		Short: "Send generated rows through topic, registry and sink, and compare what comes back",
		Long: "For each stream: makes a topic, a subject and a table for the proof alone, sends generated rows of the declared schema through the\n" +
			"sink, reads the table and compares each value. What was made is taken away again. Without --brokers and --registry both run inside\n" +
			"the process, and without --lake the table is in a temporary folder.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return landProve(cmd.Context(), cmd.OutOrStdout(), &f, args, pc)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().IntVar(&pc.Rows, "rows", 10_000, "rows for each stream")
	cmd.Flags().Uint64Var(&pc.Seed, "seed", 1, "chooses the rows: the same seed makes the same rows")
	cmd.Flags().BoolVar(&pc.Keep, "keep", false, "leave topic, subject and table")
	return cmd
}

func landProve(ctx context.Context, out io.Writer, f *landFlags, args []string, pc land.ProofConfig) (err error) {
	end, err := f.fillIn()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	cfg, err := f.resolve(ctx, args)
	if err != nil {
		return err
	}
	if len(cfg.Streams) == 0 {
		return errors.New("nothing to prove: give a topic, --config or --declarations")
	}
	bad := 0
	for _, s := range cfg.Streams {
		p, err := land.Prove(ctx, cfg, s, pc)
		if err != nil {
			return fmt.Errorf("stream %s: %w", s.Topic, err)
		}
		if p.Differing == 0 {
			fmt.Fprintf(out, "%s: %s went through %s in %s and came back identical\n", s.Topic, counted(p.Rows, "row"), p.Topic, counted(p.Batches, "commit"))
			continue
		}
		bad++
		fmt.Fprintf(out, "%s: %d of %d rows differ:\n", s.Topic, p.Differing, p.Rows)
		for _, d := range p.Differences {
			fmt.Fprintln(out, "  "+d)
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d streams do not come back as they were sent", bad, len(cfg.Streams))
	}
	return nil
}

// fillIn starts what neither flags nor configuration nor environment give, below a temporary folder; end takes it away.
func (f *landFlags) fillIn() (end func() error, err error) {
	given, err := f.given()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tributary-prove-")
	if err != nil {
		return nil, err
	}
	closers := []func() error{func() error { return os.RemoveAll(dir) }}
	end = func() error {
		var errs []error
		for i := len(closers) - 1; i >= 0; i-- {
			errs = append(errs, closers[i]())
		}
		return errors.Join(errs...)
	}
	if len(given.Brokers) == 0 {
		b, err := embedded.StartBroker(embedded.BrokerConfig{})
		if err != nil {
			return nil, errors.Join(err, end())
		}
		closers = append(closers, b.Close)
		f.over.Brokers = b.Addrs()
	}
	if given.Registry == "" {
		r, err := embedded.StartRegistry(embedded.RegistryConfig{})
		if err != nil {
			return nil, errors.Join(err, end())
		}
		closers = append(closers, r.Close)
		f.over.Registry = r.URL()
	}
	if given.Lake == "" {
		f.over.Lake = filepath.Join(dir, "lake")
	}
	return end, nil
}

// given is what flags, configuration and environment say, without any stream.
func (f *landFlags) given() (land.Config, error) {
	bare := *f
	bare.declarations = ""
	return bare.resolve(context.Background(), nil)
}
