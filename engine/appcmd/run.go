package appcmd

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/kafkaflags"
)

// cluster is the flags that reach one.
type cluster struct {
	brokers  []string
	security kafkaflags.Flags
}

func (c *cluster) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&c.brokers, "brokers", []string{"localhost:9092"}, "some brokers of the cluster, host:port")
	c.security.Add(flags)
}

// client are options that carry the security.
func (c *cluster) client() ([]kgo.Opt, error) { return c.security.Options(os.Getenv) }

func newRun(app Application) *cobra.Command {
	var (
		c              cluster
		stateDir, http string
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
			options := []engine.Option{engine.Brokers(c.brokers...), engine.Client(client...), engine.StateDir(stateDir)}
			if http != "" {
				options = append(options, engine.HTTP(http))
			}
			e, err := engine.New(plan, append(app.Options[:len(app.Options):len(app.Options)], options...)...)
			if err != nil {
				return err
			}
			return e.Run(cmd.Context())
		},
	}
	c.add(cmd.Flags())
	cmd.Flags().StringVar(&stateDir, "state-dir", "state", "folder for local state; instances on one machine need one each")
	cmd.Flags().StringVar(&http, "http", "", "address to serve /metrics, /healthz and /readyz on, such as :8080")
	return cmd
}
