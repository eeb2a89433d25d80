package object

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Opener opens the store at an URL.
type Opener func(ctx context.Context, u *url.URL) (Store, error)

var (
	schemesMu sync.RWMutex
	schemes   = map[string]Opener{}
)

// Register makes Open know the stores of a URL scheme. It is called by the init functions of packages that hold such stores, so
// that a program that imports none of them carries none of their clients.
func Register(scheme string, open Opener) {
	schemesMu.Lock()
	defer schemesMu.Unlock()
	schemes[scheme] = open
}

func opener(scheme string) Opener {
	schemesMu.RLock()
	defer schemesMu.RUnlock()
	return schemes[scheme]
}

// schemeNames lists what Open knows, for people.
func schemeNames() string {
	schemesMu.RLock()
	defer schemesMu.RUnlock()
	names := []string{"file://"}
	for s := range schemes {
		names = append(names, s+"://")
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
