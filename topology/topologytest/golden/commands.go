package golden

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/tributary-io/tributary/state"
)

// command is one store command, cut into words. The first error sticks.
type command struct {
	words []string
	size  int64 // ms, of the windows of a window store
	keeps int64 // ms, the history of a versioned store
	err   error
}

// runCommand runs one store command and returns its result lines. Expired puts, which a store refuses, are reported to expired.
func runCommand(v *storeView, line string, expired func()) ([]string, error) {
	c := &command{words: strings.Split(line, " "), size: v.windowSize, keeps: v.history}
	var lines []string
	var err error
	switch v.kind {
	case state.KeyValue:
		lines, err = c.plain(v.plain)
	case state.TimestampedKeyValue:
		lines, err = c.timestamped(v.timestamped)
	case state.Window:
		lines, err = c.window(v.window, expired)
	case state.TimestampedWindow:
		lines, err = c.stamped(v.stamped, expired)
	case state.Session:
		lines, err = c.session(v.session, expired)
	case state.Versioned:
		lines, err = c.versioned(v.versioned, expired)
	}
	if c.err != nil {
		return nil, c.err
	}
	if err == nil && lines == nil {
		return nil, unsupported("command %q on a store of kind %s", line, v.kind)
	}
	return lines, err
}

func (c *command) name() string { return c.words[0] }

// arg is a word; an absent one is an error of the scenario.
func (c *command) arg(i int) string {
	if i >= len(c.words) {
		c.err = unsupported("command %q is too short", strings.Join(c.words, " "))
		return ""
	}
	return c.words[i]
}

// val is a word as a value: nil for "-".
func (c *command) val(i int) any {
	if s := c.arg(i); s != "-" {
		return s
	}
	return nil
}

// bound is a word as a bound of a range: open for "-".
func (c *command) bound(i int) *any {
	if v := c.val(i); v != nil {
		return &v
	}
	return nil
}

func (c *command) num(i int) int64 {
	s := c.arg(i)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && c.err == nil {
		c.err = unsupported("command %q: %q is no number", strings.Join(c.words, " "), s)
	}
	return n
}

var ok = []string{"ok"}

func one(v any, found bool, err error) ([]string, error) {
	if !found {
		return []string{"null"}, err
	}
	return []string{text(v)}, err
}

func oneStamped(v any, ts int64, found bool, err error) ([]string, error) {
	if !found {
		return []string{"null"}, err
	}
	return []string{stampedText(v, ts)}, err
}

// collect gives a line for each entry, and "(none)" where there is none.
func collect[E any](entries iter.Seq2[E, error], line func(E) string) ([]string, error) {
	var lines []string
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		lines = append(lines, line(e))
	}
	if lines == nil {
		lines = []string{"(none)"}
	}
	return lines, nil
}

func (c *command) plain(s *state.KeyValueStore[any, any]) ([]string, error) {
	show := func(e state.Entry[any, any]) string { return text(e.Key) + "=" + text(e.Value) }
	switch c.name() {
	case "put":
		return ok, s.Put(c.arg(1), c.val(2))
	case "putIfAbsent":
		return one(s.PutIfAbsent(c.arg(1), c.val(2)))
	case "putAll":
		var all []state.Entry[any, any]
		for i := 1; i+1 < len(c.words); i += 2 {
			all = append(all, state.Entry[any, any]{Key: c.arg(i), Value: c.val(i + 1)})
		}
		return ok, s.PutAll(all)
	case "delete":
		return one(s.Delete(c.arg(1)))
	case "get":
		return one(s.Get(c.arg(1)))
	case "range":
		return collect(s.Range(c.bound(1), c.bound(2)), show)
	case "reverseRange":
		return collect(s.ReverseRange(c.bound(1), c.bound(2)), show)
	case "all":
		return collect(s.All(), show)
	case "reverseAll":
		return collect(s.ReverseAll(), show)
	case "prefix":
		return collect(s.Prefix([]byte(c.arg(1))), show)
	case "count":
		n, err := s.ApproximateNumEntries()
		return []string{fmt.Sprintf("n=%d", n)}, err
	}
	return nil, nil
}

func (c *command) timestamped(s *state.TimestampedKeyValueStore[any, any]) ([]string, error) {
	show := func(e state.Entry[any, any]) string { return text(e.Key) + "=" + stampedText(e.Value, e.Timestamp) }
	switch c.name() {
	case "put":
		if c.val(2) == nil {
			return ok, s.Put(c.arg(1), nil, 0)
		}
		return ok, s.Put(c.arg(1), c.arg(2), c.num(3))
	case "putIfAbsent":
		return oneStamped(s.PutIfAbsent(c.arg(1), c.arg(2), c.num(3)))
	case "delete":
		return oneStamped(s.Delete(c.arg(1)))
	case "get":
		return oneStamped(s.Get(c.arg(1)))
	case "range":
		return collect(s.Range(c.bound(1), c.bound(2)), show)
	case "reverseRange":
		return collect(s.ReverseRange(c.bound(1), c.bound(2)), show)
	case "all":
		return collect(s.All(), show)
	case "reverseAll":
		return collect(s.ReverseAll(), show)
	case "prefix":
		return collect(s.Prefix([]byte(c.arg(1))), show)
	case "count":
		n, err := s.ApproximateNumEntries()
		return []string{fmt.Sprintf("n=%d", n)}, err
	}
	return nil, nil
}

// windowEnd is the end of a window, as far as an int64 goes.
func windowEnd(start, size int64) int64 {
	if end := start + size; end >= start {
		return end
	}
	return math.MaxInt64
}

// windowReads is what the reading commands need of a window store.
type windowReads interface {
	Fetch(key any, from, to int64) iter.Seq2[state.WindowEntry[any, any], error]
	BackwardFetch(key any, from, to int64) iter.Seq2[state.WindowEntry[any, any], error]
	FetchRange(keyFrom, keyTo *any, from, to int64, dir state.Direction) iter.Seq2[state.WindowEntry[any, any], error]
	FetchAll(from, to int64, dir state.Direction) iter.Seq2[state.WindowEntry[any, any], error]
	All(dir state.Direction) iter.Seq2[state.WindowEntry[any, any], error]
}

// scans runs the scanning commands of window stores.
func (c *command) scans(s windowReads, value func(state.WindowEntry[any, any]) string) ([]string, error) {
	byStart := func(e state.WindowEntry[any, any]) string { return strconv.FormatInt(e.Start, 10) + "=" + value(e) }
	byKey := func(e state.WindowEntry[any, any]) string {
		return text(Windowed{e.Key, e.Start, windowEnd(e.Start, c.size)}) + "=" + value(e)
	}
	switch c.name() {
	case "fetch":
		return collect(s.Fetch(c.arg(1), c.num(2), c.num(3)), byStart)
	case "backwardFetch":
		return collect(s.BackwardFetch(c.arg(1), c.num(2), c.num(3)), byStart)
	case "fetchRange":
		return collect(s.FetchRange(c.bound(1), c.bound(2), c.num(3), c.num(4), state.Forward), byKey)
	case "backwardFetchRange":
		return collect(s.FetchRange(c.bound(1), c.bound(2), c.num(3), c.num(4), state.Backward), byKey)
	case "fetchAll":
		return collect(s.FetchAll(c.num(1), c.num(2), state.Forward), byKey)
	case "backwardFetchAll":
		return collect(s.FetchAll(c.num(1), c.num(2), state.Backward), byKey)
	case "all":
		return collect(s.All(state.Forward), byKey)
	case "backwardAll":
		return collect(s.All(state.Backward), byKey)
	}
	return nil, nil
}

func noted(isExpired bool, err error, expired func()) ([]string, error) {
	if isExpired {
		expired()
	}
	return ok, err
}

func (c *command) window(s *state.WindowStore[any, any], expired func()) ([]string, error) {
	switch c.name() {
	case "put":
		late, err := s.Put(c.arg(1), c.val(2), c.num(3))
		return noted(late, err, expired)
	case "get":
		return one(s.Get(c.arg(1), c.num(2)))
	}
	return c.scans(s, func(e state.WindowEntry[any, any]) string { return text(e.Value) })
}

func (c *command) stamped(s *state.TimestampedWindowStore[any, any], expired func()) ([]string, error) {
	switch c.name() {
	case "put":
		if c.val(2) == nil {
			late, err := s.Put(c.arg(1), nil, c.num(3), 0)
			return noted(late, err, expired)
		}
		late, err := s.Put(c.arg(1), c.arg(2), c.num(3), c.num(4))
		return noted(late, err, expired)
	case "get":
		return oneStamped(s.Get(c.arg(1), c.num(2)))
	}
	return c.scans(s, func(e state.WindowEntry[any, any]) string { return stampedText(e.Value, e.Timestamp) })
}

func (c *command) session(s *state.SessionStore[any, any], expired func()) ([]string, error) {
	show := func(e state.SessionEntry[any, any]) string {
		return text(Windowed{e.Key, e.Start, e.End}) + "=" + text(e.Value)
	}
	switch c.name() {
	case "put":
		late, err := s.Put(c.arg(1), c.val(2), c.num(3), c.num(4))
		return noted(late, err, expired)
	case "remove":
		return ok, s.Remove(c.arg(1), c.num(2), c.num(3))
	case "get":
		return one(s.Get(c.arg(1), c.num(2), c.num(3)))
	case "fetch":
		return collect(s.Fetch(c.arg(1), state.Forward), show)
	case "backwardFetch":
		return collect(s.Fetch(c.arg(1), state.Backward), show)
	case "fetchRange":
		return collect(s.FetchRange(c.bound(1), c.bound(2), state.Forward), show)
	case "backwardFetchRange":
		return collect(s.FetchRange(c.bound(1), c.bound(2), state.Backward), show)
	case "findSessions":
		return collect(s.Find(c.arg(1), c.num(2), c.num(3), state.Forward), show)
	case "backwardFindSessions":
		return collect(s.Find(c.arg(1), c.num(2), c.num(3), state.Backward), show)
	case "findSessionsRange":
		return collect(s.FindRange(c.bound(1), c.bound(2), c.num(3), c.num(4), state.Forward), show)
	}
	return nil, nil
}

func (c *command) versioned(s *state.VersionedStore[any, any], expired func()) ([]string, error) {
	switch c.name() {
	case "put":
		validTo, err := s.Put(c.arg(1), c.val(2), c.num(3))
		if validTo == state.VersionNotPut {
			expired()
		}
		return []string{fmt.Sprintf("put=%d", validTo)}, err
	case "delete":
		if c.num(2) < s.Bytes().StreamTime()-c.keeps {
			expired() // the store does nothing
		}
		return oneVersion(s.Delete(c.arg(1), c.num(2)))
	case "get":
		if len(c.words) > 2 {
			return oneVersion(s.GetAsOf(c.arg(1), c.num(2)))
		}
		return oneVersion(s.Get(c.arg(1)))
	}
	return nil, nil
}

func oneVersion(v state.Version[any], found bool, err error) ([]string, error) {
	if !found {
		return []string{"null"}, err
	}
	return []string{versionText(v)}, err
}
