package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/offsets"
)

// Wanted is an internal topic as it has to be.
type Wanted struct {
	Name        string
	Partitions  int32
	Replication int16 // for creation; 0 is the broker's default
	Config      map[string]string
	Store       string // whose changelog it is; empty for others
}

// Problem is what is wrong with an internal topic.
type Problem struct {
	Topic  string
	Reason string
	Advice string
}

func (p Problem) String() string { return fmt.Sprintf("topic %s: %s; %s", p.Topic, p.Reason, p.Advice) }

// InternalError lists everything that is wrong with the internal topics.
type InternalError struct{ Problems []Problem }

func (e *InternalError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "internal topics are not as they have to be:\n  " + strings.Join(lines, "\n  ")
}

// Ensure creates the topics that don't exist and checks those that do. Several instances may do so at once. It returns all of them,
// and warnings about settings that differ without being dangerous. Dangerous differences are an *InternalError.
func Ensure(ctx context.Context, client *kgo.Client, wanted []Wanted) (found map[string]Topic, warnings []Problem, err error) {
	if len(wanted) == 0 {
		return map[string]Topic{}, nil, nil
	}
	names := make([]string, len(wanted))
	for i, w := range wanted {
		names[i] = w.Name
	}
	existing, err := Describe(ctx, client, names...)
	if err != nil {
		return nil, nil, err
	}
	if err := create(ctx, client, wanted, existing); err != nil {
		return nil, nil, err
	}
	if found, err = awaitAll(ctx, client, names); err != nil {
		return nil, nil, fmt.Errorf("wait for internal topics: %w", err)
	}
	before := slices.DeleteFunc(slices.Clone(wanted), func(w Wanted) bool { _, ok := existing[w.Name]; return !ok })
	bad, warnings, err := check(ctx, client, before, found) // brokers don't know the settings of what was just created at once
	if err != nil {
		return nil, nil, err
	}
	if len(bad) > 0 {
		return nil, warnings, &InternalError{Problems: bad}
	}
	return found, warnings, nil
}

func create(ctx context.Context, client *kgo.Client, wanted []Wanted, existing map[string]Topic) error {
	admin := kadm.NewClient(client)
	var errs []error
	for _, w := range wanted {
		if _, ok := existing[w.Name]; ok {
			continue
		}
		replication := w.Replication
		if replication == 0 {
			replication = -1
		}
		configs := make(map[string]*string, len(w.Config))
		for k, v := range w.Config {
			configs[k] = &v
		}
		err := answered(ctx, func() error {
			_, err := admin.CreateTopic(ctx, w.Partitions, replication, configs, w.Name)
			return err
		})
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) { // another instance was there first
			errs = append(errs, fmt.Errorf("create internal topic %s with %d partitions: %w", w.Name, w.Partitions, err))
		}
	}
	return errors.Join(errs...)
}

// answered asks again for a while where a broker takes a connection and closes it without an answer. One that is going down does so; the client takes
// it for a broker that misses a password, and gives up.
func answered(ctx context.Context, ask func() error) error {
	for end := time.Now().Add(propagation); ; {
		err := ask()
		var closed *kgo.ErrFirstReadEOF
		if !errors.As(err, &closed) || time.Now().After(end) || offsets.Pause(ctx) != nil {
			return err
		}
	}
}

func check(ctx context.Context, client *kgo.Client, wanted []Wanted, found map[string]Topic) (bad, warnings []Problem, err error) {
	if len(wanted) == 0 {
		return nil, nil, nil
	}
	names := make([]string, len(wanted))
	for i, w := range wanted {
		names[i] = w.Name
	}
	described, err := settings(ctx, client, names)
	if err != nil {
		return nil, nil, fmt.Errorf("describe the settings of internal topics: %w", err)
	}
	for _, w := range wanted {
		if got := found[w.Name].Partitions; got != w.Partitions {
			bad = append(bad, Problem{w.Name, fmt.Sprintf("it has %d partitions, but %d are needed", got, w.Partitions),
				"the input topics have changed, or the topology has: reset the application, or give it another id"})
		}
		rc, err := described.On(w.Name, nil)
		if err != nil || rc.Err != nil {
			return nil, nil, fmt.Errorf("describe the settings of %s: %w", w.Name, errors.Join(err, rc.Err))
		}
		for _, p := range differences(w, rc.Configs) {
			if p.dangerous {
				bad = append(bad, p.Problem)
			} else {
				warnings = append(warnings, p.Problem)
			}
		}
	}
	return bad, warnings, nil
}

// settings asks for the topics' settings. A broker that has just started may not know a topic yet: it is asked again for a while.
func settings(ctx context.Context, client *kgo.Client, names []string) (kadm.ResourceConfigs, error) {
	ctx, cancel := context.WithTimeout(ctx, propagation)
	defer cancel()
	for {
		described, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, names...)
		for _, rc := range described {
			err = errors.Join(err, rc.Err)
		}
		if err == nil {
			return described, nil
		}
		var answer *kerr.Error
		if errors.As(err, &answer) && !answer.Retriable {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

type difference struct {
	Problem
	dangerous bool
}

// differences compares settings. A cleanup policy that deletes what is still needed is dangerous; the rest is a matter of taste.
func differences(w Wanted, configs []kadm.Config) (all []difference) {
	got := map[string]string{}
	for _, c := range configs {
		if c.Value != nil {
			got[c.Key] = *c.Value
		}
	}
	for key, want := range w.Config {
		have, ok := got[key]
		if !ok || sameSetting(key, want, have) {
			continue
		}
		d := difference{Problem: Problem{w.Name, fmt.Sprintf("%s is %q, expected %q", key, have, want), "set it with kafka-configs, or leave it if that is what you want"}}
		switch key {
		case "cleanup.policy":
			d.dangerous, d.Advice = true, fmt.Sprintf("set it: kafka-configs --alter --topic %s --add-config cleanup.policy=[%s]", w.Name, want)
			if w.Store != "" {
				d.Advice = fmt.Sprintf("it was probably made for another kind of store (with or without windows): if store %q was declared otherwise before, leave the topic as it is, "+
					"and give the store another name with topology.Store, or reset the application (docs/operations/changing-a-topology.md); only if the store hasn't changed, s%s", w.Store, d.Advice[1:])
			}
		case "retention.ms":
			d.Advice = fmt.Sprintf("brokers delete by it what is older by its own time, whether it is needed or not. "+
				"Set it: kafka-configs --alter --topic %s --add-config retention.ms=%s; or leave it if that is what you want", w.Name, want)
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b difference) int { return strings.Compare(a.Reason, b.Reason) })
	return all
}

// sameSetting compares what is wanted with what there is. Records that are kept for longer than they have to be do no harm.
func sameSetting(key, a, b string) bool {
	switch key {
	case "retention.ms":
		want, err1 := strconv.ParseInt(a, 10, 64)
		have, err2 := strconv.ParseInt(b, 10, 64)
		return err1 == nil && err2 == nil && (have == want || have < 0 || want >= 0 && have > want)
	case "cleanup.policy":
	default:
		return a == b
	}
	split := func(s string) []string { return slices.Sorted(slices.Values(strings.Split(s, ","))) }
	return slices.Equal(split(a), split(b))
}
