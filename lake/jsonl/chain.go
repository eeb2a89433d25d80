package jsonl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tributary-io/tributary/lake/object"
	"github.com/tributary-io/tributary/lake/sink"
)

// BrokenChainError says that a partition's manifests don't follow one another: one was removed or changed by others.
type BrokenChainError struct {
	Place     string
	Partition sink.Partition
	Want, Got int64 // where the next manifest should start, and where it does
}

func (e *BrokenChainError) Error() string {
	return fmt.Sprintf("landing %s: the manifests of %s are not whole: one should start at offset %d, the next one starts at %d; put back what was removed, or empty the landing by a reset",
		e.Place, e.Partition, e.Want, e.Got)
}

// chain yields the manifests of a partition from the one that starts at an offset on (0: from the first that is there), in order. A *BrokenChainError comes
// with the manifest behind the gap, and who goes on gets the others.
func chain(ctx context.Context, store object.Store, p sink.Partition, from int64) iter.Seq2[*Manifest, error] {
	return func(yield func(*Manifest, error) bool) {
		_, r, err := newest(ctx, store, p)
		if err != nil {
			yield(nil, err)
			return
		}
		after := ""
		if from > 0 {
			after = r.manifest(from - 1)
		}
		want := int64(-1)
		for info, err := range store.List(ctx, r.folder(), after) {
			if err != nil {
				yield(nil, fmt.Errorf("list manifests of %s: %w", p, err))
				return
			}
			if _, _, ok := parseManifestName(info.Name); !ok {
				continue
			}
			m, err := readManifest(ctx, store, info.Name)
			if err != nil {
				yield(nil, err)
				return
			}
			if want >= 0 && m.Start != want {
				err = &BrokenChainError{store.String(), p, want, m.Start}
			}
			if m.Emptied && err == nil { // just now
				return
			}
			want = m.Next()
			if !yield(m, err) {
				return
			}
		}
	}
}

func readManifest(ctx context.Context, store object.Store, name string) (*Manifest, error) {
	data, err := store.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return decodeManifest(name, data)
}

// newest finds a partition's round, and the last manifest of that, nil if there is none.
func newest(ctx context.Context, store object.Store, p sink.Partition) (*Manifest, round, error) {
	for r := (round{Partition: p}); ; r.number++ {
		m, err := newestIn(ctx, store, r)
		if err != nil || m == nil || !m.Emptied {
			return m, r, err
		}
	}
}

// newestIn finds the last manifest of a round, nil if there is none. It lists from the hint on, so that a long chain costs no more than what has landed
// since the hint was written.
func newestIn(ctx context.Context, store object.Store, r round) (*Manifest, error) {
	last := ""
	after := hinted(ctx, store, r)
	for {
		for info, err := range store.List(ctx, r.folder(), after) {
			if err != nil {
				return nil, fmt.Errorf("list manifests of %s: %w", r, err)
			}
			if _, _, ok := parseManifestName(info.Name); ok {
				last = info.Name
			}
		}
		if last == "" && after != "" { // the hint is of a manifest that is gone, or the last
			if m, err := readManifest(ctx, store, after); err == nil || !errors.Is(err, object.ErrNotFound) {
				return m, err
			}
			after = ""
			continue
		}
		if last == "" {
			return nil, nil
		}
		return readManifest(ctx, store, last)
	}
}

// hint is what newestName holds.
type hint struct {
	Start int64 `json:"start"`
}

// hinted returns the name of a manifest near the end of the chain, "" if nothing tells.
func hinted(ctx context.Context, store object.Store, r round) string {
	var h hint
	data, err := store.Get(ctx, r.folder()+newestName)
	if err != nil || json.Unmarshal(data, &h) != nil || h.Start <= 0 {
		return ""
	}
	return r.manifest(h.Start)
}

// writeHint keeps the way to the end of the chain short. Its failure harms nobody.
func writeHint(ctx context.Context, store object.Store, r round, start int64) error {
	data, err := json.Marshal(hint{start})
	if err != nil {
		return err
	}
	return store.Put(ctx, r.folder()+newestName, data)
}

// partitions finds all partitions that have landed, with one request for each of their rounds.
func partitions(ctx context.Context, store object.Store) ([]sink.Partition, error) {
	var out []sink.Partition
	for after := ""; ; {
		found := false
		for info, err := range store.List(ctx, manifestFolder, after) {
			if err != nil {
				return nil, fmt.Errorf("list manifests: %w", err)
			}
			r, _, ok := parseManifestName(info.Name)
			if !ok {
				continue
			}
			if !slices.Contains(out, r.Partition) {
				out = append(out, r.Partition)
			}
			after = r.folder() + "~" // behind digits and the hint
			found = true
			break
		}
		if !found {
			return out, nil
		}
	}
}
