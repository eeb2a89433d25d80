package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/tributary-io/tributary/examples/shop"
	"github.com/tributary-io/tributary/internal/demo"
	"github.com/tributary-io/tributary/internal/kafkaflags"
)

// demoFlags are the flags that the demonstration's commands share.
type demoFlags struct {
	cfg      demo.Config
	date     string
	security kafkaflags.Flags
}

func (f *demoFlags) addCluster(flags *pflag.FlagSet) {
	flags.StringVar(&f.cfg.Dir, "dir", "tributary-demo", "folder for all that is kept")
	flags.StringSliceVar(&f.cfg.Brokers, "brokers", nil, "brokers of a real cluster, host:port; without it an embedded one runs")
	flags.StringVar(&f.cfg.Registry, "registry", "", "URL of a Confluent-compatible schema registry; without it an embedded one runs")
	f.security.Add(flags)
}

func (f *demoFlags) addStream(flags *pflag.FlagSet) {
	flags.StringVar(&f.date, "date", "2026-06-01", "the day to emit")
	flags.IntVar(&f.cfg.Spec.Orders, "orders", 20_000, "orders placed a day; each has about three events")
	flags.Uint64Var(&f.cfg.Spec.Seed, "seed", 1, "chooses the stream: the same seed always gives the same bytes")
}

func (f *demoFlags) addEngine(flags *pflag.FlagSet) {
	flags.StringVar(&f.cfg.Lake, "lake", "", "where the tables go: a folder or the URL of a store (default <dir>/lake)")
	flags.StringVar(&f.cfg.State, "state", "", "folder for local state; instances need one each (default <dir>/state)")
	flags.StringVar(&f.cfg.HTTP, "http", "127.0.0.1:0", "address to serve /console, /metrics, /healthz and /readyz on, such as :8080; port 0 is a free one, empty for none")
}

func (f *demoFlags) finish(cmd *cobra.Command) (err error) {
	f.cfg.Out, f.cfg.Log = cmd.OutOrStdout(), slog.Default()
	if out, ok := f.cfg.Out.(*os.File); ok {
		f.cfg.Terminal = term.IsTerminal(int(out.Fd()))
	}
	if f.cfg.Client, err = securityOptions(&f.security, f.cfg.Brokers); err != nil {
		return err
	}
	if f.date == "" {
		return nil
	}
	f.cfg.Spec.Date, err = shop.ParseDate(f.date)
	return err
}

func newDemo() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Emit a day of orders, process it, and land it in Delta tables",
		Long: "Emits a day of a shop's order events (Avro, with repetitions, late events and a few records that can't be decoded), runs the\n" +
			"application of examples/orders with the real engine under exactly-once, and lands three Delta tables. It ends by itself when\n" +
			"everything has landed. Without --brokers and --registry both run inside the process and keep their data below --dir.\n\n" +
			"A second run goes on from where the first one ended; to interrupt it loses nothing. Choose the next day with --date.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.finish(cmd); err != nil {
				return err
			}
			s, err := demo.Run(cmd.Context(), f.cfg)
			if err != nil {
				return err
			}
			s.Print(f.cfg.Out)
			printNext(cmd, &f, s)
			if len(s.Books) > 0 {
				return fmt.Errorf("the tables do not agree with the model")
			}
			return nil
		},
	}
	f.addCluster(cmd.Flags())
	f.addStream(cmd.Flags())
	f.addEngine(cmd.Flags())
	cmd.AddCommand(newDemoEmit(), newDemoRun(), newDemoFlights())
	return cmd
}

// printNext prints the commands to try next.
func printNext(cmd *cobra.Command, f *demoFlags, s *demo.Summary) {
	next := f.cfg.Spec.Next().Date.Format(time.DateOnly)
	self := filepath.Base(os.Args[0])
	if strings.Contains(os.Args[0], "go-build") { // go run builds into a temporary folder
		self = "go run ./cmd/tributary"
	}
	fmt.Fprintf(f.cfg.Out, "\nNext, try:\n"+
		"  %s lake show %s\n"+
		"  %s demo --dir %s --date %s\n"+
		"  %s describe\n", self, s.Tables[1].Place, self, s.Dir, next, self)
}

func newDemoEmit() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "emit",
		Short: "Emit a day of orders to a cluster, and nothing else",
		Long: "Makes the topics, registers the schemas and emits one day. The same date, orders and seed always give the same keys and values.\n" +
			"A day that was interrupted is finished; what is there already is not emitted again.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.finish(cmd); err != nil {
				return err
			}
			e, err := demo.EmitDay(cmd.Context(), f.cfg)
			if err != nil {
				return err
			}
			fmt.Fprintf(f.cfg.Out, "emitted %d records of %s; %d were there already\n", e.Produced.Load(), f.date, e.Skipped.Load())
			return nil
		},
	}
	f.addCluster(cmd.Flags())
	f.addStream(cmd.Flags())
	return cmd
}

func newDemoRun() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run one instance of the application until it is interrupted",
		Long:  "Runs one instance. Start more of them, each with a --state folder of its own, to share the tasks.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.finish(cmd); err != nil {
				return err
			}
			return demo.Serve(cmd.Context(), f.cfg)
		},
	}
	f.addCluster(cmd.Flags())
	f.addEngine(cmd.Flags())
	return cmd
}

func newDemoFlights() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "flights",
		Short: "Run the application of examples/flights on a month of real departures",
		Long: "Emits 26,483 departures from New York's airports with planes and airports as tables, joins them, adds them up by hour, and lands\n" +
			"two Delta tables. Hours stay open for two days of event time, so the last ones are not in the table yet when it ends.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.finish(cmd); err != nil {
				return err
			}
			tables, err := demo.Flights(cmd.Context(), f.cfg)
			if err != nil {
				return err
			}
			fmt.Fprintln(f.cfg.Out, "\nLanded, each row once:")
			demo.PrintTables(f.cfg.Out, tables)
			return nil
		},
	}
	f.addCluster(cmd.Flags())
	f.addEngine(cmd.Flags())
	return cmd
}
