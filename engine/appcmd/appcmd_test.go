package appcmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/engine/devbroker"
	"github.com/tributary-io/tributary/processors"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

// counting is an application that counts words, in a store with a name.
func counting(store string) Application {
	return Application{
		Build: func() (*topology.Plan, error) {
			b := topology.NewBuilder("counting")
			b.Stream("words", serde.String, serde.Int64).GroupByKey().Count(topology.Store(store)).ToStream().To("counts")
			return b.Build()
		},
		Options:               []engine.Option{engine.CommitInterval(20 * time.Millisecond)},
		TransactionalIDPrefix: "mine.",
		Writes:                []string{"words.chosen"},
		ErrorHandlers:         processors.Handlers{Deserialization: processors.DeadLetterOnError("words.dead"), Processing: processors.SkipOnError()},
	}
}

// output runs a command and gives what it prints.
func output(ctx context.Context, app Application, args ...string) (string, error) {
	var out bytes.Buffer
	root := newRoot(app)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

func TestPlans(t *testing.T) {
	text, err := output(t.Context(), counting("totals"), "describe")
	if err != nil || !strings.Contains(text, "Sub-topology: 0") || !strings.Contains(text, "counting-totals-changelog") {
		t.Errorf("describe: %v\n%s", err, text)
	}
	if text, err := output(t.Context(), counting("totals"), "explain"); err != nil || !strings.Contains(text, "store totals") {
		t.Errorf("explain: %v\n%s", err, text)
	}
	saved, err := output(t.Context(), counting("totals"), "explain", "--json")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(file, []byte(saved), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := output(t.Context(), counting("totals"), "diff", file); err != nil {
		t.Errorf("diff with itself: %v\n%s", err, text)
	}
	if text, err := output(t.Context(), counting("sums"), "diff", file); !errors.Is(err, ErrLoses) || !strings.Contains(text, "totals") {
		t.Errorf("diff with a renamed store: %v\n%s", err, text)
	}
	text, err = output(t.Context(), counting("totals"), "acls", "--principal", "User:me")
	if err != nil || !strings.Contains(text, "User:me") || !strings.Contains(text, "--topic 'words.dead'") || !strings.Contains(text, "--topic 'words.chosen'") || !strings.Contains(text, "'mine.counting-'") {
		t.Errorf("acls: %v\n%s", err, text)
	}
}

func TestExitCodes(t *testing.T) {
	fails := Application{Build: func() (*topology.Plan, error) { return nil, errors.New("no serde") }}
	for _, c := range []struct {
		app  Application
		args []string
		code int
	}{
		{counting("totals"), []string{"acls"}, 0},
		{fails, []string{"describe"}, 1},
		{Application{Build: func() (*topology.Plan, error) { return nil, nil }}, []string{"describe"}, 1},
		{counting("totals"), []string{"reset", "--lake", "burn"}, 1},
		{counting("totals"), []string{"diff", "no-such-file"}, 2},
		{counting("totals"), []string{"diff"}, 2},
		{counting("totals"), []string{"diff", "--nonsense"}, 2},
	} {
		if code := main(c.app, c.args); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.args, code, c.code)
		}
	}
}

// A command that is given the wrong arguments says which it takes.
func TestMistakesSayWhatIsRight(t *testing.T) {
	root := newRoot(counting("totals"))
	root.SetArgs([]string{"diff", "old.json", "new.json"})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "diff OLD.json") || ExitCode(err) != 2 {
		t.Errorf("got %v", err)
	}
}

func TestRunAndReset(t *testing.T) {
	broker, err := devbroker.Start(devbroker.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics("counts"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopics(t.Context(), 1, 1, nil, "words", "counts", "words.dead"); err != nil {
		t.Fatal(err)
	}
	records := []*kgo.Record{{Topic: "words", Key: []byte("a"), Value: []byte("no number")}, {Topic: "words", Key: []byte("a"), Value: make([]byte, 8)}}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(t.TempDir(), "state")
	app := counting("totals")
	app.Brokers, app.StateDir = broker.Addrs(), state // what flags that aren't given have
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := output(ctx, app, "run", "--http", "127.0.0.1:0", "--advertise", "totals-1.example:8080")
		ended <- err
	}()
	waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if fetched := client.PollFetches(waiting); fetched.Err() != nil || fetched.NumRecords() != 1 {
		t.Fatalf("%d records: %v", fetched.NumRecords(), fetched.Err())
	}
	if told := toldToGroup(t, client, "counting"); !strings.Contains(told, "totals-1.example:8080") {
		t.Errorf("the group isn't told where others reach the instance: %q", told)
	}
	reset := func(more ...string) (string, error) {
		return output(t.Context(), counting("totals"), append([]string{"reset", "--brokers", broker.Addrs()[0], "--state-dir", state}, more...)...)
	}
	if text, err := reset(); err == nil {
		t.Errorf("a reset beside a running instance isn't refused:\n%s", text)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("run: %v", err)
	}
	if text, err := reset(); err != nil || !strings.Contains(text, "Nothing was changed") {
		t.Errorf("dry run: %v\n%s", err, text)
	}
	if entries, err := os.ReadDir(state); err != nil || len(entries) == 0 {
		t.Errorf("the application's state isn't in %s: %v", state, err)
	}
	if text, err := reset("--execute"); err != nil || !strings.Contains(text, "is reset") {
		t.Errorf("reset: %v\n%s", err, text)
	}
}

// toldToGroup is what the members of a group have told of themselves.
func toldToGroup(t *testing.T, client *kgo.Client, group string) string {
	t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	resp, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, g := range resp.Groups {
		for _, m := range g.Members {
			told += string(m.ProtocolMetadata)
		}
	}
	return told
}
