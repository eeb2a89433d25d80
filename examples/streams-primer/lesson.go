package primer

import (
	"fmt"
	"strings"
	"time"

	"github.com/tributary-io/tributary/topology"
)

// App is the name of an application: it stands in front of the names of its topics.
type App string

// Topic gives a topic's full name.
func (a App) Topic(name string) string { return string(a) + "-" + name }

// builder starts a lesson's topology.
func (a App) builder() *topology.Builder { return topology.NewBuilder(string(a)) }

// Lesson is an idea with an example.
type Lesson struct {
	// Name is how the command calls it, Idea what it shows, in a sentence.
	Name, Idea string
	// Topics are those that exist before, with their numbers of partitions. Output is the topic that the result is read from.
	Topics map[string]int32
	Output string
	// Build makes the topology.
	Build func(App) (*topology.Plan, error)
	// Input is written before the application starts, in this order.
	Input []Record
	// Result is what the command prints of the output.
	Result []string
	// Play, if set, shows more than input and output.
	Play func(*Stage) ([]string, error)
}

// Record is a record of a lesson's input or output. Keys and values are text; a value that is "null" has none.
type Record struct {
	Topic      string // without the application's name
	Key, Value string
	At         int // seconds since the lesson's beginning
}

// null stands for no value.
const null = "null"

// beginning is the time from which lessons count, in ms.
var beginning = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixMilli()

func (r Record) timestamp() int64 { return beginning + int64(r.At)*1000 }

// value is nil for a null.
func (r Record) value() []byte {
	if r.Value == null {
		return nil
	}
	return []byte(r.Value)
}

// line is a record as the command prints it.
func line(key string, value []byte, timestamp int64) string {
	text := null
	if value != nil {
		text = string(value)
	}
	return fmt.Sprintf("%s  %-8s %s", clock(timestamp), key, text)
}

// clock shows a time as minutes and seconds since the lesson's beginning.
func clock(ms int64) string {
	s, sign := (ms-beginning)/1000, ""
	if s < 0 {
		s, sign = -s, "-"
	}
	return fmt.Sprintf("%s%02d:%02d", sign, s/60, s%60)
}

// span shows a window, such as [00:00 01:00).
func span(start, end int64) string { return "[" + clock(start) + " " + clock(end) + ")" }

// Lessons are all of them, in the order in which to read.
var Lessons = []*Lesson{
	&streamLesson, &tableLesson, &globalTableLesson, &joinTableLesson, &copartitionLesson, &joinGlobalLesson, &joinStreamsLesson,
	&revenueLesson, &windowsLesson, &restoreLesson, &tasksLesson, &guaranteesLesson, &harnessLesson,
}

// Find returns the lesson of that name.
func Find(name string) (*Lesson, error) {
	var names []string
	for _, l := range Lessons {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return nil, fmt.Errorf("there is no lesson %q: there are %s", name, strings.Join(names, ", "))
}
