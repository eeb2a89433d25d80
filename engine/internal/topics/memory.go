package topics

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Memory keeps, in the state directory, which internal topics this instance has seen, by id.
type Memory struct {
	path string
	ids  map[string]string // name -> id in hex
}

// OpenMemory reads the memory in dir.
func OpenMemory(dir string) (*Memory, error) {
	m := &Memory{path: filepath.Join(dir, "internal-topics.json"), ids: map[string]string{}}
	data, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m.ids)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", m.path, err)
	}
	return m, nil
}

// Check compares what exists with what was seen before, for those of names that were. A topic that is gone, or is another one of the
// same name, is a problem: what local state was made of is lost.
func (m *Memory) Check(names []string, existing map[string]Topic) error {
	var bad []Problem
	for _, name := range names {
		if m.ids[name] == "" {
			continue
		}
		t, ok := existing[name]
		switch {
		case !ok:
			bad = append(bad, Problem{name, "it is gone, though local state in " + filepath.Dir(m.path) + " was made with it",
				"restore the topic, or reset the application to begin anew"})
		case hex.EncodeToString(t.ID[:]) != m.ids[name]:
			bad = append(bad, Problem{name, "it was deleted and made anew, so local state in " + filepath.Dir(m.path) + " doesn't fit it",
				"reset the application, or remove the state directory if the topic's contents are right"})
		}
	}
	if len(bad) > 0 {
		return &InternalError{Problems: bad}
	}
	return nil
}

// Keep notes topics as seen and forgets those that aren't used any more.
func (m *Memory) Keep(topics map[string]Topic) error {
	ids := make(map[string]string, len(topics))
	for name, t := range topics {
		if t.ID != [16]byte{} { // brokers before 2.8 have none
			ids[name] = hex.EncodeToString(t.ID[:])
		}
	}
	if maps.Equal(ids, m.ids) {
		return nil
	}
	data, err := json.MarshalIndent(ids, "", "  ")
	if err == nil {
		err = replaceFile(m.path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", m.path, err)
	}
	m.ids = ids
	return nil
}

// Names lists what is remembered.
func (m *Memory) Names() []string { return slices.Sorted(maps.Keys(m.ids)) }

func replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}
