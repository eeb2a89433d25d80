package storehttp

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tributary-io/tributary/engine/internal/scan"
	"github.com/tributary-io/tributary/state"
)

// Limits of what one request may ask for, in rows.
const (
	defaultLimit = 100
	maxLimit     = 10_000
)

// storeRoutes are the paths below /stores/{store}/ and the kinds of stores that they are for.
var storeRoutes = map[string]struct {
	keyed bool // needs a key
	kinds []state.Kind
	scan  func(stores state.Stores, a *ask, limit int) scan.Portion
}{
	"get": {true, []state.Kind{state.KeyValue, state.TimestampedKeyValue, state.Versioned}, func(stores state.Stores, a *ask, _ int) scan.Portion {
		if a.kind == state.Versioned {
			return scan.Version(stores, a.store, a.key, a.time("at", scan.MaxTime))
		}
		return scan.Get(stores, a.store, a.key)
	}},
	"scan": {false, []state.Kind{state.KeyValue, state.TimestampedKeyValue}, func(stores state.Stores, a *ask, limit int) scan.Portion {
		if a.prefix != nil {
			return scan.Prefix(stores, a.store, a.prefix, nil, limit)
		}
		return scan.Range(stores, a.store, a.from, a.to, nil, limit)
	}},
	"windows": {false, []state.Kind{state.Window, state.TimestampedWindow}, func(stores state.Stores, a *ask, limit int) scan.Portion {
		return scan.Windows(stores, a.store, a.key, a.time("since", 0), a.time("until", scan.MaxTime), limit)
	}},
	"sessions": {false, []state.Kind{state.Session}, func(stores state.Stores, a *ask, limit int) scan.Portion {
		return scan.Sessions(stores, a.store, a.key, a.time("since", 0), a.time("until", scan.MaxTime), limit)
	}},
	"history": {true, []state.Kind{state.Versioned}, func(stores state.Stores, a *ask, limit int) scan.Portion {
		return scan.History(stores, a.store, a.key, a.time("since", 0), a.time("until", scan.MaxTime), limit)
	}},
}

// ask is a request, taken apart.
type ask struct {
	store            string
	kind             state.Kind
	windowSize       int64 // in ms, as in Info
	route            string
	query            url.Values
	key              []byte // nil: all keys
	prefix, from, to []byte // of scans
	limit            int
	partition        int32 // -1: by key, or all
	forwarded        bool
	standby          bool // a copy will do
	times            map[string]int64
}

func (a *ask) time(name string, otherwise int64) int64 {
	if t, ok := a.times[name]; ok {
		return t
	}
	return otherwise
}

// badRequest is an error of the one who asks.
type badRequest struct{ text string }

func (e *badRequest) Error() string { return e.text }

func bad(format string, args ...any) error { return &badRequest{fmt.Sprintf(format, args...)} }

// parseAsk takes a request apart.
func (s *server) parseAsk(r *http.Request, route string, of Info) (*ask, error) {
	a := &ask{
		store: of.Name, kind: of.Kind, windowSize: of.WindowSizeMs, route: route, query: r.URL.Query(), partition: -1, limit: defaultLimit,
		forwarded: r.Header.Get(forwardedHeader) != "", times: map[string]int64{},
	}
	if !slices.Contains(storeRoutes[route].kinds, a.kind) {
		return nil, bad("store %s is of kind %s, which has no %q", a.store, a.kind, route)
	}
	if err := s.parseKeys(a); err != nil {
		return nil, err
	}
	if text := a.query.Get("standby"); text != "" {
		standby, err := strconv.ParseBool(text)
		if err != nil {
			return nil, bad("standby is true or false, not %q", text)
		}
		a.standby = standby
	}
	for _, name := range []string{"at", "since", "until"} {
		if text := a.query.Get(name); text != "" {
			t, err := strconv.ParseInt(text, 10, 64)
			if err != nil || t < 0 {
				return nil, bad("%s is a time in milliseconds since 1970, not %q", name, text)
			}
			a.times[name] = t
		}
	}
	if text := a.query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLimit {
			return nil, bad("limit is a number of rows from 1 to %d, not %q", maxLimit, text)
		}
		a.limit = n
	}
	if text := a.query.Get("partition"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return nil, bad("partition is a number from 0 on, not %q", text)
		}
		a.partition = int32(n)
	}
	return a, nil
}

// parseKeys reads what is asked for by key: as text that the store's serde understands, or as base64 of the bytes.
func (s *server) parseKeys(a *ask) (err error) {
	render, typed := s.Renderer(a.store)
	for name, to := range map[string]*[]byte{"key": &a.key, "from": &a.from, "to": &a.to} {
		switch {
		case a.query.Has(name + "64"):
			if *to, err = base64.URLEncoding.DecodeString(a.query.Get(name + "64")); err != nil {
				return bad("%s64 is base64 (URL alphabet, padded): %v", name, err)
			}
		case !a.query.Has(name):
		case typed:
			if *to, err = render.KeyOf(a.query.Get(name)); err != nil {
				return bad("%s: %v", name, err)
			}
			*to = append([]byte{}, *to...) // an empty key is not nil
		default:
			*to = []byte(a.query.Get(name))
		}
	}
	switch {
	case a.query.Has("prefix64"):
		if a.prefix, err = base64.URLEncoding.DecodeString(a.query.Get("prefix64")); err != nil {
			return bad("prefix64 is base64 (URL alphabet, padded): %v", err)
		}
	case a.query.Has("prefix"):
		a.prefix = []byte(a.query.Get("prefix"))
	}
	if storeRoutes[a.route].keyed && a.key == nil {
		return bad("give key, or key64 with the key's bytes as base64")
	}
	return nil
}
