package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/engine/internal/identity"
	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/topology"
)

// LakeReset says what becomes of the lake tables of an application that is reset.
type LakeReset int

// The choices.
const (
	// RefuseLake refuses to reset an application that lands in tables, and names them.
	RefuseLake LakeReset = iota
	// KeepLake leaves the tables as they are, with the progress in them. What is landed straight from the user's topics goes on behind what
	// the table has. What comes through an internal topic is landed again, as new rows, since the topic is made anew.
	KeepLake
	// TruncateLake empties the tables, each in one commit (a landing in JSON Lines by one for each partition) that also makes it forget how far
	// it has come, so that all of the input lands again, each row once. Readers of older versions keep their rows until the table is vacuumed.
	// Tables in which others land, too, tables that only take appends, and those of sinks that aren't a sink.Truncater are refused, and
	// nothing is changed.
	TruncateLake
)

// ResetOptions say what is to be reset, and where.
type ResetOptions struct {
	// Brokers are the addresses to start from. They may be among Client instead.
	Brokers []string
	// Client says how else to reach the cluster: TLS, SASL.
	Client []kgo.Opt
	// StateDir is the directory that the instance on this machine was given; empty for none. Those on other machines have to be reset there.
	StateDir string
	Lake     LakeReset
	// Inputs are the only topics whose committed offsets are deleted; nil: all, with the groups. It is for plans that are a part of what an
	// application does.
	Inputs []string
	// Execute does it. Without, everything is only looked at.
	Execute bool
}

// ResetReport says what a reset does, or has done.
type ResetReport struct {
	Application string
	Offsets     map[string]int // groups that are deleted, with the number of partitions that have committed offsets
	Topics      []string       // internal topics that are deleted, sorted
	State       []string       // files and directories that are removed
	Inputs      []string       // the only topics of which offsets are deleted; nil: of all, with the groups
	Tables      []string       // lake tables, with what becomes of them
	Done        bool
}

// ResetRefusedError says why an application may not be reset. Nothing was changed.
type ResetRefusedError struct {
	Application string
	Reasons     []string
}

func (e *ResetRefusedError) Error() string {
	return "application " + e.Application + " can't be reset:\n  " + strings.Join(e.Reasons, "\n  ")
}

// ResetApplication lets an application begin anew: it deletes its internal topics, its groups with the committed offsets, and the local state in
// StateDir. Sources then start where StartFrom, or they themselves, say. Output topics stay as they are. It refuses (*ResetRefusedError)
// while the group has members or the state directory is in use, and, unless told what becomes of them, if the application lands in tables.
// Without Execute it changes nothing. One that was interrupted is simply done again. No instance may be started meanwhile.
func ResetApplication(ctx context.Context, p *topology.Plan, opts ResetOptions) (*ResetReport, error) {
	client, err := opts.connect()
	if err != nil {
		return nil, fmt.Errorf("reset: %w", err)
	}
	defer client.Close()
	r := &resetter{p: p.Internal(), opts: opts, client: client, admin: kadm.NewClient(client), report: &ResetReport{Application: p.ApplicationID(), Inputs: opts.Inputs}}
	r.groups = []string{r.p.ApplicationID, r.p.ApplicationID + ".dead-letters"}
	if err := errors.Join(r.look(ctx), r.release(opts.Execute)); err != nil {
		return nil, fmt.Errorf("reset: %w", err)
	}
	if len(r.reasons) > 0 {
		return r.report, errors.Join(&ResetRefusedError{Application: r.p.ApplicationID, Reasons: r.reasons}, r.release(false))
	}
	if !opts.Execute {
		return r.report, nil
	}
	if err := errors.Join(r.execute(ctx), r.release(false)); err != nil {
		return r.report, fmt.Errorf("reset: %w; do it again", err)
	}
	r.report.Done = true
	return r.report, nil
}

// connect makes a client. kgo takes this machine's where no brokers are said: what a reset deletes is not to depend on that.
func (o *ResetOptions) connect() (*kgo.Client, error) {
	all := o.Client
	if len(o.Brokers) > 0 {
		all = append([]kgo.Opt{kgo.SeedBrokers(o.Brokers...)}, all...)
	}
	client, err := kgo.NewClient(all...)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	if seeds, _ := client.OptValue(kgo.SeedBrokers).([]string); len(o.Brokers) == 0 && slices.Equal(seeds, []string{"127.0.0.1"}) {
		client.Close()
		return nil, errors.New("no brokers are said: set ResetOptions.Brokers")
	}
	return client, nil
}

type resetter struct {
	p       *plan.Plan
	opts    ResetOptions
	client  *kgo.Client
	admin   *kadm.Client
	groups  []string
	lock    *identity.Identity // of the state directory
	tables  []tableReset       // that are to be emptied
	report  *ResetReport
	reasons []string
}

func (r *resetter) refuse(format string, args ...any) {
	r.reasons = append(r.reasons, fmt.Sprintf(format, args...))
}

// release lets go of the state directory, unless it is still needed.
func (r *resetter) release(needed bool) error {
	if needed || r.lock == nil {
		return nil
	}
	lock := r.lock
	r.lock = nil
	return lock.Close()
}

// look finds out what there is to do, and what speaks against it.
func (r *resetter) look(ctx context.Context) error {
	if err := r.lookAtGroups(ctx); err != nil {
		return err
	}
	found, err := topics.Describe(ctx, r.client, slices.Sorted(maps.Keys(r.p.InternalTopics))...)
	if err != nil {
		return err
	}
	r.report.Topics = slices.Sorted(maps.Keys(found))
	if err := r.lookAtTables(ctx); err != nil {
		return err
	}
	return r.lookAtState()
}

func (r *resetter) lookAtGroups(ctx context.Context) error {
	described, err := r.admin.DescribeGroups(ctx, r.groups...)
	if err != nil {
		return fmt.Errorf("describe groups: %w", err)
	}
	r.report.Offsets = map[string]int{}
	for _, name := range r.groups {
		g := described[name]
		if errors.Is(g.Err, kerr.GroupIDNotFound) {
			continue
		}
		if g.Err != nil {
			return fmt.Errorf("describe group %s: %w", name, g.Err)
		}
		for _, m := range g.Members {
			r.refuse("group %s has member %s at %s: stop all instances (one that was killed, or that stays in the group, is a member until its session ends)", name, m.MemberID, m.ClientHost)
		}
		offsets, err := r.admin.FetchOffsets(ctx, name)
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return fmt.Errorf("read offsets of group %s: %w", name, err)
		}
		n := 0
		offsets.Each(func(o kadm.OffsetResponse) {
			if r.opts.Inputs == nil || slices.Contains(r.opts.Inputs, o.Topic) {
				n++
			}
		})
		if n > 0 {
			r.report.Offsets[name] = n
		}
	}
	return nil
}

// lookAtState takes the state directory, so that no instance uses it.
func (r *resetter) lookAtState() error {
	if r.opts.StateDir == "" {
		return nil
	}
	dir := filepath.Join(r.opts.StateDir, r.p.ApplicationID)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := identity.Open(dir)
	if err != nil {
		r.refuse("%v", err)
		return nil
	}
	r.lock = lock
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("local state: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "instance.") { // who the instance is, and the lock
			r.report.State = append(r.report.State, filepath.Join(dir, entry.Name()))
		}
	}
	return nil
}

// execute does it. The tables go first: an instance that finds one emptied while the group still has offsets refuses to start. The local state
// goes last: as long as it is there, an instance that finds its changelogs gone refuses to start.
func (r *resetter) execute(ctx context.Context) error {
	if err := r.truncateTables(ctx); err != nil {
		return err
	}
	if err := r.deleteTopics(ctx); err != nil {
		return err
	}
	if err := r.forgetOffsets(ctx); err != nil {
		return err
	}
	for _, path := range r.report.State {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("local state: %w", err)
		}
	}
	return nil
}

// forgetOffsets deletes the groups, or the offsets of some topics in them.
func (r *resetter) forgetOffsets(ctx context.Context) error {
	if r.opts.Inputs != nil {
		return r.forgetInputs(ctx)
	}
	deleted, err := r.admin.DeleteGroups(ctx, r.groups...)
	if err != nil {
		return fmt.Errorf("delete groups: %w", err)
	}
	for name, d := range deleted {
		if d.Err != nil && !errors.Is(d.Err, kerr.GroupIDNotFound) {
			return fmt.Errorf("delete group %s: %w", name, d.Err)
		}
	}
	return nil
}

// deleteTopics deletes the internal topics and waits until they are gone: brokers do it in the background, and an instance that starts
// before would find them still there.
func (r *resetter) deleteTopics(ctx context.Context) error {
	if len(r.report.Topics) == 0 {
		return nil
	}
	deleted, err := r.admin.DeleteTopics(ctx, r.report.Topics...)
	if err != nil {
		return fmt.Errorf("delete internal topics: %w", err)
	}
	for name, d := range deleted {
		if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("delete internal topic %s: %w", name, d.Err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		left, err := topics.Describe(ctx, r.client, r.report.Topics...)
		if err == nil && len(left) == 0 {
			return nil
		}
		if ended := sleep(ctx, 100*time.Millisecond); ended != nil {
			return errors.Join(fmt.Errorf("internal topics are not gone yet: %v", slices.Sorted(maps.Keys(left))), err)
		}
	}
}

// String is the report for people.
func (r *ResetReport) String() string {
	var b strings.Builder
	list := func(what string, items []string) {
		for _, item := range items {
			fmt.Fprintf(&b, "  %s %s\n", what, item)
		}
	}
	if r.Done {
		fmt.Fprintf(&b, "Application %s is reset:\n", r.Application)
	} else {
		fmt.Fprintf(&b, "Resetting application %s means:\n", r.Application)
	}
	for _, group := range slices.Sorted(maps.Keys(r.Offsets)) {
		if r.Inputs != nil {
			fmt.Fprintf(&b, "  delete the offsets of %d partitions of %s from group %s\n", r.Offsets[group], strings.Join(r.Inputs, ", "), group)
			continue
		}
		fmt.Fprintf(&b, "  delete group %s with the offsets of %d partitions\n", group, r.Offsets[group])
	}
	list("delete topic", r.Topics)
	list("remove", r.State)
	for _, t := range r.Tables {
		b.WriteString("  " + t + "\n")
	}
	if len(r.Offsets)+len(r.Topics)+len(r.State)+len(r.Tables) == 0 {
		b.WriteString("  nothing is there to reset\n")
	}
	b.WriteString("Local state on other machines is not touched: run the same command there, too. Instances that have it refuse to start until then.\n")
	return b.String()
}
