package tributary_test

import (
	"bufio"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules of the house, checked so that they stay true. docs/ARCHITECTURE.md tells why.

const module = "github.com/tributary-io/tributary/"

// goFiles lists the non-test Go files below the root by package folder.
func goFiles(t *testing.T) map[string][]string {
	t.Helper()
	byFolder := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			folder := filepath.ToSlash(filepath.Dir(path))
			byFolder[folder] = append(byFolder[folder], path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return byFolder
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for folder, files := range goFiles(t) {
		if strings.HasPrefix(folder, "cmd/") || slices.Contains(files, filepath.Join(folder, "main.go")) {
			continue // a command's comment stands in its main.go
		}
		doc := filepath.Join(folder, "doc.go")
		if !slices.Contains(files, doc) {
			t.Errorf("%s has no doc.go", folder)
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), doc, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Error(err)
		} else if f.Doc == nil || len(strings.Fields(f.Doc.Text())) < 15 {
			t.Errorf("%s: its package comment says next to nothing", doc)
		}
	}
}

func TestFilesStayReadable(t *testing.T) {
	const limit = 800
	for _, files := range goFiles(t) {
		for _, path := range files {
			if n := lines(t, path); n > limit {
				t.Errorf("%s has %d lines; split it by subject (limit %d, aim 600)", path, n, limit)
			}
		}
	}
}

// layers are the rooms from the bottom up: a room imports only rooms of lower layers, or of its own folder.
var layers = []struct {
	layer int
	rooms []string
}{
	{0, []string{"serde", "lake/sink", "internal/callsite", "internal/filelock", "internal/child", "internal/faultproxy", "schemas"}},
	{1, []string{"state"}},
	{2, []string{"processors"}},
	{3, []string{"internal/plan", "internal/logical"}},
	{4, []string{"topology"}},
	{5, []string{"internal/task"}},
	{6, []string{"engine", "topology/topologytest"}},
	{7, []string{"land", "examples", "console", "cmd", "engine/appcmd", "bench", "gokacompat", "internal/chaos", "internal/differential"}},
}

// layerOf returns the layer of a package folder; -1 if the rule does not speak of it.
func layerOf(folder string) int {
	layer, length := -1, 0
	for _, l := range layers {
		for _, room := range l.rooms {
			if (folder == room || strings.HasPrefix(folder, room+"/")) && len(room) > length {
				layer, length = l.layer, len(room)
			}
		}
	}
	return layer
}

func TestImportsGoOneWay(t *testing.T) {
	clients := []string{"github.com/twmb/franz-go/pkg/kgo", "github.com/twmb/franz-go/pkg/kadm", "github.com/twmb/franz-go/pkg/kmsg"}
	noClient := func(folder string) bool {
		switch top, _, _ := strings.Cut(folder, "/"); top {
		case "topology", "processors", "state", "lake":
			return true
		}
		return folder == "internal/task" || folder == "internal/plan" || folder == "internal/logical"
	}
	for folder, files := range goFiles(t) {
		for _, path := range files {
			for _, imported := range imports(t, path) {
				if noClient(folder) && slices.Contains(clients, imported) {
					t.Errorf("%s imports %s: this room knows no Kafka client", path, imported)
				}
				if heavy(imported) && !slices.Contains([]string{"gokacompat", "examples", "bench"}, top(folder)) {
					t.Errorf("%s imports %s: only gokacompat, examples and bench carry the weight of goka", path, imported)
				}
				to, ours := strings.CutPrefix(imported, module)
				if to == "gokacompat" && !slices.Contains([]string{"gokacompat", "examples", "bench"}, top(folder)) {
					t.Errorf("%s imports %s, and with it goka: only examples and bench may", path, imported)
				}
				if !ours {
					continue
				}
				from, into := layerOf(folder), layerOf(to)
				if from >= 0 && into > from {
					t.Errorf("%s imports %s: imports go one way", path, to)
				}
				if strings.HasPrefix(folder, "lake") && into >= 1 {
					t.Errorf("%s imports %s: the lake knows only the sink contract", path, to)
				}
			}
		}
	}
}

func top(folder string) string {
	first, _, _ := strings.Cut(folder, "/")
	return first
}

// heavy tells whether a package is goka's or its client's.
func heavy(imported string) bool {
	return strings.HasPrefix(imported, "github.com/lovoo/goka") || strings.HasPrefix(imported, "github.com/IBM/sarama")
}

func imports(t *testing.T, path string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return nil
	}
	var all []string
	for _, spec := range f.Imports {
		s, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Error(err)
		}
		all = append(all, s)
	}
	return all
}

func lines(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		n++
	}
	return n
}
