package callsite

import (
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

const module = "github.com/tributary-io/tributary/"

// rooms are the packages, with what is below them, whose frames are not a user's.
var rooms = []string{
	"engine", "gokacompat", "internal/callsite", "internal/logical", "internal/plan", "internal/task", "lake", "land", "processors", "serde",
	"state", "topology",
}

// Declared returns the "file.go:line" of the nearest caller that is a user; empty if there is none.
func Declared() string {
	for f := range callers(2, 32) {
		if isUser(f) {
			return position(f)
		}
	}
	return ""
}

// Panicked describes the panic that is being recovered from, to be called by a deferred function: the "file.go:line" of the user's function
// in which it happened, and the stack from the place of the panic on, in the form of Go's, without the frames of this module. Where no user's
// function is in the stack, it begins at the place of the panic and is whole.
func Panicked() (at, stack string) {
	frames := slices.Collect(callers(2, 256))
	frames = frames[raised(frames):]
	first := slices.IndexFunc(frames, isUser)
	if first < 0 {
		if len(frames) > 0 {
			at = position(frames[0])
		}
		return at, format(frames)
	}
	rest := slices.DeleteFunc(frames[first:], func(f runtime.Frame) bool { return isRuntime(f) || isModule(f) })
	return position(rest[0]), format(frames[:first]) + format(rest)
}

// callers are the frames above skip functions, nearest first, at most so many.
func callers(skip, most int) iter.Seq[runtime.Frame] {
	return func(yield func(runtime.Frame) bool) {
		pcs := make([]uintptr, most)
		frames := runtime.CallersFrames(pcs[:runtime.Callers(skip, pcs)])
		for {
			f, more := frames.Next()
			if f.Function != "" && !yield(f) || !more {
				return
			}
		}
	}
}

// raised is the index of the frame that panicked: the one below the runtime's, which deferred functions come before.
func raised(frames []runtime.Frame) int {
	i := slices.IndexFunc(frames, func(f runtime.Frame) bool { return f.Function == "runtime.gopanic" })
	for i++; i < len(frames) && isRuntime(frames[i]); {
		i++
	}
	return i
}

func isUser(f runtime.Frame) bool { return !isRuntime(f) && !isStandard(f) && !isModule(f) }

func isRuntime(f runtime.Frame) bool {
	p := packageOf(f)
	return p == "runtime" || strings.HasPrefix(p, "runtime/") || strings.HasPrefix(p, "internal/runtime/")
}

// isStandard reports whether f is of the standard library.
func isStandard(f runtime.Frame) bool {
	p := packageOf(f)
	if p == "main" {
		return false
	}
	if root := standard(); root != "" {
		return strings.HasPrefix(f.File, root+p+"/")
	}
	// Paths are trimmed: those of other modules have versions, and nearly all have a dot in their first element; the program's own need none.
	first, _, _ := strings.Cut(p, "/")
	return strings.HasPrefix(f.File, p+"/") && !strings.ContainsAny(first, ".@") && p != programs() && !strings.HasPrefix(p, programs()+"/")
}

// programs is the path of the module that the program is of; empty if it isn't known.
var programs = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Path
})

// standard is the folder of the standard library's packages, as frames name it.
func standard() string {
	for f := range callers(0, 1) {
		root, _ := strings.CutSuffix(f.File, "runtime/extern.go")
		return root
	}
	return ""
}

func isModule(f runtime.Frame) bool {
	room, ok := strings.CutPrefix(packageOf(f), module)
	return ok && !strings.HasSuffix(f.File, "_test.go") && slices.ContainsFunc(rooms, func(r string) bool {
		return room == r || strings.HasPrefix(room, r+"/")
	})
}

// packageOf is the path of the package that a frame's function is of.
func packageOf(f runtime.Frame) string {
	path, _, _ := strings.Cut(f.Function, "[") // of type arguments
	slash := strings.LastIndex(path, "/") + 1
	name, _, _ := strings.Cut(path[slash:], ".")
	return path[:slash] + name
}

func position(f runtime.Frame) string { return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line) }

func format(frames []runtime.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%s(...)\n\t%s:%d\n", f.Function, f.File, f.Line)
	}
	return b.String()
}
