package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/engine/internal/txn"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/topology"
)

// ACLResource is a kind of thing that Kafka's ACLs protect, by the name that kafka-acls.sh has for it.
type ACLResource string

// The kinds that an application needs rights on. It needs none on the cluster.
const (
	TopicResource           ACLResource = "topic"
	GroupResource           ACLResource = "group"
	TransactionalIDResource ACLResource = "transactional-id"
)

// ACL is a right that an application's user needs.
type ACL struct {
	Resource ACLResource
	Name     string // of the resource; "*" is all of the kind
	Prefixed bool   // Name is how the resources' names begin (KIP-290)
	// Operations are those of kafka-acls.sh. What they imply isn't listed: Read, Write and Delete include Describe.
	Operations []string
	Why        string // what the application does with it
}

func (a ACL) String() string {
	which := a.Name
	if a.Prefixed {
		which = "names that begin with " + a.Name
	}
	return fmt.Sprintf("%s on %s %s", strings.Join(a.Operations, ", "), a.Resource, which)
}

// Command is the kafka-acls.sh command that gives the right to a principal, such as "User:orders", without the options that reach the
// brokers.
func (a ACL) Command(principal string) string {
	args := []string{"kafka-acls.sh --add --allow-principal", quote(principal)}
	for _, op := range a.Operations {
		args = append(args, "--operation", op)
	}
	args = append(args, "--"+string(a.Resource), quote(a.Name))
	if a.Prefixed {
		args = append(args, "--resource-pattern-type prefixed")
	}
	return strings.Join(args, " ")
}

// quote makes a word that a shell takes as it is.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ACLOptions say what the topology doesn't about the rights that an application needs.
type ACLOptions struct {
	Guarantee Guarantee
	// Writes names topics that it writes to beside the topology's: dead letters, and those that records choose themselves.
	Writes []string
	// TopicsMade says that somebody else makes the internal topics before the application starts: it then needs no Create.
	TopicsMade bool
	// TransactionalIDPrefix is what the option of this name says.
	TransactionalIDPrefix string
}

// RequiredACLs lists the rights that an application needs to run, and no more: on its sources and sinks by name, on what it owns by the
// application id. The order is topics, groups, transactional ids, each by name. A source with a pattern needs what its fixed beginning
// covers.
//
// The rights hold for brokers from Kafka 3.0 on; older ones want IdempotentWrite on the cluster, too (KIP-679).
func RequiredACLs(p *topology.Plan, o ACLOptions) []ACL { return requiredACLs(p.Internal(), o) }

func requiredACLs(p *plan.Plan, o ACLOptions) []ACL {
	all := append(userTopicACLs(p, o.Writes), internalACLs(p, o.TopicsMade)...)
	all = append(all, ACL{Resource: GroupResource, Name: p.ApplicationID, Operations: []string{"Read"}, Why: "shares the tasks, keeps the offsets"})
	if len(p.Globals) > 0 || slices.ContainsFunc(p.Subtopologies, func(s *plan.Subtopology) bool { return s.Lake }) {
		all = append(all, ACL{Resource: GroupResource, Name: deadGroupOf(p.ApplicationID), Operations: []string{"Read"}, Why: "remembers which dead letters of lake tasks and global tables are written"})
	}
	if o.Guarantee == ExactlyOnce {
		all = append(all, ACL{Resource: TransactionalIDResource, Name: o.TransactionalIDPrefix + ownPrefix(p.ApplicationID), Prefixed: true, Operations: []string{"Write"}, Why: "commits in transactions"})
	}
	return all
}

// ownPrefix is how the names of an application's internal topics and transactional ids begin.
func ownPrefix(applicationID string) string { return applicationID + "-" }

func deadGroupOf(applicationID string) string { return applicationID + ".dead-letters" }

// userTopicACLs are those of topics that the engine doesn't own.
func userTopicACLs(p *plan.Plan, writes []string) []ACL {
	type key struct {
		name     string
		prefixed bool
	}
	read, written := map[key]bool{}, map[key]bool{}
	for _, n := range p.Nodes {
		for _, t := range n.Topics {
			read[key{name: t}] = true
		}
		if n.Pattern != "" {
			prefix := fixedBeginning(n.Pattern)
			read[key{name: cmp.Or(prefix, "*"), prefixed: prefix != ""}] = true
		}
		if n.Kind == plan.SinkNode && n.Topic != "" {
			written[key{name: n.Topic}] = true
		}
	}
	for _, t := range writes {
		written[key{name: t}] = true
	}
	both := maps.Clone(read)
	maps.Copy(both, written)
	var all []ACL
	for k := range both {
		if p.InternalTopics[k.name] != nil {
			continue
		}
		a := ACL{Resource: TopicResource, Name: k.name, Prefixed: k.prefixed}
		var why []string
		if read[k] {
			a.Operations, why = append(a.Operations, "Read"), append(why, "reads it")
		}
		if written[k] {
			a.Operations, why = append(a.Operations, "Write"), append(why, "writes to it")
		}
		a.Why = strings.Join(why, ", ")
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b ACL) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// fixedBeginning is what all names begin with that match a pattern as a whole.
func fixedBeginning(pattern string) string {
	re, err := regexp.Compile(strings.TrimPrefix(pattern, "^"))
	if err != nil {
		return ""
	}
	prefix, _ := re.LiteralPrefix()
	return prefix
}

// internalACLs are those of topics that the engine owns. To delete records takes the right to delete the topic, so that is asked for
// by name.
func internalACLs(p *plan.Plan, made bool) []ACL {
	if len(p.InternalTopics) == 0 {
		return nil
	}
	own := ACL{Resource: TopicResource, Name: ownPrefix(p.ApplicationID), Prefixed: true, Operations: []string{"Create", "DescribeConfigs", "Read", "Write"},
		Why: "makes and checks its internal topics, writes to them and reads them"}
	if made {
		own.Operations = own.Operations[1:]
	}
	all := []ACL{own}
	for _, name := range slices.Sorted(maps.Keys(p.InternalTopics)) {
		if !strings.HasPrefix(name, own.Name) { // a changelog with a name of its own
			all = append(all, ACL{Resource: TopicResource, Name: name, Operations: own.Operations, Why: own.Why})
		}
		switch t := p.InternalTopics[name]; {
		case t.Kind != plan.ChangelogTopic:
			all = append(all, ACL{Resource: TopicResource, Name: name, Operations: []string{"Delete"}, Why: "deletes records that have been processed"})
		case p.Stores[t.Store].Spec.Purged():
			all = append(all, ACL{Resource: TopicResource, Name: name, Operations: []string{"Delete"}, Why: "deletes records of windows that have expired"})
		}
	}
	return all
}

// AccessError is in what Run returns when brokers refuse the application's user something.
type AccessError struct {
	Err   error
	Needs []ACL // the rights of the application that Err may be about
}

func (e *AccessError) Error() string {
	if len(e.Needs) == 0 {
		return fmt.Sprintf("the brokers don't let the application's user in: check the mechanism, the user and the password (%v)", e.Err)
	}
	lines := make([]string, len(e.Needs))
	for i, a := range e.Needs {
		lines[i] = a.String() + ": " + a.Why
	}
	return fmt.Sprintf("%v\nThe application's user lacks one of these rights (engine.RequiredACLs lists all):\n  %s", e.Err, strings.Join(lines, "\n  "))
}

func (e *AccessError) Unwrap() error { return e.Err }

// explainAccess adds to a broker's refusal which rights it may be about. Other errors stay as they are.
func explainAccess(p *plan.Plan, o ACLOptions, err error) error {
	var kind ACLResource
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed): // the latter of a topic's Create
		kind = TopicResource
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		kind = GroupResource
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		kind = TransactionalIDResource
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return &AccessError{Err: err}
	default:
		return err
	}
	needs := slices.DeleteFunc(requiredACLs(p, o), func(a ACL) bool { return a.Resource != kind })
	if kind == TopicResource {
		needs = onTopic(needs, err)
	}
	return &AccessError{Err: err, Needs: needs}
}

// onTopic leaves of the rights on topics those that a refusal is about, as far as it names its topic.
func onTopic(needs []ACL, err error) []ACL {
	if topic, writing := refusedTopic(err); topic != "" {
		fits := slices.DeleteFunc(needs, func(a ACL) bool { return !a.covers(topic) || writing && !slices.Contains(a.Operations, "Write") })
		if len(fits) > 0 {
			return fits
		}
		return []ACL{{Resource: TopicResource, Name: topic, Operations: []string{"Write"},
			Why: "writes to it, though the topology doesn't say so: a dead letter topic, or one that records choose"}}
	}
	if named := slices.DeleteFunc(slices.Clone(needs), func(a ACL) bool { return !a.namedIn(err.Error()) }); len(named) > 0 {
		return named
	}
	return needs
}

// refusedTopic is the topic that was refused, and whether something was to be written to it, as far as the error's type says so.
func refusedTopic(err error) (topic string, writing bool) {
	var produced *txn.ProduceError
	var described *topics.DescribeError
	switch {
	case errors.As(err, &produced):
		return produced.Topic, true
	case errors.As(err, &described):
		return described.Topic, false
	}
	return "", false
}

// covers tells whether the right is one on a resource.
func (a ACL) covers(name string) bool {
	return name == a.Name || a.Prefixed && strings.HasPrefix(name, a.Name)
}

// namedIn tells whether a text has the resource's name, with or without a partition behind it, and not as a part of another name.
func (a ACL) namedIn(text string) bool {
	if a.Prefixed {
		return strings.Contains(text, a.Name)
	}
	const other = `[^A-Za-z0-9._-]`
	return regexp.MustCompile(`(^|` + other + `)` + regexp.QuoteMeta(a.Name) + `(-[0-9]+)?($|` + other + `)`).MatchString(text)
}
