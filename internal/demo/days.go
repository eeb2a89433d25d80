package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tributary-io/tributary/examples/shop"
)

// diary remembers which days were emitted with which settings, so that the model can be asked what all of them must give.
type diary struct {
	Orders int      `json:"orders"`
	Seed   uint64   `json:"seed"`
	Days   []string `json:"days"`

	path string
}

func openDiary(dir string, spec shop.Spec) (*diary, error) {
	d := &diary{Orders: spec.Orders, Seed: spec.Seed, path: filepath.Join(dir, "days.json")}
	text, err := os.ReadFile(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%s: %w", d.path, err)
	}
	if d.Orders != spec.Orders || d.Seed != spec.Seed {
		return nil, fmt.Errorf("%s holds a stream of --orders %d --seed %d: use the same, or another --dir", dir, d.Orders, d.Seed)
	}
	return d, nil
}

// note writes a day down before its first record is emitted.
func (d *diary) note(day time.Time) error {
	text := day.Format(time.DateOnly)
	if slices.Contains(d.Days, text) {
		return nil
	}
	d.Days = append(d.Days, text)
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	temporary := d.path + ".new"
	if err := os.WriteFile(temporary, append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, d.path)
}

// model is what all the days must give.
func (d *diary) model() (*shop.Model, error) {
	spec := shop.Spec{Orders: d.Orders, Seed: d.Seed}
	m := shop.NewModel(spec)
	for _, text := range d.Days {
		day, err := shop.ParseDate(text)
		if err != nil {
			return nil, err
		}
		m.AddDay(day)
	}
	return m, nil
}
