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

// rooms are those of docs/ARCHITECTURE.md, from the bottom up: each imports only rooms that stand before it, and its own folder. A package belongs
// to the room with the longest name that fits.
var rooms = []string{
	// Tools, most of them for tests, which know nothing of the library.
	"deploy", "internal/callsite", "internal/filelock", "internal/filelimit", "internal/leaks", "internal/child", "internal/faultproxy", "internal/detruntime", "internal/testreport",
	"internal/fetched", "internal/mavenjars", "internal/pyenv", "internal/promtool", "internal/realkafka", "internal/realregistry", "internal/embedded",
	"internal/kafkaflags", "internal/offsetset", "internal/topicrights", "internal/rowgen",

	"serde", "schemas", "lake/sink", "internal/sinktest", "state", "processors", "internal/plan", "internal/logical", "topology", "internal/task",
	"topology/topologytest", "topology/plansafety", "engine", "lake", "internal/verify", "internal/dlq", "land", "gokacompat", "console",
	"engine/devbroker", "internal/plancommands", "engine/appcmd", "examples", "internal/demo", "cmd", "internal/chaos", "internal/differential", "bench",
}

// roomOf returns the place in rooms of the one that a package folder belongs to; -1 if there is none.
func roomOf(folder string) int {
	at := -1
	for i, room := range rooms {
		if (folder == room || strings.HasPrefix(folder, room+"/")) && (at < 0 || len(room) > len(rooms[at])) {
			at = i
		}
	}
	return at
}

// TestEveryPackageHasItsRoom lets no package come without a place among the others.
func TestEveryPackageHasItsRoom(t *testing.T) {
	page, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	folders := goFiles(t)
	for folder := range folders {
		if folder != "." && roomOf(folder) < 0 {
			t.Errorf("%s is in no room: give it a place in rooms, and in docs/ARCHITECTURE.md", folder)
		}
	}
	for _, room := range rooms {
		if !strings.Contains(string(page), "`"+room+"`") && !strings.Contains(string(page), "`"+room+"/") {
			t.Errorf("docs/ARCHITECTURE.md doesn't say what %s is", room)
		}
		if _, err := os.Stat(room); err != nil {
			t.Error(err)
		}
	}
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
				into := roomOf(to)
				if into > roomOf(folder) {
					t.Errorf("%s imports %s: imports go one way", path, to)
				}
				if top(folder) == "lake" && top(to) != "lake" && into >= slices.Index(rooms, "serde") {
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
