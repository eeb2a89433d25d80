package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tributary-io/tributary/engine/internal/topics"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/state"
	"github.com/tributary-io/tributary/topology/plansafety"
)

// A state directory keeps the plan that it was last used with. A change that would leave state behind, or misread it, is found by it at start,
// before the brokers' topics are looked at: they show only that something is different, and not what.

// lastPlanFile is in the application's part of the state directory: see docs/format/plan-json.md.
const lastPlanFile = "topology.json"

// changingPage is where it is said what to do about changes.
const changingPage = "docs/operations/changing-a-topology.md"

// ChangedStoreError says that a store's name was that of another kind of store, which has left state and a changelog that the declared one can't
// take over.
type ChangedStoreError struct {
	Store, Changelog string
	Dir              string // where local state is, or what says so
	Was, Is          state.Kind
}

func (e *ChangedStoreError) Error() string {
	return fmt.Sprintf("store %q was a store of kind %s, by %s, and is declared as %s now, which can't take over what that holds, nor its changelog %s: "+
		"give it another name with topology.Store (it begins empty), or reset the application (its command reset, or engine.ResetApplication); don't alter the topic: see %s",
		e.Store, e.Was, e.Dir, e.Is, e.Changelog, changingPage)
}

// compareWithLast compares the topology with the one that the state directory was last used with. What would be lost or misread is logged; an
// error says what can't work.
func (e *Engine) compareWithLast() error {
	path := filepath.Join(e.appDir(), lastPlanFile)
	last, err := plansafety.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		e.log.Warn("the plan that the state directory was last used with can't be read: whether the topology has changed isn't known", "error", err)
		return nil
	}
	var errs []error
	for i := range last.Stores {
		errs = append(errs, e.checkKind(&last.Stores[i], path))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	report := plansafety.Compare(last, e.version.Saved)
	for i := range report.Changes {
		if c := &report.Changes[i]; c.Loses {
			e.log.Warn("the topology has changed since this state directory was last used, and state would be lost or misread: "+c.Advice,
				string(c.Thing), c.Names(), "status", string(c.Status), "differences", strings.Join(c.Differences, "; "), "see", changingPage)
		}
	}
	return nil
}

// checkKind tells whether a store that was there before can go on as it is declared now.
func (e *Engine) checkKind(old *plansafety.Store, from string) error {
	s := e.plan.Stores[old.Name]
	was, known := state.KindOf(old.Kind)
	if s == nil || !known || s.Global || old.Global || s.Changelog != old.Changelog {
		return nil
	}
	return changedKind(s, was, from)
}

// changedKind is the error of a store whose changelog was written by another kind of store; nil if the declared one reads it.
func changedKind(s *plan.Store, was state.Kind, dir string) error {
	if s.Changelog == "" || s.Spec.Kind.SharesChangelog(was) {
		return nil
	}
	return &ChangedStoreError{Store: s.Spec.Name, Changelog: s.Changelog, Dir: dir, Was: was, Is: s.Spec.Kind}
}

// keepPlan remembers the plan for the next start.
func (e *Engine) keepPlan() error {
	var text bytes.Buffer
	if err := e.version.Saved.Write(&text); err != nil {
		return err
	}
	path := filepath.Join(e.appDir(), lastPlanFile)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text.Bytes()) {
		return nil
	}
	next := path + ".next" // nobody else has the directory
	err := os.WriteFile(next, text.Bytes(), 0o644)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return fmt.Errorf("keep the plan: %w", err)
	}
	return nil
}

// unusedPatience bounds the look for unused topics, which a start can do without.
const unusedPatience = 5 * time.Second

// warnUnused names changelogs of stores with generated names that no store of the topology has any more: when such names shift, a store begins
// empty, and its former changelog is what tells. Chosen names can't be told from those of applications whose ids begin with this one's.
func (e *Engine) warnUnused(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, unusedPatience)
	defer cancel()
	prefix, suffix := e.plan.ApplicationID+"-", "-changelog"
	found, err := topics.Matching(ctx, e.control, regexp.QuoteMeta(prefix)+`(?:KSTREAM|KTABLE)-.*[0-9]{10}.*`+suffix)
	if err != nil {
		e.log.Debug("topics can't be listed to find unused changelogs", "error", err)
		return
	}
	var unused, stores []string
	for name := range found {
		if e.plan.InternalTopics[name] == nil {
			unused = append(unused, name)
			stores = append(stores, strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix))
		}
	}
	if len(unused) == 0 {
		return
	}
	slices.Sort(unused)
	slices.Sort(stores)
	e.log.Warn("changelogs of this application belong to no store of the topology: if generated names have shifted, the new ones begin empty. "+
		"Give an operator the old name of its store with topology.Store, and compare the versions with tributary diff; or delete the topics once no version needs them",
		"topics", unused, "stores", stores, "see", changingPage)
}
