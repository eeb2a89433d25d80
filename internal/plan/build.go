package plan

import (
	"maps"
	"slices"

	"github.com/tributary-io/tributary/state"
)

// Build makes the plan, or returns a *BuildError with everything that is wrong. The Builder must not be used afterwards.
func (b *Builder) Build(applicationID string) (*Plan, error) {
	if err := CheckName(applicationID); err != nil {
		b.Problem(InvalidArgument, "", "not an application id, which internal topics are named after: %v", err)
	}
	b.placeLakes(applicationID)
	b.checkCopartition()
	b.checkChangelogs(applicationID)
	if len(b.problems) > 0 {
		return nil, &BuildError{ApplicationID: applicationID, Problems: withoutConsequences(b.problems)}
	}
	p := &Plan{
		ApplicationID:  applicationID,
		Nodes:          make(map[string]*Node, len(b.nodes)),
		Stores:         make(map[string]*Store),
		InternalTopics: make(map[string]*InternalTopic),
	}
	b.buildTopics(p)
	b.buildNodes(p)
	b.buildStores(p)
	b.buildSubtopologies(p)
	p.CopartitionGroups = b.copartitionGroups(applicationID)
	p.setAdvanceIdle(b.advanceIdleMs)
	p.setHeld()
	p.Hash = p.hash()
	return p, nil
}

// full returns a topic's full name.
func (b *Builder) full(applicationID, topic string) string {
	if b.internal[topic] != nil {
		return applicationID + "-" + topic
	}
	return topic
}

func (b *Builder) fullAll(applicationID string, topics []string) []string {
	out := make([]string, len(topics))
	for i, t := range topics {
		out[i] = b.full(applicationID, t)
	}
	return out
}

func (b *Builder) buildTopics(p *Plan) {
	for raw, t := range b.internal {
		t.Name = b.full(p.ApplicationID, raw)
		p.InternalTopics[t.Name] = t
	}
}

func (b *Builder) buildNodes(p *Plan) {
	for _, d := range b.nodes {
		n := &d.Node
		n.Topics = b.fullAll(p.ApplicationID, d.topics)
		if d.topic != "" {
			n.Topic = b.full(p.ApplicationID, d.topic)
		}
		for _, name := range d.parents {
			parent := p.Nodes[name]
			n.Parents = append(n.Parents, parent)
			parent.Children = append(parent.Children, n)
		}
		p.Nodes[n.Name] = n
	}
}

// buildStores leaves out stores that no processor uses, as Kafka Streams does.
func (b *Builder) buildStores(p *Plan) {
	for name, d := range b.stores {
		if len(d.nodes) == 0 {
			continue
		}
		s := &Store{Spec: *d.spec, Global: d.global, Nodes: d.nodes}
		s.Spec.TopicConfig = maps.Clone(d.spec.TopicConfig)
		switch {
		case d.changelog != "":
			s.Changelog = b.full(p.ApplicationID, d.changelog)
			s.SourceAsChangelog = true
			s.Spec.SourceTopic = s.Changelog
			s.Spec.Logged = false
		case s.Spec.Logged:
			s.Changelog = ChangelogTopicOf(p.ApplicationID, &s.Spec)
			p.InternalTopics[s.Changelog] = &InternalTopic{
				Name: s.Changelog, Kind: ChangelogTopic, Store: name, Config: s.Spec.ChangelogConfig(),
			}
		}
		p.Stores[name] = s
	}
}

// ChangelogTopicOf is the full name of a store's changelog topic, if it has one of its own.
func ChangelogTopicOf(applicationID string, spec *state.Spec) string {
	if spec.ChangelogTopic != "" {
		return spec.ChangelogTopic
	}
	return applicationID + "-" + spec.Name + "-changelog"
}

// buildSubtopologies numbers the groups by their first node; global ones take numbers, too.
func (b *Builder) buildSubtopologies(p *Plan) {
	byRoot := make(map[string]*Subtopology)
	for _, d := range b.nodes {
		root := b.groups.root(d.group)
		sub := byRoot[root]
		if sub == nil {
			sub = &Subtopology{ID: len(byRoot)}
			byRoot[root] = sub
			if d.global {
				p.Globals = append(p.Globals, sub)
			} else {
				p.Subtopologies = append(p.Subtopologies, sub)
			}
		}
		d.Subtopology = sub.ID
		sub.Nodes = append(sub.Nodes, &d.Node)
	}
	for _, sub := range byRoot {
		sub.finish()
	}
}

// finish derives what follows from the nodes.
func (s *Subtopology) finish() {
	lakes, others := 0, 0
	for _, n := range s.Nodes {
		s.SourceTopics = append(s.SourceTopics, n.Topics...)
		s.Stores = append(s.Stores, n.Stores...)
		switch {
		case n.Kind == LakeNode:
			lakes++
		case len(n.Children) == 0:
			others++
		}
	}
	slices.Sort(s.SourceTopics)
	s.SourceTopics = slices.Compact(s.SourceTopics)
	slices.Sort(s.Stores)
	s.Stores = slices.Compact(s.Stores)
	s.Lake = lakes > 0 && others == 0 && len(s.Stores) == 0
}

// config is the configuration of an internal topic that is no changelog, as Kafka Streams sets it for repartition topics: kept
// until the engine purges what is committed.
func (k TopicKind) config() map[string]string {
	return map[string]string{
		"message.timestamp.type": "CreateTime",
		"cleanup.policy":         "delete",
		"segment.bytes":          "52428800",
		"retention.ms":           "-1",
	}
}
