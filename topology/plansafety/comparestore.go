package plansafety

import (
	"fmt"
	"slices"
)

func (c *comparison) stores() {
	pairing[Store]{
		old: c.old.Stores, new: c.new.Stores, name: func(s Store) string { return s.Name },
		shapes: []func(Store) string{
			func(s Store) string { return s.shape() + "|" + list(s.Path) },
			func(s Store) string { return s.shape() + "|" + s.operator() },
			Store.shape,
		},
	}.pairs(c.store, c.storeGone, func(s Store) {
		c.add(Change{Thing: AStore, Status: New, New: s.Name, Advice: c.beginsEmpty(s)})
	})
}

// shape is what two stores that hold the same have in common, whatever their names.
func (s Store) shape() string {
	return fmt.Sprint(s.Kind, s.Global, s.Key, s.Value, s.WindowSizeMs, s.RetainDuplicates, list(s.Origins))
}

// operator is what a generated name tells, and nothing of a name that was given.
func (s Store) operator() string {
	if s.Generated {
		return operatorOf(s.Name)
	}
	return ""
}

func (c *comparison) beginsEmpty(s Store) string {
	if s.Global {
		return "every instance reads it whole at its start"
	}
	return "it begins empty, and is filled by what is read from the committed offsets on; to fill it from the beginning, reset the application"
}

// store compares what are, or may be, two versions of one store.
func (c *comparison) store(old, new Store, renamed bool) {
	var d differences
	say(&d, true, "kind", old.Kind, new.Kind)
	saySerde(&d, "key serde", old.Key, new.Key)
	saySerde(&d, "value serde", old.Value, new.Value)
	say(&d, true, "window size in ms", old.WindowSizeMs, new.WindowSizeMs)
	say(&d, true, "retains duplicates", old.RetainDuplicates, new.RetainDuplicates)
	say(&d, true, "global", old.Global, new.Global)
	layout := d.loses
	wide := say(&d, true, "partitions", old.Width.String(), new.Width.String())
	backup := c.backup(&d, old, new, renamed)
	say(&d, false, "in memory", old.InMemory, new.InMemory)
	say(&d, false, "largest number of entries", old.MaxEntries, new.MaxEntries)
	retention := say(&d, false, "retention in ms", old.RetentionMs, new.RetentionMs)
	history := say(&d, false, "history in ms", old.HistoryMs, new.HistoryMs)
	say(&d, false, "grace in ms", old.GraceMs, new.GraceMs)
	say(&d, false, "contents come from", list(old.Origins), list(new.Origins))
	moved := say(&d, old.Changelog == "" && !old.Global, "sub-topology", old.Subtopology, new.Subtopology)

	change := Change{Thing: AStore, Old: old.Name, New: new.Name, Differences: d.texts, Loses: d.loses}
	switch {
	case renamed:
		change.Status, change.Loses, change.Advice = Renamed, !old.Global, renamedStore(old)
		if old.Global {
			change.Advice = "every instance reads it whole again at its start"
		}
	case c.uncertain(old, new):
		change.Status, change.Loses = Uncertain, true
		change.Advice = "the name was generated, and operators have come, gone or moved: it may be another operator's store now, whose contents would be taken for its own. Name all stores (topology.Store; topology.StrictNames demands it), giving this one the name that it has"
	case layout:
		change.Status = Changed
		change.Advice = "what is stored can't be read as declared now: give the store a new name, which begins empty, or reset the application; if the bytes are the same after all (a type was only renamed), accept it"
	case wide:
		change.Status = Repartitioned
		change.Advice = "a key's row would be looked for in another partition than the one that holds it, unless both have the same number of partitions: compare them, and reset the application if they differ"
	case backup != "":
		change.Status, change.Advice = Changed, backup
	case moved:
		change.Status = Changed
		change.Advice = "the directories of its tasks have other names now: it is restored from " + show(new.Changelog) + " once, which takes time and loses nothing"
		if old.Changelog == "" {
			change.Advice = "the directories of its tasks have other names now, and it has no changelog to be restored from: it begins empty"
		}
	case len(d.texts) > 0:
		change.Status = Changed
		switch {
		case new.Changelog == "" || new.SourceTopic:
		case history:
			change.Advice = "the engine doesn't alter the settings of topics that exist: alter min.compaction.lag.ms of " + new.Changelog + " to fit"
		case retention:
			change.Advice = "from now on the engine deletes from " + new.Changelog + " by the new retention; what has expired already stays away"
		}
	default:
		change.Status = Kept
	}
	c.add(change)
}

// backup compares where the stores are restored from. It returns what to do if that differs.
func (c *comparison) backup(d *differences, old, new Store, renamed bool) string {
	from, to := c.old.raw(old.Changelog), c.new.raw(new.Changelog)
	if renamed && !old.SourceTopic && !new.SourceTopic && (from == "") == (to == "") {
		return ""
	}
	toSource := new.SourceTopic && !old.SourceTopic // has all of it, up to the committed offset
	if !say(d, !toSource && from != "" || from == "", "restored from", from, to) {
		return ""
	}
	switch {
	case toSource:
		return "it is restored from its input topic from now on, which must keep the last record of each key (cleanup.policy=compact)"
	case to == "":
		return "without a changelog the store is lost with its directory: another instance, or a new disk, begins empty"
	}
	return "the changelog begins empty, so what the store holds now is lost with its directory, and is missing on every other instance: reset the application to fill both"
}

func samePath(old, new Store) bool { return slices.Equal(old.Path, new.Path) }

// uncertain tells that a store with the same generated name may be another operator's.
func (c *comparison) uncertain(old, new Store) bool {
	if !new.Generated { // somebody has given it this name, perhaps as advised here
		return false
	}
	if !slices.Equal(old.Origins, new.Origins) || !samePath(old, new) {
		return true
	}
	// Nothing to tell operators apart by: then their number and names must not have changed.
	return !slices.Equal(c.old.alike(old), c.new.alike(new))
}

// alike names the stores with generated names and the same shape.
func (p *Plan) alike(s Store) []string {
	var names []string
	for _, other := range p.Stores {
		if other.Generated && other.shape() == s.shape() && other.operator() == s.operator() {
			names = append(names, other.Name)
		}
	}
	return names
}

func renamedStore(old Store) string {
	if !old.Generated {
		return fmt.Sprintf("the new name begins empty: keep the name %q (option topology.Store, or where the store is declared) to keep what is stored", old.Name)
	}
	return fmt.Sprintf("the generated name has shifted, and the new one begins empty: give the operator topology.Store(%q), its old name, and compare again (a name of your own shifts the numbers behind it)", old.Name)
}

func (c *comparison) storeGone(s Store) {
	change := Change{Thing: AStore, Status: Orphaned, Old: s.Name, Loses: !s.Global && !s.SourceTopic}
	change.Advice = "what it holds is not used any more"
	if s.Changelog != "" && !s.SourceTopic {
		change.Advice += ": once no version that needs it can come back, delete the topic " + s.Changelog
	}
	c.add(change)
}
