package plansafety

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// drain is what to do before records that lie in an internal topic become unreachable.
const drain = "let the old version process everything first (stop what feeds it, and wait until its lag is 0)"

func (c *comparison) topics() {
	apps := map[string]*Plan{}
	for _, p := range []*Plan{c.new, c.old} {
		for _, t := range p.Topics {
			apps[t.Name] = p
		}
	}
	raw := func(t Topic) string { return apps[t.Name].raw(t.Name) }
	pairing[Topic]{
		old: c.old.Topics, new: c.new.Topics, name: raw,
		shapes: []func(Topic) string{
			func(t Topic) string { return t.shape() + "|" + list(t.Path) },
			Topic.shape,
		},
	}.pairs(c.topic, c.topicGone, func(t Topic) {
		c.add(Change{Thing: ATopic, Status: New, New: t.Name})
	})
}

func (t Topic) shape() string {
	return fmt.Sprint(t.Kind, t.Key, t.Value, list(t.Origins))
}

func (c *comparison) topic(old, new Topic, renamed bool) {
	var d differences
	saySerde(&d, "key serde", old.Key, new.Key)
	saySerde(&d, "value serde", old.Value, new.Value)
	layout := d.loses
	wide := say(&d, true, "partitions", old.Width.String(), new.Width.String())
	say(&d, false, "records come from", list(old.Origins), list(new.Origins))
	config := configDifferences(&d, old.Config, new.Config)
	change := Change{Thing: ATopic, Old: old.Name, New: new.Name, Differences: d.texts, Loses: d.loses}
	uncertain := new.Generated && !(slices.Equal(old.Path, new.Path) && slices.Equal(old.Origins, new.Origins))
	switch {
	case renamed:
		change.Status, change.Loses, change.Advice = Renamed, true, c.renamedTopic(old)
	case uncertain:
		change.Status, change.Loses = Uncertain, true
		change.Advice = "the name was generated, and operators have come, gone or moved: it may be another operator's topic now, whose records would be taken for its own. Name the operator (topology.Name)"
	case layout:
		change.Status = Changed
		change.Advice = "records that are in the topic can't be read as declared now: " + drain
	case wide:
		change.Status = Repartitioned
		change.Advice = "the engine refuses to start on a topic with another number of partitions than it needs: " + drain + ", reset the application, and delete the topic; stores behind it are spread by the old number"
	case len(d.texts) > 0:
		change.Status = Changed
		if config {
			change.Advice = "the engine doesn't alter the settings of topics that exist: alter those of " + new.Name + " to fit"
		}
	default:
		change.Status = Kept
	}
	c.add(change)
}

func configDifferences(d *differences, old, new map[string]string) (any bool) {
	keys := map[string]bool{}
	for _, m := range []map[string]string{old, new} {
		for k := range m {
			keys[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		any = say(d, false, k, old[k], new[k]) || any
	}
	return any
}

func (c *comparison) renamedTopic(old Topic) string {
	what := "records that are in the old topic are not read any more: " + drain
	if old.Kind != "repartition" {
		return what + ", or keep the sink's name (topology.Name)"
	}
	base := strings.TrimSuffix(c.old.raw(old.Name), "-repartition")
	return fmt.Sprintf("%s, or give the operator topology.Name(%q) to keep the topic", what, base)
}

func (c *comparison) topicGone(t Topic) {
	c.add(Change{
		Thing: ATopic, Status: Orphaned, Old: t.Name, Loses: true,
		Advice: "records that are in it are not read any more: " + drain + "; delete it once no version that needs it can come back",
	})
}

func (c *comparison) lakes() {
	pairing[Lake]{
		old: c.old.Lakes, new: c.new.Lakes, name: func(l Lake) string { return l.Name },
		shapes: []func(Lake) string{
			func(l Lake) string { return l.Table + "|" + list(l.Origins) },
			func(l Lake) string { return l.Table },
		},
	}.pairs(c.lake, func(l Lake) {
		c.add(Change{Thing: ALake, Status: Orphaned, Old: l.Name, Advice: "nothing is written to " + l.Table + " any more; what it holds stays"})
	}, func(l Lake) {
		c.add(Change{Thing: ALake, Status: New, New: l.Name, Advice: "its rows begin where its inputs' committed offsets are, or at the start of inputs that were never read"})
	})
}

func (c *comparison) lake(old, new Lake, renamed bool) {
	var d differences
	another := withoutQuery(old.Table) != withoutQuery(new.Table)
	say(&d, another, "table", old.Table, new.Table)
	was, is := c.old.rawAll(old.Inputs), c.new.rawAll(new.Inputs)
	gone := slices.ContainsFunc(was, func(t string) bool { return !slices.Contains(is, t) })
	say(&d, gone, "progress is kept for", list(was), list(is))
	change := Change{Thing: ALake, Old: old.Name, New: new.Name, Differences: d.texts, Loses: d.loses}
	switch {
	case renamed:
		change.Status, change.Loses = Renamed, true
		change.Advice = fmt.Sprintf("the table's progress is kept under the sink's name: under the new one rows land again from the start. Give it topology.Name(%q), its old name", old.Name)
	case another:
		change.Status = Changed
		change.Advice = "the new table has no progress while the group has offsets, which the engine refuses to guess about: choose a new name for the sink as well, or move the table with its log"
	case gone:
		change.Status = Changed
		change.Advice = "rows that lie between the old input's progress and the new input's beginning would be left out or land twice: " + drain
	case len(d.texts) > 0:
		change.Status = Changed
	default:
		change.Status = Kept
	}
	c.add(change)
}

// withoutQuery is a table's place without the settings of its store, such as region and endpoint, by which the same table is reached.
func withoutQuery(table string) string {
	place, _, _ := strings.Cut(table, "?")
	return place
}
