package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/engine/internal/group"
	"github.com/tributary-io/tributary/internal/child"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

func realCluster(t *testing.T) *brokertest.Cluster {
	t.Helper()
	return &brokertest.Cluster{Addrs: realkafka.Shared(t, 1).Addrs()}
}

// Under the streams protocol brokers assign the tasks; instances share them, and take them over from one that closes at once.
func TestStreamsGroupSharesTasks(t *testing.T) {
	a := newApp(t, realCluster(t), "streams-share")
	a.create("in", 6)
	a.create("out", 2)
	out := a.read("out")
	produced := 0
	feed := func() { a.produce("in", 6, numbered(600, 20)...); produced += 600 }
	feed()
	i1 := a.start(counts(a.name), "i1", GroupProtocol(Streams))
	i1.await(t, "the first has all", func(s Stats) bool { return runningTasks(s) == 12 && s.State == Running })
	feed()
	i2 := a.start(counts(a.name), "i2", GroupProtocol(Streams))
	feed()
	i2.await(t, "the second has its half", func(s Stats) bool { return runningTasks(s) == 6 })
	i1.await(t, "the first has its half", func(s Stats) bool { return len(s.Tasks) == 6 })

	members, err := group.DescribeStreams(t.Context(), a.c.Client(t), a.name)
	if err != nil || len(members) != 2 || len(members[0].Tasks.Active) != 6 || len(members[1].Tasks.Active) != 6 {
		t.Fatalf("the coordinator shows %+v, %v", members, err)
	}
	feed()
	i1.stop(t)
	feed()
	i2.await(t, "all tasks", func(s Stats) bool { return runningTasks(s) == 12 })
	eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= int64(produced) })
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
}

// An application goes from the classic protocol to the streams protocol, and back, with its offsets and its state, while it doesn't run.
func TestProtocolIsChangedOffline(t *testing.T) {
	a := newApp(t, realCluster(t), "streams-move")
	a.create("in", 2)
	a.create("out", 1)
	out := a.read("out")
	for round, protocol := range []Protocol{Classic, Streams, Streams, Classic} {
		a.produce("in", 2, numbered(1000, 100)...)
		i := a.start(counts(a.name), "i1", GroupProtocol(protocol))
		eventually(t, "counted", func() bool { return total(out.lastCounts()) >= int64(1000*(round+1)) })
		for _, task := range i.Stats().Tasks {
			if task.Restore.Records != 0 {
				t.Errorf("round %d: task %s restored %d records although its state was on disk", round, task.Name, task.Restore.Records)
			}
		}
		i.stop(t)
	}
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
	if got := total(out.lastCounts()); got != 4000 {
		t.Errorf("counted %d, want 4000", got)
	}
}

// Auto takes the streams protocol where it can be had.
func TestProtocolIsChosen(t *testing.T) {
	t.Run("by what the brokers speak", func(t *testing.T) {
		a := newApp(t, brokertest.Embedded(t), "choose")
		a.create("in", 1)
		a.create("out", 1)
		i := a.start(counts(a.name), "i1", GroupProtocol(Auto))
		i.await(t, "it runs", func(s Stats) bool { return s.State == Running })
		if i.protocol != Classic {
			t.Errorf("chose %v on a broker without the streams protocol", i.protocol)
		}
		i.stop(t)
		err := a.start(counts(a.name), "i1", GroupProtocol(Streams)).failure(t)
		if err == nil || !strings.Contains(err.Error(), "GroupProtocol(Classic)") {
			t.Errorf("the streams protocol on such a broker: %v", err)
		}
	})
	t.Run("by who is in the group", func(t *testing.T) {
		a := newApp(t, realCluster(t), "choose")
		a.create("in", 2)
		a.create("out", 1)
		first := a.start(counts(a.name), "i1", GroupProtocol(Classic))
		first.await(t, "it runs", func(s Stats) bool { return s.State == Running })
		second := a.start(counts(a.name), "i2", GroupProtocol(Auto))
		second.await(t, "it runs", func(s Stats) bool { return s.State == Running })
		if second.protocol != Classic {
			t.Errorf("chose %v beside members of the classic protocol", second.protocol)
		}
		err := a.start(counts(a.name), "i3", GroupProtocol(Streams)).failure(t)
		if err == nil || !strings.Contains(err.Error(), "classic protocol: stop them first") {
			t.Errorf("joining beside members of the classic protocol: %v", err)
		}
		second.stop(t)
		first.stop(t)
		third := a.start(counts(a.name), "i3", GroupProtocol(Auto))
		third.await(t, "it runs", func(s Stats) bool { return s.State == Running })
		if third.protocol != Streams {
			t.Errorf("chose %v in an empty group", third.protocol)
		}
		fatal := a.start(counts(a.name), "i4", GroupProtocol(Classic)).failure(t)
		var why *group.FatalError
		if !errors.As(fatal, &why) {
			t.Errorf("a classic member in a streams group: %v", fatal)
		}
	})
	t.Run("by the topology", func(t *testing.T) {
		a := newApp(t, realCluster(t), "choose-pattern")
		a.create("in", 2)
		a.create("out", 1)
		b := topology.NewBuilder(a.name)
		b.StreamPattern(a.name+"-i.*", serde.String, serde.String).To(a.topic("out"))
		plan, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		i := a.start(plan, "i1", GroupProtocol(Auto))
		i.await(t, "it runs", func(s Stats) bool { return s.State == Running })
		if i.protocol != Classic {
			t.Errorf("chose %v for a topology with a pattern", i.protocol)
		}
	})
}

// Brokers don't change the topology of a streams group: the second one is refused with advice, and the first goes on.
func TestStreamsGroupRefusesAnotherTopology(t *testing.T) {
	a := newApp(t, realCluster(t), "streams-other")
	a.create("in", 2)
	a.create("out", 1)
	i := a.start(counts(a.name), "i1", GroupProtocol(Streams))
	i.await(t, "it has its tasks", func(s Stats) bool { return s.State == Running && runningTasks(s) == 4 })
	b := topology.NewBuilder(a.name)
	b.Stream(a.topic("in"), serde.String, serde.String).
		GroupByKey().
		Count(topology.Store("others")).
		ToStream().
		To(a.topic("out"))
	other, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	refused := a.start(other, "i2", GroupProtocol(Streams)).failure(t)
	for _, want := range []string{
		"brokers don't change the topology of a streams group",
		"sub-topology 0 keeps its state in streams-other-others-changelog: only here",
		"sub-topology 1 reads streams-other-by-value-repartition: only in the group's",
	} {
		if refused == nil || !strings.Contains(refused.Error(), want) {
			t.Errorf("another topology: %v, want %q in it", refused, want)
		}
	}
	if s := i.Stats(); s.State != Running || runningTasks(s) != 4 {
		t.Errorf("the first is in state %v with %d tasks", s.State, runningTasks(s))
	}
}

// Brokers know topics, not what is in them. A version that writes something else into them is refused by its own comparison with those that are
// there, and one whose operators differ only is not.
func TestStreamsGroupRefusesOtherRecords(t *testing.T) {
	a := newApp(t, realCluster(t), "streams-records")
	a.create("in", 2)
	a.create("out", 1)
	version := func(value serde.Serde[string], extra bool) *topology.Plan {
		b := topology.NewBuilder(a.name)
		in := b.Stream(a.topic("in"), serde.String, serde.String)
		if extra {
			in = in.Filter(func(_, _ string) bool { return true })
		}
		in.Repartition(topology.Name("r"), topology.ValueSerde(value)).
			GroupByKey().
			Reduce(func(_, v string) string { return v }, topology.Store("last"), topology.ValueSerde(value)).
			ToStream().
			To(a.topic("out"), topology.ValueSerde(value))
		return build(b)
	}
	i1 := a.start(version(serde.String, false), "i1", GroupProtocol(Streams))
	i1.await(t, "it has its tasks", func(s Stats) bool { return s.State == Running && runningTasks(s) == 4 })
	refused := a.start(version(serde.JSON[string](), false), "i2", GroupProtocol(Streams)).failure(t)
	var declared *group.DeclaredError
	if !errors.As(refused, &declared) || !strings.Contains(refused.Error(), "store last is ") || !strings.Contains(refused.Error(), "topic streams-records-r-repartition is ") {
		t.Errorf("another serde: %v", refused)
	}
	if s := i1.Stats(); s.State != Running || runningTasks(s) != 4 {
		t.Errorf("the first is in state %v with %d tasks: the refused one has taken some", s.State, runningTasks(s))
	}
	i3 := a.start(version(serde.String, true), "i3", GroupProtocol(Streams))
	i3.await(t, "another operator is no obstacle", func(s Stats) bool { return s.State == Running && runningTasks(s) > 0 })
}

// A killed instance takes its own place again at once; one that was stopped for longer than its session comes back as a new member. Every
// input counts once.
func TestStreamsGroupSurvivesKillsAndZombies(t *testing.T) {
	a := newApp(t, realCluster(t), "streams-kill")
	a.create("in", 6)
	a.create("out", 3)
	out := a.read("out")
	spawn := func(name string) *child.Process { return a.spawnWith(name, instanceArgs{Protocol: Streams}) }
	children := map[string]*child.Process{"a": spawn("a"), "b": spawn("b")}
	for _, ch := range children {
		eventually(t, "every instance has tasks", func() bool { return says(ch, "tasks assigned") })
	}
	produced := 0
	feed := func() {
		a.produce("in", 6, numbered(2000, 50)...)
		produced += 2000
		time.Sleep(150 * time.Millisecond)
	}
	feed()
	children["a"].Kill()
	if err := os.Remove(filepath.Join(a.dir, "a.log")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	children["a"] = spawn("a")
	feed()
	eventually(t, "the killed one has tasks again", func() bool { return says(children["a"], "tasks assigned") })
	t.Logf("the killed instance had tasks again after %v; its session is 6 s", time.Since(began))

	signal(t, children["b"], syscall.SIGSTOP)
	for range 10 {
		feed()
	}
	eventually(t, "b's session is over: its tasks run elsewhere", func() bool { return total(out.lastCounts()) >= int64(produced) })
	feed()
	signal(t, children["b"], syscall.SIGCONT)
	feed()
	eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= int64(produced) })
	time.Sleep(300 * time.Millisecond) // for what shouldn't come
	if got := total(out.lastCounts()); got != int64(produced) {
		t.Errorf("counted %d records, want %d", got, produced)
	}
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
}

// Kafka's own tool shows the group with its tasks, members and lag.
func TestKafkaStreamsGroupsToolShowsTheGroup(t *testing.T) {
	kafka := realkafka.Shared(t, 1)
	a := newApp(t, &brokertest.Cluster{Addrs: kafka.Addrs()}, "streams-tool")
	a.create("in", 2)
	a.create("out", 1)
	a.produce("in", 2, numbered(100, 10)...)
	i := a.start(counts(a.name), "i1", GroupProtocol(Streams), HTTP("127.0.0.1:0"))
	i.await(t, "all is read", func(s Stats) bool { return runningTasks(s) == 4 && s.Lag == 0 })
	show := func(what string) string {
		out, err := kafka.Tool(t.Context(), "org.apache.kafka.tools.streams.StreamsGroupCommand", "--describe", "--group", a.name, what)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := show("--state"); !strings.Contains(out, "Stable") {
		t.Errorf("--state shows\n%s", out)
	}
	if out := show("--members"); !strings.Contains(out, i.identity.UUID().String()) || !strings.Contains(out, "0:[0,1]") || !strings.Contains(out, "1:[0,1]") {
		t.Errorf("--members shows\n%s", out)
	}
	if out := show("--offsets"); !strings.Contains(out, a.topic("in")) || !strings.Contains(out, a.name+"-by-value-repartition") {
		t.Errorf("--offsets shows\n%s", out)
	}
}

// Members are thrown out, answers get lost, instances come and go: every input counts once. The coordinator of the test checks that no task
// is in two places.
func TestStreamsFaultsCountOnce(t *testing.T) {
	c := brokertest.Embedded(t)
	coordinator := c.TeachStreams(t, 3*time.Second, 50*time.Millisecond)
	a := newApp(t, c, "streams-faults")
	a.create("in", 4)
	a.create("out", 2)
	out := a.read("out")
	produced := 0
	feed := func() { a.produce("in", 4, numbered(500, 20)...); produced += 500 }
	start := func(name string) *instance {
		i := a.start(counts(a.name), name, GroupProtocol(Streams))
		defer func() {
			if t.Failed() {
				t.Log(coordinator)
			}
		}()
		i.await(t, "it has tasks", func(s Stats) bool { return runningTasks(s) > 0 })
		return i
	}
	i1, i2 := start("i1"), start("i2")
	for round := range 4 {
		feed()
		coordinator.Fence(i1.identity.UUID().String(), []error{kerr.UnknownMemberID, kerr.FencedMemberEpoch}[round%2])
		feed()
		coordinator.LoseReplies(2)
		feed()
		i2.stop(t)
		feed()
		i2 = start("i2")
	}
	eventually(t, "all counted", func() bool { return total(out.lastCounts()) >= int64(produced) })
	if got := total(out.lastCounts()); got != int64(produced) {
		t.Errorf("counted %d records, want %d", got, produced)
	}
	if err := out.onlyRises(); err != nil {
		t.Error(err)
	}
}

// Brokers place standbys as the group's settings say, and an instance takes over from its copies.
func TestStreamsGroupWithStandbys(t *testing.T) {
	a := newApp(t, realCluster(t), "streams-standbys")
	a.create("in", 4)
	a.create("out", 1)
	out := a.read("out")
	a.setGroup("streams.num.standby.replicas", "1")
	a.produce("in", 4, numbered(4000, 700)...)
	log2 := &events{}
	i1 := a.start(counts(a.name), "i1", GroupProtocol(Streams))
	i2 := a.start(counts(a.name), "i2", GroupProtocol(Streams), OnRestore(log2.add))
	for _, i := range []*instance{i1, i2} {
		i.await(t, "half of the tasks", func(s Stats) bool { return statefulTasks(s) == 2 })
		i.caughtUp(t, 2)
	}
	eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 4000 })
	i2.caughtUp(t, 2)
	_, before := log2.count(RestoreEnded, false)
	i1.stop(t)
	i2.await(t, "all tasks", func(s Stats) bool { return statefulTasks(s) == 4 })
	a.produce("in", 4, numbered(400, 700)...)
	eventually(t, "all counted", func() bool { return total(out.lastCounts()) == 4400 })
	if _, after := log2.count(RestoreEnded, false); after-before > 100 {
		t.Errorf("restored %d records, though there were standbys", after-before)
	}
}

// setGroup sets a setting of the application's group on the brokers.
func (a *app) setGroup(name, value string) {
	a.t.Helper()
	set := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	set.Name, set.Value = name, &value
	group := kmsg.NewIncrementalAlterConfigsRequestResource()
	group.ResourceType, group.ResourceName, group.Configs = kmsg.ConfigResourceTypeGroupConfig, a.name, append(group.Configs, set)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, group)
	resp, err := req.RequestWith(a.t.Context(), a.c.Client(a.t))
	if err == nil {
		err = kerr.ErrorForCode(resp.Resources[0].ErrorCode)
	}
	if err != nil {
		a.t.Fatalf("set %s of group %s: %v", name, a.name, err)
	}
}
