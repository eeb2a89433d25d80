package primer

import (
	"slices"

	"github.com/tributary-io/tributary/topology/topologytest"
)

var harnessLesson = Lesson{
	Name:   "harness",
	Idea:   "The same topology in a test: no broker, no waiting, the same result.",
	Topics: revenueLesson.Topics,
	Output: revenueLesson.Output,
	Input:  revenueLesson.Input,
	Build:  revenue,
	Play: func(s *Stage) ([]string, error) {
		there, err := s.Lesson.InHarness()
		if err != nil {
			return nil, err
		}
		here, err := s.Run()
		if err != nil {
			return nil, err
		}
		if slices.Equal(here, there) {
			return append([]string{"the harness and the broker give the same:"}, here...), nil
		}
		return append(append([]string{"the harness gives"}, there...), append([]string{"and the broker"}, here...)...), nil
	},
	Result: append([]string{"the harness and the broker give the same:"}, revenueLesson.Result...),
}

// InHarness gives the lesson's output without a broker.
func (l *Lesson) InHarness() ([]string, error) {
	app := App("primer")
	plan, err := l.Build(app)
	if err != nil {
		return nil, err
	}
	d, err := topologytest.Open(plan)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	for _, r := range l.Input {
		err := d.Pipe(topologytest.Record{Topic: app.Topic(r.Topic), Partition: -1, Timestamp: r.timestamp(), Key: []byte(r.Key), Value: r.value()})
		if err != nil {
			return nil, err
		}
	}
	var lines []string
	for _, r := range d.Read(app.Topic(l.Output)) {
		lines = append(lines, line(string(r.Key), r.Value, r.Timestamp))
	}
	return lines, nil
}
