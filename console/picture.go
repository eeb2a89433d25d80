package console

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/internal/plan"
)

// picture is what the page shows, and what state.json is. Times that aren't known are left out, and so are rates.
type picture struct {
	Application string     `json:"application"`
	Instance    string     `json:"instance"`
	Now         time.Time  `json:"now"`
	State       string     `json:"state"`
	Since       time.Time  `json:"since"`
	Ready       bool       `json:"ready"`
	Why         []string   `json:"why"` // it isn't ready, or what doesn't go on although it is
	Heard       *time.Time `json:"heartbeat,omitempty"`
	Totals      totals     `json:"totals"`

	Subtopologies []subtopology `json:"subtopologies"`
	Tasks         []task        `json:"tasks"` // a page of them
	TaskPages     pages         `json:"taskPages"`
	Standbys      []standby     `json:"standbys"` // a page of them
	StandbyPages  pages         `json:"standbyPages"`
	Stores        []store       `json:"stores"`
	Lake          []table       `json:"lake"`
	Memory        []part        `json:"memory"`
	Members       []member      `json:"members"`
	MemberProblem string        `json:"memberProblem,omitempty"`
	OtherVersions []string      `json:"otherVersions"`
	LeftOut       []leftOut     `json:"leftOut"`
}

// totals are over all tasks of the instance.
type totals struct {
	Tasks      int        `json:"tasks"`
	Running    int        `json:"running"`
	Restoring  int        `json:"restoring"`
	Opening    int        `json:"opening"`
	Parked     int        `json:"parked"`
	Standbys   int        `json:"standbys"`
	Following  int        `json:"following"`
	Lag        int64      `json:"lag"`
	Rate       *float64   `json:"recordsPerSecond,omitempty"`
	Processed  int64      `json:"processed"`
	Produced   int64      `json:"produced"`
	Commits    int64      `json:"commits"`
	Aborted    int64      `json:"aborted"`
	LastCommit *time.Time `json:"lastCommit,omitempty"`
	CommitTook float64    `json:"commitSeconds"`
}

// subtopology sums up the tasks of one that this instance has.
type subtopology struct {
	ID        int      `json:"id"`
	Kind      string   `json:"kind"` // tasks, lake or global
	Topics    []string `json:"topics"`
	Tasks     int      `json:"tasks"`
	Running   int      `json:"running"`
	Restoring int      `json:"restoring"`
	Parked    int      `json:"parked"`
	Lag       int64    `json:"lag"`
	Rate      *float64 `json:"recordsPerSecond,omitempty"`
}

type task struct {
	Name        string     `json:"name"`
	Subtopology int        `json:"subtopology"`
	Partition   int        `json:"partition"`
	State       string     `json:"state"` // running, paused, restoring, opening, parked
	Lag         int64      `json:"lag"`
	Rate        *float64   `json:"recordsPerSecond,omitempty"`
	Processed   int64      `json:"processed"`
	StreamTime  *time.Time `json:"streamTime,omitempty"`
	LastCommit  *time.Time `json:"lastCommit,omitempty"`
	Inputs      []input    `json:"inputs"`
	Restore     *restore   `json:"restore,omitempty"`
	Parked      string     `json:"parked,omitempty"`
	ParkedSince *time.Time `json:"parkedSince,omitempty"`
	Lake        bool       `json:"lake"`
}

type input struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Position  *int64     `json:"position,omitempty"`
	End       int64      `json:"end"`
	Lag       int64      `json:"lag"`
	Holds     *time.Time `json:"holdsSince,omitempty"`
}

// restore is one that goes on.
type restore struct {
	Records    int64    `json:"records"`
	Bytes      int64    `json:"bytes"`
	Left       int64    `json:"left"`
	Total      int64    `json:"total"`
	Rate       float64  `json:"recordsPerSecond"`
	TimeLeft   *float64 `json:"secondsLeft,omitempty"`
	Checkpoint int64    `json:"checkpointBytes,omitempty"` // that have come
	Whole      int64    `json:"checkpointTotal,omitempty"`
}

type standby struct {
	Name    string   `json:"name"`
	State   string   `json:"state"` // following, restoring
	Warmup  bool     `json:"warmup"`
	Lag     *int64   `json:"lag,omitempty"`
	Restore *restore `json:"restore,omitempty"`
}

type store struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	InMemory   bool   `json:"inMemory"`
	Global     bool   `json:"global"`
	Changelog  string `json:"changelog,omitempty"`
	Partitions int32  `json:"partitions"` // that can be read here
	Of         int32  `json:"of"`
	Entries    *int64 `json:"entries,omitempty"`
	Estimated  bool   `json:"estimated"`
	Bytes      *int64 `json:"bytes,omitempty"`
}

type table struct {
	Sink        string     `json:"sink"`
	Table       string     `json:"table"`
	Subtopology int        `json:"subtopology"`
	Open        bool       `json:"open"`
	Version     *int64     `json:"version,omitempty"`
	Rows        int64      `json:"rows"`
	Commits     int64      `json:"commits"`
	LastCommit  *time.Time `json:"lastCommit,omitempty"`
	Lag         int64      `json:"lag"`
	OpenRows    int        `json:"openRows"`
	OpenBytes   int64      `json:"openBytes"`
	Retries     int64      `json:"retries"`
	Fenced      int64      `json:"fenced"`
	Parked      string     `json:"parked,omitempty"`
	ParkedSince *time.Time `json:"parkedSince,omitempty"`
}

type part struct {
	Name  string `json:"part"`
	Bytes int64  `json:"bytes"`
}

type member struct {
	ID       string `json:"id"`
	Endpoint string `json:"endpoint,omitempty"`
	Here     bool   `json:"here"`
	Tasks    int    `json:"tasks"`
	Standbys int    `json:"standbys"`
}

type leftOut struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
	Count  int64  `json:"records"`
}

// newPicture makes a picture of what was seen.
func newPicture(p *plan.Plan, instance string, s *sight, c choice) *picture {
	stats := &s.stats
	pic := &picture{
		Application: p.ApplicationID, Instance: instance, Now: s.at.UTC(), State: stats.State.String(), Since: stats.Since.UTC(), Ready: stats.State.Ready(),
		Heard: known(stats.Heard), OtherVersions: orEmpty(stats.OtherVersions), LeftOut: []leftOut{}, Members: []member{},
		Memory: []part{{"rows in front of stores", stats.Memory.Rows}, {"cached blocks of stores", stats.Memory.Cache},
			{"uncommitted state", stats.Memory.Write}, {"write buffers that lie ready", stats.Memory.Spare}, {"fetched records", stats.Memory.Input}},
	}
	all := make([]task, len(stats.Tasks))
	for i := range stats.Tasks {
		all[i] = newTask(&stats.Tasks[i], stats.State, s.rates)
	}
	pic.Totals = newTotals(stats, all)
	pic.Subtopologies = subtopologies(p, all)
	pic.Tasks, pic.TaskPages = c.tasks(all)
	pic.Standbys, pic.StandbyPages = c.standbys(standbys(stats))
	pic.Totals.Following = following(stats)
	pic.Stores = stores(p, s.sizes)
	pic.Lake = tables(p, stats, pic.Subtopologies)
	for _, m := range s.members {
		pic.Members = append(pic.Members, member{m.ID, m.Endpoint, m.Here, len(m.Tasks), len(m.Standbys)})
	}
	if s.problem != nil {
		pic.MemberProblem = plain(s.problem.Error())
	}
	for _, d := range stats.Dropped {
		pic.LeftOut = append(pic.LeftOut, leftOut(d))
	}
	pic.Why = reasons(stats, pic)
	return pic
}

func newTask(t *engine.TaskStats, state engine.State, rates map[string]float64) task {
	out := task{
		Name: t.Name, Subtopology: -1, Processed: t.Processed, LastCommit: known(t.LastCommit), Inputs: []input{}, Lake: t.Lake, State: "opening",
		Restore: newRestore(&t.Restore),
	}
	if sub, partition, ok := strings.Cut(t.Name, "_"); ok {
		out.Subtopology, _ = strconv.Atoi(sub) // the engine's own names
		out.Partition, _ = strconv.Atoi(partition)
	}
	switch {
	case t.Parked != nil:
		out.State, out.Parked, out.ParkedSince = "parked", plain(t.Parked.Error()), known(t.ParkedSince)
	case t.Running && state == engine.Paused && out.Subtopology >= 0:
		out.State = "paused"
	case t.Running:
		out.State = "running"
	case out.Restore != nil:
		out.State = "restoring"
	}
	if rate, ok := rates[t.Name]; ok {
		out.Rate = &rate
	}
	if t.StreamTime >= 0 {
		out.StreamTime = known(time.UnixMilli(t.StreamTime))
	}
	for _, in := range t.Inputs {
		i := input{Topic: in.Topic, Partition: in.Partition, End: in.End, Lag: in.Lag, Holds: known(in.HoldsSince)}
		if in.Position >= 0 {
			i.Position = &in.Position
		}
		out.Lag += in.Lag
		out.Inputs = append(out.Inputs, i)
	}
	return out
}

// newRestore is nil for one that doesn't go on.
func newRestore(r *engine.RestoreStats) *restore {
	if !r.Active && r.CheckpointTotal == 0 {
		return nil
	}
	out := &restore{Records: r.Records, Bytes: r.Bytes, Left: r.Left, Total: r.Total, Rate: r.Rate, Checkpoint: r.CheckpointBytes, Whole: r.CheckpointTotal}
	if r.Left == 0 || r.TimeLeft > 0 {
		left := r.TimeLeft.Seconds()
		out.TimeLeft = &left
	}
	return out
}

func newTotals(s *engine.Stats, tasks []task) totals {
	t := totals{Tasks: len(tasks), Standbys: len(s.Standbys), Lag: s.Lag, Processed: s.Processed, Produced: s.Produced, Commits: s.Commits, Aborted: s.Aborted,
		LastCommit: known(s.LastCommit), CommitTook: s.CommitTook.Seconds()}
	for i := range tasks {
		switch tasks[i].State {
		case "running", "paused":
			t.Running++
		case "restoring":
			t.Restoring++
		case "parked":
			t.Parked++
		default:
			t.Opening++
		}
		addRate(&t.Rate, tasks[i].Rate)
	}
	return t
}

func addRate(sum **float64, rate *float64) {
	if rate == nil {
		return
	}
	if *sum == nil {
		*sum = new(float64)
	}
	**sum += *rate
}

func subtopologies(p *plan.Plan, tasks []task) []subtopology {
	all := make([]subtopology, 0, len(p.Subtopologies)+1)
	at := map[int]int{}
	add := func(id int, kind string, topics ...string) {
		at[id] = len(all)
		all = append(all, subtopology{ID: id, Kind: kind, Topics: orEmpty(topics)})
	}
	for _, s := range p.Subtopologies {
		kind := "tasks"
		if s.Lake {
			kind = "lake"
		}
		add(s.ID, kind, topicsOf(s)...)
	}
	if len(p.Globals) > 0 { // one task reads them all
		var topics []string
		for _, s := range p.Globals {
			topics = append(topics, topicsOf(s)...)
		}
		add(-1, "global", topics...)
	}
	for i := range tasks {
		t := &tasks[i]
		n, known := at[t.Subtopology]
		if !known {
			continue
		}
		s := &all[n]
		s.Tasks++
		s.Lag += t.Lag
		addRate(&s.Rate, t.Rate)
		switch t.State {
		case "running", "paused":
			s.Running++
		case "restoring":
			s.Restoring++
		case "parked":
			s.Parked++
		}
	}
	return all
}

// topicsOf are the topics of a sub-topology, and the patterns of topics.
func topicsOf(s *plan.Subtopology) []string {
	topics := slices.Clone(s.SourceTopics)
	for _, n := range s.Nodes {
		if n.Pattern != "" {
			topics = append(topics, n.Pattern)
		}
	}
	return topics
}

func standbys(s *engine.Stats) []standby {
	all := make([]standby, len(s.Standbys))
	for i := range s.Standbys {
		t := &s.Standbys[i]
		all[i] = standby{Name: t.Name, State: "restoring", Warmup: t.Warmup}
		if t.Following {
			all[i].State = "following"
		} else {
			all[i].Restore = newRestore(&t.Restore)
		}
		if t.Lag >= 0 {
			all[i].Lag = &t.Lag
		}
	}
	return all
}

func following(s *engine.Stats) (n int) {
	for i := range s.Standbys {
		if s.Standbys[i].Following {
			n++
		}
	}
	return n
}

func stores(p *plan.Plan, sizes []engine.StoreSize) []store {
	all := make([]store, 0, len(p.Stores))
	for name, s := range p.Stores {
		all = append(all, store{Name: name, Kind: s.Spec.Kind.String(), InMemory: s.Spec.InMemory, Global: s.Global, Changelog: s.Changelog})
	}
	slices.SortFunc(all, func(a, b store) int { return strings.Compare(a.Name, b.Name) })
	for i := range all {
		at, ok := slices.BinarySearchFunc(sizes, all[i].Name, func(s engine.StoreSize, name string) int { return strings.Compare(s.Store, name) })
		if !ok {
			continue
		}
		size := &sizes[at]
		all[i].Partitions, all[i].Of = size.Partitions, size.Of
		if size.Partitions > 0 {
			all[i].Entries, all[i].Bytes, all[i].Estimated = &size.Entries, &size.Bytes, size.Estimated
		}
	}
	return all
}

// tables are those of the plan, with what is known of those that are open.
func tables(p *plan.Plan, stats *engine.Stats, subs []subtopology) []table {
	all := []table{}
	for _, n := range p.Nodes {
		if n.Kind == plan.LakeNode {
			all = append(all, table{Sink: n.Lake.Name, Table: plain(n.Lake.Sink.String()), Subtopology: n.Subtopology})
		}
	}
	slices.SortFunc(all, func(a, b table) int { return strings.Compare(a.Sink, b.Sink) })
	for i := range all {
		t := &all[i]
		for _, s := range subs {
			if s.ID == t.Subtopology {
				t.Lag = s.Lag
			}
		}
		at, ok := slices.BinarySearchFunc(stats.Lake, t.Sink, func(s engine.LakeStats, name string) int { return strings.Compare(s.Sink, name) })
		if !ok {
			continue
		}
		l := &stats.Lake[at]
		t.Open, t.Rows, t.Commits, t.LastCommit, t.OpenRows, t.OpenBytes = true, l.Rows, l.Commits, known(l.LastCommit), l.OpenRows, l.OpenBytes
		t.Retries, t.Fenced = l.Retries, l.Fenced
		if l.Version >= 0 {
			t.Version = &l.Version
		}
		if l.Parked != nil {
			t.Parked, t.ParkedSince = plain(l.Parked.Error()), known(l.ParkedSince)
		}
	}
	return all
}

// reasons says why the instance isn't ready, and what doesn't go on although it is.
func reasons(s *engine.Stats, pic *picture) []string {
	why := []string{}
	t := &pic.Totals
	switch s.State {
	case engine.Created:
		why = append(why, "it hasn't been run yet")
	case engine.Starting:
		why = append(why, "it reaches the brokers, checks topics, opens tables and reads global tables")
	case engine.Rebalancing:
		if waiting := t.Restoring + t.Opening; waiting > 0 {
			why = append(why, fmt.Sprintf("%d of %d tasks have to be brought up to date first; %d of them are being restored", waiting, t.Tasks, t.Restoring))
		} else {
			why = append(why, "the group shares its tasks anew")
		}
	case engine.Recovering:
		if s.Reason == "" {
			why = append(why, "a commit failed, or brokers don't answer: what was done since the last commit is done again")
		} else {
			why = append(why, plain(s.Reason))
		}
	case engine.Paused:
		why = append(why, "it was told to pause: nothing is processed")
	case engine.Draining:
		why = append(why, "it closes: what is done is committed")
	case engine.Failed:
		why = append(why, "Run has ended with an error, which it has returned")
	}
	if t.Parked > 0 {
		why = append(why, fmt.Sprintf("%d of %d tasks are parked", t.Parked, t.Tasks))
	}
	parked := 0
	for i := range pic.Lake {
		if pic.Lake[i].Parked != "" {
			parked++
		}
	}
	if parked > 0 {
		why = append(why, fmt.Sprintf("%d of %d tables are parked", parked, len(pic.Lake)))
	}
	return why
}

// known is a time in UTC, nil if it is zero.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
