package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-io/tributary/lake"
	"github.com/tributary-io/tributary/lake/object"
)

// The kinds of what lies in a lake.
const (
	deltaTable   = "Delta table"
	icebergTable = "Iceberg table"
	jsonLines    = "landing in JSON Lines"
)

// found is something that lies at a place, or below it.
type found struct {
	name string // below the place; "" is the place itself
	kind string
}

// findLimit bounds the objects that are looked at.
const findLimit = 20_000

// findBelow looks for what lies at a place and below it. It reads names only, and skips what is inside of a thing that it has found.
func findBelow(ctx context.Context, place string) (all []found, err error) {
	store, err := object.Open(ctx, place)
	if err != nil {
		return nil, err
	}
	after := ""
	for looked := 0; looked < findLimit; {
		again := false
		for info, err := range store.List(ctx, "", after) {
			if err != nil {
				return all, err
			}
			if looked++; looked > findLimit {
				break
			}
			f, ok := partOf(info.Name)
			if !ok {
				continue
			}
			all = append(all, f)
			after, again = f.name+"0", f.name != "" // the first name that isn't below it
			break
		}
		if !again {
			break
		}
	}
	return all, nil
}

// partOf tells what an object is part of.
func partOf(name string) (f found, ok bool) {
	for _, kind := range []struct{ name, folder, ending string }{
		{deltaTable, "/_delta_log/", ".json"}, {deltaTable, "/_delta_log/", ".parquet"}, {icebergTable, "/metadata/", ".metadata.json"}, {jsonLines, "/_manifests/", ".json"},
	} {
		if at := strings.Index("/"+name, kind.folder); at >= 0 && strings.HasSuffix(name, kind.ending) {
			return found{strings.TrimPrefix(("/" + name)[:at], "/"), kind.name}, true
		}
	}
	return f, false
}

// sayWhatIsThere makes commands that find no Delta table at the place that is their first argument say what is there instead.
func sayWhatIsThere(cmds ...*cobra.Command) {
	for _, cmd := range cmds {
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if len(args) == 0 || !errors.Is(err, lake.ErrNoTable) || errors.Is(err, fs.ErrNotExist) {
				return err
			}
			all, findErr := findBelow(cmd.Context(), args[0])
			if findErr != nil || len(all) == 0 {
				return err
			}
			return fmt.Errorf("%w, %s", err, whatIsThere(args[0], all))
		}
	}
}

// shownPlaces is how many places a message names.
const shownPlaces = 10

// whatIsThere tells of what was found, with the commands that show it.
func whatIsThere(place string, all []found) string {
	if all[0].name == "" {
		switch all[0].kind {
		case jsonLines:
			return "but a landing in JSON Lines: tributary jsonl show " + place
		case icebergTable:
			return "but the files of an Iceberg table: its catalog knows it"
		}
	}
	text := "but below it:"
	for i, f := range all {
		if i == shownPlaces {
			return text + fmt.Sprintf("\n  and %d more", len(all)-i)
		}
		text += fmt.Sprintf("\n  %s/%s (%s)", strings.TrimSuffix(place, "/"), f.name, f.kind)
	}
	return text
}
