package plan

import "math"

// Setting is one of a source that may be left to the application's.
type Setting struct {
	Set bool
	Ms  int64
}

// Or is the setting, or what the application has.
func (s Setting) Or(ms int64) int64 {
	if s.Set {
		return s.Ms
	}
	return ms
}

// Idle is what becomes of a source while nothing comes.
type Idle struct {
	// Wait is how long records of others wait for the source's while it is empty; math.MaxInt64 has no end. Else the engine's setting holds.
	Wait Setting
	// Advance is how long the source has to be idle before stream time may go on with the wall clock; 0: it never may. Else the Builder's
	// setting holds.
	Advance Setting
}

// AdvanceIdle lets stream time go on with the wall clock where sources say nothing else.
func (b *Builder) AdvanceIdle(ms int64) {
	if ms <= 0 {
		b.Problem(InvalidArgument, "", "stream time can't go on after inputs were idle for %d ms: give it a millisecond or more", ms)
		return
	}
	b.advanceIdleMs = ms
}

// never stands for a source that keeps stream time.
const never = math.MaxInt64

// setAdvanceIdle sets Subtopology.AdvanceIdleMs: the longest time of its sources'. A topic between sub-topologies has the time of those that
// write to it.
func (p *Plan) setAdvanceIdle(otherwise int64) {
	after := map[int]int64{}
	writers := map[string][]int{}
	all := append(append([]*Subtopology(nil), p.Subtopologies...), p.Globals...)
	for _, sub := range all {
		for _, n := range sub.Nodes {
			if n.Kind == SinkNode && p.InternalTopics[n.Topic] != nil {
				writers[n.Topic] = append(writers[n.Topic], sub.ID)
			}
		}
		after[sub.ID] = p.ownAdvanceIdle(sub, otherwise)
	}
	for changed := true; changed; { // topics between sub-topologies may go round
		changed = false
		for _, sub := range all {
			for _, topic := range sub.SourceTopics {
				for _, writer := range writers[topic] {
					if after[writer] > after[sub.ID] {
						after[sub.ID], changed = after[writer], true
					}
				}
			}
		}
	}
	for _, sub := range all {
		if ms := after[sub.ID]; ms != never {
			sub.AdvanceIdleMs = ms
		}
	}
}

// ownAdvanceIdle is the longest time of the sources that read topics of the user's.
func (p *Plan) ownAdvanceIdle(sub *Subtopology, otherwise int64) (after int64) {
	for _, n := range sub.Nodes {
		if n.Kind != SourceNode || n.Pattern == "" && p.allInternal(n.Topics) {
			continue
		}
		ms := n.Idle.Advance.Or(otherwise)
		if ms == 0 {
			return never
		}
		after = max(after, ms)
	}
	return after
}

func (p *Plan) allInternal(topics []string) bool {
	for _, t := range topics {
		if p.InternalTopics[t] == nil {
			return false
		}
	}
	return true
}
