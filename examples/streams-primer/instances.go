package primer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

var restoreLesson = Lesson{
	Name:   "restore",
	Idea:   "State is backed up by a changelog topic: an instance without its disk reads it back, and goes on counting.",
	Topics: map[string]int32{"visits": 1, "out": 1},
	Output: "out",
	Input: []Record{
		{"visits", "anna", "x", 0}, {"visits", "ben", "x", 1}, {"visits", "anna", "x", 2}, {"visits", "anna", "x", 3},
	},
	Build: countVisits,
	Play: func(s *Stage) ([]string, error) {
		lines, err := s.Run()
		if err != nil {
			return nil, err
		}
		if err := os.RemoveAll(filepath.Join(s.Dir, "one")); err != nil {
			return nil, err
		}
		lines = append(lines, "the disk is gone; another instance starts")
		i, err := s.Start("another", engine.OnRestore(func(e engine.RestoreEvent) {
			fmt.Fprintf(s.Out, "  task %s: restore %v: %d records read, %d offsets left\n", e.Task, e.Phase, e.Records, e.Left)
		}))
		if err != nil {
			return nil, err
		}
		rows, err := s.rows(i)
		return append(lines, rows...), errors.Join(err, i.Stop())
	},
	Result: []string{
		"00:00  anna     visit 1",
		"00:01  ben      visit 1",
		"00:02  anna     visit 2",
		"00:03  anna     visit 3",
		"the disk is gone; another instance starts",
		"it has: anna 3",
		"it has: ben 1",
	},
}

func countVisits(app App) (*topology.Plan, error) {
	b := app.builder()
	b.Stream(app.Topic("visits"), serde.String, serde.String).
		GroupByKey().
		Count(topology.Store("visits")).
		ToStream().
		MapValues(func(n int64) string { return "visit " + strconv.FormatInt(n, 10) }).
		To(app.Topic("out"))
	return b.Build()
}

// rows lists the counts of an instance once it has them.
func (s *Stage) rows(i *Instance) (lines []string, err error) {
	query, err := engine.QueryKeyValue(i.Engine, "visits", serde.String, serde.Int64)
	if err != nil {
		return nil, err
	}
	err = s.until(i, "the restored state", func() (bool, error) { return i.Stats().State == engine.Running, nil })
	if err != nil {
		return nil, err
	}
	for row, err := range query.All() {
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("it has: %s %d", row.Key, row.Value))
	}
	return lines, nil
}

var tasksLesson = Lesson{
	Name:   "tasks",
	Idea:   "A task for each partition: instances share them, and when one ends the others take over.",
	Topics: map[string]int32{"visits": 4, "out": 1},
	Output: "out",
	Build: func(app App) (*topology.Plan, error) {
		b := app.builder()
		b.Stream(app.Topic("visits"), serde.String, serde.String).To(app.Topic("out"))
		return b.Build()
	},
	Play: func(s *Stage) ([]string, error) {
		one, err := s.Start("one")
		if err != nil {
			return nil, err
		}
		lines, err := s.share(one)
		return lines, errors.Join(err, one.Stop())
	},
	Result: []string{
		"one instance has 4 tasks: 0_0 0_1 0_2 0_3",
		"with another one each has 2",
		"the other one ends, and the first has 4 again",
	},
}

// share lets another instance come and go.
func (s *Stage) share(one *Instance) ([]string, error) {
	if err := s.tasks(one, 4); err != nil {
		return nil, err
	}
	text := "one instance has 4 tasks:"
	for _, t := range one.Stats().Tasks {
		text += " " + t.Name
	}
	two, err := s.Start("two")
	if err != nil {
		return nil, err
	}
	err = errors.Join(s.tasks(one, 2), s.tasks(two, 2))
	if err = errors.Join(err, two.Stop()); err != nil {
		return nil, err
	}
	return []string{text, "with another one each has 2", "the other one ends, and the first has 4 again"}, s.tasks(one, 4)
}

// tasks waits until an instance has so many tasks.
func (s *Stage) tasks(i *Instance, n int) error {
	return s.until(i, fmt.Sprintf("%d tasks", n), func() (bool, error) {
		stats := i.Stats()
		return stats.State == engine.Running && len(stats.Tasks) == n, nil
	})
}
