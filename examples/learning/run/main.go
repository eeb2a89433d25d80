// Command run runs the learning platform: all of it at once (demo), or part by part. See the README beside it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/devbroker"
	"github.com/tributary-io/tributary/examples/learning"
	_ "github.com/tributary-io/tributary/lake/object/s3store" // a lake at s3://
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(os.Getenv).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "learning:", err)
		var late *learning.IncompleteError
		if errors.As(err, &late) {
			os.Exit(3) // a scheduler tries again
		}
		os.Exit(1)
	}
}

// flags are what all commands are told.
type flags struct {
	brokers, lake, dir, http string
	user, passwordFile       string
	verbose                  bool
	broker                   *devbroker.Broker
}

func command(getenv func(string) string) *cobra.Command {
	f := &flags{}
	root := &cobra.Command{Use: "run", Short: "The learning platform's data products", SilenceUsage: true, SilenceErrors: true}
	p := root.PersistentFlags()
	p.StringVar(&f.brokers, "brokers", getenv("KAFKA_BOOTSTRAP"), "brokers of a Kafka cluster, host:port,… (KAFKA_BOOTSTRAP); empty: one in this process, in --dir")
	p.StringVar(&f.dir, "dir", "learning-data", "folder for local state, the embedded broker, and the lake")
	p.StringVar(&f.lake, "lake", "", "folder or URL of the lake; empty: below --dir")
	p.StringVar(&f.http, "http", "", "host:port on which the cohort can be asked")
	p.StringVar(&f.user, "user", "", "SASL user (SCRAM-SHA-512)")
	p.StringVar(&f.passwordFile, "password-file", "", "file with the user's password")
	p.BoolVarP(&f.verbose, "verbose", "v", false, "log what the engines do")
	root.AddCommand(f.demo(), f.serve(), f.courseDay(), f.reconcile(), f.acls())
	return root
}

// setting connects: to the brokers, or to one of its own.
func (f *flags) setting() (learning.Setting, error) {
	level := slog.LevelError // rejected records are warnings, and there on purpose
	if f.verbose {
		level = slog.LevelInfo
	}
	s := learning.Setting{Dir: f.dir, HTTP: f.http, Batches: 2 * time.Second, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))}
	if f.lake == "" {
		f.lake = filepath.Join(f.dir, "lake")
	}
	var err error
	if s.Client, err = f.security(); err != nil {
		return s, err
	}
	if f.brokers != "" {
		s.Brokers = strings.Split(f.brokers, ",")
		return s, nil
	}
	if f.broker, err = devbroker.Start(devbroker.Config{Dir: filepath.Join(f.dir, "broker"), Logger: s.Log}); err != nil {
		return s, err
	}
	s.Brokers = f.broker.Addrs()
	return s, nil
}

// done releases what setting started.
func (f *flags) done() error {
	if f.broker == nil {
		return nil
	}
	return f.broker.Close()
}

// with runs a command between setting and done.
func (f *flags) with(run func(ctx context.Context, s learning.Setting) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		s, err := f.setting()
		if err != nil {
			return err
		}
		return errors.Join(run(cmd.Context(), s), f.done())
	}
}

func (f *flags) demo() *cobra.Command {
	var spec learning.Spec
	var first string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Produce generated days, run all products until they have caught up, compute course_day, and reconcile",
		Args:  cobra.NoArgs,
	}
	cmd.RunE = f.with(func(ctx context.Context, s learning.Setting) (err error) {
		if spec.FirstDay, err = time.Parse(time.DateOnly, first); err != nil {
			return fmt.Errorf("--first-day: %w", err)
		}
		d := learning.Demo{Setting: s, Lake: f.lake, Spec: spec, Out: cmd.OutOrStdout(), Now: time.Now}
		return d.Run(ctx)
	})
	cmd.Flags().StringVar(&first, "first-day", "2026-06-01", "first day of the events, YYYY-MM-DD")
	cmd.Flags().IntVar(&spec.Days, "days", 3, "days")
	cmd.Flags().IntVar(&spec.Learners, "learners", 60, "learners")
	cmd.Flags().IntVar(&spec.Courses, "courses", 6, "courses")
	cmd.Flags().IntVar(&spec.Events, "events", 2000, "progress events a day")
	cmd.Flags().Uint64Var(&spec.Seed, "seed", 1, "the same seed gives the same events")
	return cmd
}

func (f *flags) serve() *cobra.Command {
	return &cobra.Command{
		Use:   "serve [PRODUCT…]",
		Short: "Run products until interrupted: landing, activity, activity-distinct, cohort, quality; all without arguments",
		RunE: func(cmd *cobra.Command, names []string) error {
			return f.with(func(ctx context.Context, s learning.Setting) error {
				all, err := learning.Products(f.lake)
				if err != nil {
					return err
				}
				picked, err := learning.Pick(all, names...)
				if err != nil {
					return err
				}
				if f.broker != nil { // nobody else can have made the topics
					if err := withProducer(s, func(p *learning.Producer) error { return learning.CreateTopics(ctx, p.Client()) }); err != nil {
						return err
					}
				}
				return s.Run(ctx, picked)
			})(cmd, nil)
		},
	}
}

func withProducer(s learning.Setting, run func(*learning.Producer) error) error {
	p, err := learning.NewProducer(s.Brokers, s.Client...)
	if err != nil {
		return err
	}
	defer p.Close()
	return run(p)
}

func (f *flags) courseDay() *cobra.Command {
	var date, asOf string
	var wait bool
	cmd := &cobra.Command{
		Use:   "course-day",
		Short: "Compute a day and restate the two before it, once its input has landed",
		Long: "The day's input must have landed through the end offsets as of 02:00 UTC of the next day; the exit code is 3 if it has not.\n" +
			"With --wait it waits for that until 06:00 UTC.",
		Args: cobra.NoArgs,
	}
	cmd.RunE = f.with(func(ctx context.Context, s learning.Setting) error {
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			return fmt.Errorf("--date: %w", err)
		}
		moment, err := momentOf(asOf, learning.AsOf(day))
		if err != nil {
			return err
		}
		until := time.Time{}
		if wait {
			until = learning.ReadyBy(day)
		}
		return withProducer(s, func(p *learning.Producer) error {
			h, err := learning.AwaitHandoff(ctx, p.Client(), f.lake, moment, until, time.Now)
			if h != nil {
				fmt.Fprint(cmd.OutOrStdout(), h)
			}
			if err != nil {
				return err
			}
			days, err := learning.RunCourseDay(ctx, f.lake, day, h, time.Now())
			for _, d := range days {
				fmt.Fprintf(cmd.OutOrStdout(), "course_day %s: %d rows\n", d.Day, len(d.Rows))
			}
			return err
		})
	})
	cmd.Flags().StringVar(&date, "date", "", "the day, YYYY-MM-DD")
	cmd.Flags().StringVar(&asOf, "as-of", "", "the moment whose end offsets count, RFC 3339 or now; empty: 02:00 UTC of the next day")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until 06:00 UTC of the next day for what has not landed")
	_ = cmd.MarkFlagRequired("date")
	return cmd
}

func momentOf(text string, otherwise time.Time) (time.Time, error) {
	switch text {
	case "":
		return otherwise, nil
	case "now":
		return time.Now(), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("--as-of: %w", err)
	}
	return t, nil
}

func (f *flags) reconcile() *cobra.Command {
	var date string
	cmd := &cobra.Command{Use: "reconcile", Short: "Compare a day of the activity tile with course_day, and explain every difference", Args: cobra.NoArgs}
	cmd.RunE = f.with(func(ctx context.Context, s learning.Setting) error {
		day, err := time.Parse(time.DateOnly, date)
		if err != nil {
			return fmt.Errorf("--date: %w", err)
		}
		return withProducer(s, func(p *learning.Producer) error {
			opts := append([]kgo.Opt{kgo.SeedBrokers(s.Brokers...)}, s.Client...)
			r, err := learning.Reconcile(ctx, p.Client(), opts, f.lake, day)
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), r)
			if n := r.Unexplained(); n > 0 {
				return fmt.Errorf("%d events that nothing explains", n)
			}
			return nil
		})
	})
	cmd.Flags().StringVar(&date, "date", "", "the day, YYYY-MM-DD")
	_ = cmd.MarkFlagRequired("date")
	return cmd
}

func (f *flags) acls() *cobra.Command {
	return &cobra.Command{
		Use:   "acls",
		Short: "Print the kafka-acls.sh commands that give the platform's principals their rights",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			grants, err := learning.Grants()
			if err != nil {
				return err
			}
			for _, g := range grants {
				fmt.Fprintln(cmd.OutOrStdout(), g.Command(g.Principal))
			}
			return nil
		},
	}
}
