package learning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/realkafka"
)

// line is a grant as the list has it.
func line(principal string, a engine.ACL) string {
	name := a.Name
	if a.Prefixed {
		name += "*"
	}
	return fmt.Sprintf("%-32s %-17s %-58s %s", principal, a.Resource, name, strings.Join(a.Operations, ","))
}

// The products' principals have what their topologies need, and no more. With UPDATE_ACLS=1 the list is written anew.
func TestProductsHaveTheRightsThatTheyNeed(t *testing.T) {
	var want []string
	principals := map[string]bool{}
	for _, p := range must(Products("lake"))(t) {
		principals[p.Principal] = true
		for _, a := range engine.RequiredACLs(p.Plan, engine.ACLOptions{Writes: p.Writes}) {
			want = append(want, line(p.Principal, a))
		}
	}
	var got, others []string
	for _, g := range must(Grants())(t) {
		if principals[g.Principal] {
			got = append(got, line(g.Principal, g.ACL))
		} else {
			others = append(others, line(g.Principal, g.ACL))
		}
	}
	if os.Getenv("UPDATE_ACLS") != "" {
		head, _, _ := strings.Cut(aclText, "\n\n")
		text := head + "\n\n" + strings.Join(others, "\n") + "\n\n# The products.\n" + strings.Join(want, "\n") + "\n"
		if err := os.WriteFile("acls.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// On a broker with ACLs: the tile runs with its rights and reads its topic only, and finance can't produce.
func TestRightsOnABroker(t *testing.T) {
	users := map[string]string{"learning-activity": "a", "learning-finance": "f", "learning-producer": "p", "learning-landing": "l"}
	cluster := realkafka.StartSecure(t, users)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	root := must(NewProducer(cluster.Addrs()))(t)
	defer root.Close()
	if err := CreateTopics(ctx, root.Client()); err != nil {
		t.Fatal(err)
	}
	admin := kadm.NewClient(root.Client())
	var withheld Grant
	for _, g := range must(Grants())(t) {
		if g.Principal == "User:learning-landing" && g.Name == ProgressDeadLetters {
			withheld = g
			continue
		}
		give(ctx, t, admin, g)
	}
	as := func(user string) []kgo.Opt {
		return []kgo.Opt{kgo.SASL(scram.Auth{User: user, Pass: users[user]}.AsSha512Mechanism())}
	}
	brokers := []string{cluster.SASL}

	producer := must(NewProducer(brokers, as("learning-producer")...))(t)
	defer producer.Close()
	records, want := Generate(Spec{Seed: 2, FirstDay: june, Days: 1, Learners: 10, Courses: 3, Events: 100})
	producer.Unchecked = true
	if err := producer.Produce(ctx, records...); err != nil {
		t.Fatalf("the producer's rights: %v", err)
	}
	s := quiet(t, brokers)
	s.Client = as("learning-activity")
	tile := must(Pick(must(Products("lake"))(t), "activity"))(t)
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running, tile) }()
	var counted int64
	eventually(t, "the tile counts with its rights", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the tile has ended: %v", err)
		default:
		}
		counted = 0
		windows, err := readTile(ctx, root.Client(), []kgo.Opt{kgo.SeedBrokers(cluster.Addrs()...)}, ActivityTopic, ActivityLateTopic)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range windows.counted {
			counted += n
		}
		return counted == want.Valid-want.Late-want.Tail
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	// A right that is missing ends the product, and is named; with it the product goes on.
	s.Client = as("learning-landing")
	lakeDir := t.TempDir()
	landing := must(Pick(must(Products(lakeDir))(t), "landing"))(t)
	var access *engine.AccessError
	if err := s.Run(ctx, landing); !errors.As(err, &access) || !strings.Contains(err.Error(), "Write on topic "+ProgressDeadLetters) {
		t.Fatalf("without the right to write dead letters: %v", err)
	}
	give(ctx, t, admin, withheld)
	running, stop = context.WithCancel(ctx)
	go func() { ended <- s.Run(running, landing) }()
	eventually(t, "all has landed", func() bool { return landedRows(t, lakeDir) == want.Valid })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	refused := func(user string, what string, err error) {
		t.Helper()
		if !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Errorf("%s could %s: %v", user, what, err)
		}
	}
	refused("learning-activity", "read enrollments", read(ctx, 4*time.Minute, brokers, as("learning-activity"), EnrollmentTopic))
	refused("learning-activity", "read the auditor's topic", read(ctx, 4*time.Minute, brokers, as("learning-activity"), QualityTopic))
	refused("learning-producer", "read what it writes", read(ctx, 4*time.Minute, brokers, as("learning-producer"), ProgressTopic))
	if err := read(ctx, 3*time.Second, brokers, as("learning-finance"), SeatsTopic); err != nil {
		t.Errorf("finance can't read the seats: %v", err)
	}
	finance := must(NewProducer(brokers, as("learning-finance")...))(t)
	defer finance.Close()
	refused("learning-finance", "produce", finance.Produce(ctx, records[0]))
}

// read tries to fetch a partition of a topic, and waits for an answer that long.
func read(ctx context.Context, long time.Duration, brokers []string, user []kgo.Opt, topic string) error {
	client, err := kgo.NewClient(append(clientOptions(brokers, user), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))...)
	if err != nil {
		return err
	}
	defer client.Close()
	// A topic that is empty answers nothing: that it doesn't refuse is enough.
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for _, failed := range client.PollFetches(ctx).Errors() {
		if !errors.Is(failed.Err, context.DeadlineExceeded) {
			return failed.Err
		}
	}
	return nil
}

func give(ctx context.Context, t *testing.T, admin *kadm.Client, g Grant) {
	t.Helper()
	var ops []kmsg.ACLOperation
	for _, op := range g.Operations {
		ops = append(ops, must(kmsg.ParseACLOperation(op))(t))
	}
	pattern := kadm.ACLPatternLiteral
	if g.Prefixed {
		pattern = kadm.ACLPatternPrefixed
	}
	b := kadm.NewACLs().Allow(g.Principal).AllowHosts("*").ResourcePatternType(pattern).Operations(ops...)
	switch g.Resource {
	case engine.TopicResource:
		b = b.Topics(g.Name)
	case engine.GroupResource:
		b = b.Groups(g.Name)
	case engine.TransactionalIDResource:
		b = b.TransactionalIDs(g.Name)
	default:
		t.Fatalf("a right on %q", g.Resource)
	}
	results, err := admin.CreateACLs(ctx, b)
	for _, r := range results {
		err = errors.Join(err, r.Err)
	}
	if err != nil || !slices.ContainsFunc(results, func(r kadm.CreateACLsResult) bool { return r.Principal == g.Principal }) {
		t.Fatalf("%s: %v", g, err)
	}
}
