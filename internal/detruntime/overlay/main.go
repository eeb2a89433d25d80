package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// edit replaces one piece of a file of the standard library, which must be there exactly once.
type edit struct{ file, old, new string }

var edits = []edit{
	// The process's own seed: hashes, and what is drawn outside of bubbles.
	{"runtime/rand.go", "globalRand.state.Init(*seed)", "*seed = [32]byte{1}\n\tglobalRand.state.Init(*seed)"},
	// Maps, math/rand, hash/maphash.
	{"runtime/rand.go", "func rand() uint64 {", "func rand() uint64 {\n\tif detBubbled() {\n\t\treturn detNext()\n\t}"},
	// A select's order.
	{"runtime/select.go", "cheaprandn(uint32(norder + 1))", "detRandn(uint32(norder + 1))"},
	// Timers that end at the same moment.
	{"runtime/time.go", "t.rand = cheaprand()", "t.rand = detRandn(1 << 31)"},
	// The time after which a mutex is handed on in order is the simulation's.
	{"runtime/sema.go", "func internal_sync_nanotime() int64 {", "func internal_sync_nanotime() int64 {\n\tif detBubbled() {\n\t\treturn getg().bubble.now\n\t}"},
	// Goroutines of bubbles aren't taken off the processor by the clock, also not in system calls.
	{"runtime/proc.go", "func retake(now int64) uint32 {", "func retake(now int64) uint32 {\n\tif detOn {\n\t\treturn 0\n\t}"},
	// Whether a goroutine that has become runnable is the next one is drawn. The runtime's own goroutines never are, and so don't change the others' order.
	{"runtime/proc.go", "if randomizeScheduler && next && randn(2) == 0 {", "if detOn && next && (gp.bubble == nil || detNext()&1 == 0) {\n\t\tnext = false\n\t}\n\tif randomizeScheduler && next && randn(2) == 0 {"},
	// A goroutine that yields stays in the local queue: when the global one is looked at depends on what the process did before.
	{"runtime/proc.go", "lock(&sched.lock)\n\t\tglobrunqput(gp)\n\t\tunlock(&sched.lock)\n\t}\n\n\tif mainStarted {", "if detOn {\n\t\t\trunqput(pp, gp, false)\n\t\t} else {\n\t\t\tlock(&sched.lock)\n\t\t\tglobrunqput(gp)\n\t\t\tunlock(&sched.lock)\n\t\t}\n\t}\n\n\tif mainStarted {"},
	{"runtime/proc.go", "if pp.schedtick%61 == 0 && !sched.runq.empty() {", "if !detOn && pp.schedtick%61 == 0 && !sched.runq.empty() {"},
	// A context's children are cancelled in the order in which they came, not in that of their addresses.
	{"context/context.go", "children map[canceler]struct{} //", "born     uint64\n\tchildren map[canceler]uint64 // their numbers;"},
	{"context/context.go", "p.children = make(map[canceler]struct{})", "p.children = make(map[canceler]uint64)"},
	{"context/context.go", "p.children[child] = struct{}{}", "p.born++\n\t\t\tp.children[child] = p.born"},
	{"context/context.go", "for child := range c.children {", "for _, child := range detOrder(c.children) {"},
	// What a pool holds depends on what the process did before.
	{"sync/pool.go", "func (p *Pool) Put(x any) {", "func (p *Pool) Put(x any) {\n\tif runtime_detOn() {\n\t\treturn\n\t}"},
	{"sync/pool.go", "func (p *Pool) Get() any {", "func (p *Pool) Get() any {\n\tif runtime_detOn() {\n\t\tif p.New == nil {\n\t\t\treturn nil\n\t\t}\n\t\treturn p.New()\n\t}"},
	{"sync/pool.go", "func runtime_randn(n uint32) uint32", "func runtime_randn(n uint32) uint32\n\n//go:linkname runtime_detOn runtime.detIsOn\nfunc runtime_detOn() bool"},
}

// added are files that the standard library doesn't have.
var added = map[string]string{
	"context/detruntime.go": `package context

import (
	"cmp"
	"slices"
)

func detOrder(children map[canceler]uint64) []canceler {
	all := make([]canceler, 0, len(children))
	for c := range children {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b canceler) int { return cmp.Compare(children[a], children[b]) })
	return all
}
`,
	"runtime/detruntime.go": `package runtime

import _ "unsafe"

var (
	detOn    bool
	detState uint64
)

//go:linkname detSeed
var detSeed = func(seed uint64) {
	detOn, detState = true, seed
	detNext()
}

//go:linkname detIsOn
func detIsOn() bool { return detOn && getg().bubble != nil }

//go:nosplit
func detBubbled() bool { return detOn && getg().bubble != nil }

// detNext is splitmix64.
//
//go:nosplit
func detNext() uint64 {
	detState += 0x9e3779b97f4a7c15
	z := detState
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

//go:nosplit
func detRandn(n uint32) uint32 {
	if detBubbled() {
		return uint32((uint64(uint32(detNext())) * uint64(n)) >> 32)
	}
	return cheaprandn(n)
}
`,
}

func main() {
	dir := flag.String("dir", "", "where to write the files and overlay.json")
	flag.Parse()
	if *dir == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := write(*dir); err != nil {
		log.Fatalf("overlay: %v", err)
	}
}

func write(dir string) error {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "src")
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	files, err := changed(root)
	if err != nil {
		return err
	}
	maps.Copy(files, added)
	// Overlays may not change what lies in the module cache, where downloaded toolchains are. So it gets a name outside of it.
	link := filepath.Join(dir, "goroot")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Dir(root), link); err != nil {
		return err
	}
	replace := map[string]string{}
	for file, text := range files {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o666); err != nil {
			return err
		}
		replace[filepath.Join(link, "src", file)] = to
	}
	list, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o666)
}

// changed gives the texts of the files that have edits.
func changed(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range edits {
		text, ok := files[e.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s has %q %d times, want once: this toolchain's runtime has changed", e.file, e.old, n)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return files, nil
}
