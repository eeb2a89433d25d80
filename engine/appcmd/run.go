package appcmd

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/console"
	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/kafkaflags"
)

// cluster is the flags that reach one, and what an instance of it has here.
type cluster struct {
	brokers  []string
	security kafkaflags.Flags
	stateDir string
}

func (c *cluster) add(flags *pflag.FlagSet, app Application) {
	brokers := app.Brokers
	if len(brokers) == 0 {
		brokers = []string{"localhost:9092"}
	}
	flags.StringSliceVar(&c.brokers, "brokers", brokers, "some brokers of the cluster, host:port")
	flags.StringVar(&c.stateDir, "state-dir", cmp.Or(app.StateDir, "state"), "folder for local state; instances on one machine need one each")
	c.security.Add(flags)
}

// client are options that carry the security.
func (c *cluster) client() ([]kgo.Opt, error) { return c.security.Options(os.Getenv) }

func newRun(app Application) *cobra.Command {
	var (
		c cluster
		s serving
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run an instance until it is interrupted",
		Long: "Runs one instance of the application. Start it more than once, each with a --state-dir of its own, and the instances share the tasks.\n" +
			"An interrupt, or SIGTERM, drains and commits.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := app.plan()
			if err != nil {
				return err
			}
			client, err := c.client()
			if err != nil {
				return err
			}
			e, err := engine.New(plan, c.options(app, client, s)...)
			if err != nil {
				return err
			}
			return e.Run(cmd.Context())
		},
	}
	c.add(cmd.Flags(), app)
	s.add(cmd.Flags())
	return cmd
}

// serving is what an instance serves, and where.
type serving struct {
	http, advertise string
	console         bool
}

func (s *serving) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.http, "http", "", "address to serve /console, /metrics, /healthz and /readyz on, such as :8080")
	flags.StringVar(&s.advertise, "advertise", "", "address, host:port or a URL, under which other instances reach that one, for queries and checkpoints; without it where\n"+
		"it listens, by the host's name if that is all addresses")
	flags.BoolVar(&s.console, "console", true, "serve the page about the instance there")
}

// options are the application's and those of flags, which go before.
func (c *cluster) options(app Application, client []kgo.Opt, s serving) []engine.Option {
	all := []engine.Option{engine.Processing(app.Guarantee), engine.TransactionalIDPrefix(app.TransactionalIDPrefix), engine.Brokers(c.brokers...),
		engine.StateDir(c.stateDir), engine.Client(client...), engine.ErrorHandlers(app.ErrorHandlers), console.Serve()}
	all = append(all, app.Options...)
	if s.http != "" {
		all = append(all, engine.HTTP(s.http))
	}
	if s.advertise != "" {
		all = append(all, engine.Advertise(s.advertise))
	}
	if !s.console {
		all = append(all, console.Off())
	}
	return all
}
