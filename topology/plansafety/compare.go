package plansafety

import (
	"fmt"
	"slices"
	"strings"
)

// Compare says of everything durable in two versions of a topology what becomes of it when instances of the new one are started where the
// old one ran. Things that lose something come first, each group in the order of the old plan's names.
func Compare(old, new *Plan) *Report {
	c := &comparison{old: old, new: new, report: &Report{Application: new.Application, SameHash: old.Hash == new.Hash}}
	if old.Application != new.Application {
		c.add(Change{
			Thing: TheApplication, Status: Renamed, Old: old.Application, New: new.Application, Loses: true,
			Advice: "consumer group, internal topics, state directories and the progress in tables are named after the application id: another id is another application, which begins anew",
		})
	}
	c.stores()
	c.topics()
	c.lakes()
	c.ends(AnInput, old.inputs(), new.inputs(), "its committed offsets stay with the group until they expire")
	c.ends(AnOutput, old.Outputs, new.Outputs, "")
	slices.SortStableFunc(c.report.Changes, func(a, b Change) int {
		switch {
		case a.Loses == b.Loses:
			return 0
		case a.Loses:
			return -1
		}
		return 1
	})
	return c.report
}

type comparison struct {
	old, new *Plan
	report   *Report
}

func (c *comparison) add(change Change) { c.report.Changes = append(c.report.Changes, change) }

// inputs are the topics of the user that are read, and patterns.
func (p *Plan) inputs() []string {
	all := []string{}
	for _, sub := range p.Subtopologies {
		for _, topic := range sub.Inputs {
			if !slices.ContainsFunc(p.Topics, func(t Topic) bool { return t.Name == topic }) {
				all = append(all, topic)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ends compares topics of the user, of which only the differences are worth a line.
func (c *comparison) ends(thing Thing, old, new []string, gone string) {
	for _, topic := range old {
		if !slices.Contains(new, topic) {
			c.add(Change{Thing: thing, Status: Orphaned, Old: topic, Advice: gone})
		}
	}
	for _, topic := range new {
		if !slices.Contains(old, topic) {
			c.add(Change{Thing: thing, Status: New, New: topic})
		}
	}
}

// raw is an internal topic without the application id.
func (p *Plan) raw(topic string) string { return strings.TrimPrefix(topic, p.Application+"-") }

func (p *Plan) rawAll(topics []string) []string {
	out := make([]string, len(topics))
	for i, t := range topics {
		out[i] = t
		if slices.ContainsFunc(p.Topics, func(of Topic) bool { return of.Name == t }) {
			out[i] = p.raw(t)
		}
	}
	slices.Sort(out)
	return out
}

// pairing is how things of the old plan find themselves in the new one: by name, then those that are left by shape.
type pairing[T any] struct {
	old, new []T
	name     func(T) string // without the application id
	// shapes describe a thing, from what fits best to what fits least.
	shapes []func(T) string
}

// pairs calls both for each pair, gone and fresh for those without one.
func (p pairing[T]) pairs(both func(old, new T, renamed bool), gone, fresh func(T)) {
	left := slices.Clone(p.new)
	take := func(like func(T) bool) (t T, ok bool) {
		i := slices.IndexFunc(left, like)
		if i < 0 {
			return t, false
		}
		t = left[i]
		left = slices.Delete(left, i, i+1)
		return t, true
	}
	var missing []T
	for _, o := range p.old {
		if n, ok := take(func(n T) bool { return p.name(n) == p.name(o) }); ok {
			both(o, n, false)
		} else {
			missing = append(missing, o)
		}
	}
	for _, shape := range p.shapes {
		missing = slices.DeleteFunc(missing, func(o T) bool {
			n, ok := take(func(n T) bool { return shape(n) == shape(o) })
			if ok {
				both(o, n, true)
			}
			return ok
		})
	}
	for _, o := range missing {
		gone(o)
	}
	for _, n := range left {
		fresh(n)
	}
}

// differences collects what differs between two things.
type differences struct {
	texts []string
	loses bool
}

// say notes a difference if there is one; loses says that it costs something.
func say[T comparable](d *differences, loses bool, what string, old, new T) bool {
	if old == new {
		return false
	}
	d.texts = append(d.texts, fmt.Sprintf("%s: %v -> %v", what, show(old), show(new)))
	d.loses = d.loses || loses
	return true
}

// saySerde is say for serdes, which it shows as programs write them, where that tells the two apart.
func saySerde(d *differences, what, old, new string) {
	if o, n := SerdeWords(old), SerdeWords(new); o != n {
		old, new = o, n
	}
	say(d, true, what, old, new)
}

func show[T any](v T) string {
	if s := fmt.Sprint(v); s != "" {
		return s
	}
	return "none"
}

// list makes lists comparable.
func list(all []string) string { return strings.Join(all, ", ") }

func (w Width) String() string {
	switch {
	case w.Fixed > 0 && len(w.Follow) > 0:
		return fmt.Sprintf("%d, or as many as %s", w.Fixed, list(w.Follow))
	case w.Fixed > 0:
		return fmt.Sprint(w.Fixed)
	case len(w.Follow) > 0:
		return "as many as " + list(w.Follow)
	}
	return "unknown"
}
