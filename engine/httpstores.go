package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/tributary-io/tributary/engine/internal/scan"
	"github.com/tributary-io/tributary/internal/plan"
	"github.com/tributary-io/tributary/state"
)

// Queries puts the stores under /stores of the engine's HTTP server and Handler: read-only, as JSON, without access control of its own.
// Every instance answers for all: what it doesn't have it asks the one that does. Off by default, since it shows the application's data.
func Queries() Option { return func(c *config) { c.serveQueries = true } }

// Limits of what one request may ask for, in rows.
const (
	defaultLimit = 100
	maxLimit     = 10_000
)

// storeRoutes are the paths below /stores/{store}/ and the kinds of stores that they are for.
var storeRoutes = map[string]struct {
	keyed bool // needs a key
	kinds []state.Kind
	scan  func(s state.Stores, a *ask, limit int) scan.Portion
}{
	"get": {true, []state.Kind{state.KeyValue, state.TimestampedKeyValue, state.Versioned}, func(s state.Stores, a *ask, _ int) scan.Portion {
		if a.kind == state.Versioned {
			return scan.Version(s, a.store, a.key, a.time("at", scan.MaxTime))
		}
		return scan.Get(s, a.store, a.key)
	}},
	"scan": {false, []state.Kind{state.KeyValue, state.TimestampedKeyValue}, func(s state.Stores, a *ask, limit int) scan.Portion {
		if a.prefix != nil {
			return scan.Prefix(s, a.store, a.prefix, nil, limit)
		}
		return scan.Range(s, a.store, a.from, a.to, nil, limit)
	}},
	"windows": {false, []state.Kind{state.Window, state.TimestampedWindow}, func(s state.Stores, a *ask, limit int) scan.Portion {
		return scan.Windows(s, a.store, a.key, a.time("since", 0), a.time("until", scan.MaxTime), limit)
	}},
	"sessions": {false, []state.Kind{state.Session}, func(s state.Stores, a *ask, limit int) scan.Portion {
		return scan.Sessions(s, a.store, a.key, a.time("since", 0), a.time("until", scan.MaxTime), limit)
	}},
	"history": {true, []state.Kind{state.Versioned}, func(s state.Stores, a *ask, limit int) scan.Portion {
		return scan.History(s, a.store, a.key, a.time("since", 0), a.time("until", scan.MaxTime), limit)
	}},
}

// serveStores adds the paths of queries.
func (e *Engine) serveStores(mux *http.ServeMux) {
	mux.HandleFunc("GET /stores", e.listStores)
	mux.HandleFunc("GET /stores/{store}", e.showStore)
	for route := range storeRoutes {
		mux.HandleFunc("GET /stores/{store}/"+route, func(w http.ResponseWriter, r *http.Request) { e.answerQuery(w, r, route) })
	}
}

// storeInfo describes a store.
type storeInfo struct {
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	Global     bool           `json:"global"`
	Partitions int32          `json:"partitions"`
	Here       []int32        `json:"here"` // partitions that this instance can read now
	Queries    []string       `json:"queries"`
	Locations  []locationInfo `json:"locations,omitempty"`
}

type locationInfo struct {
	Partition int32  `json:"partition"`
	Member    string `json:"member"`
	Endpoint  string `json:"endpoint"`
	Here      bool   `json:"here"`
}

func (e *Engine) listStores(w http.ResponseWriter, _ *http.Request) {
	all := []storeInfo{}
	for _, name := range slices.Sorted(maps.Keys(e.plan.Stores)) {
		p, err := e.place(name)
		if err != nil {
			writeError(w, err)
			return
		}
		all = append(all, e.storeInfo(p))
	}
	writeJSON(w, http.StatusOK, map[string]any{"application": e.plan.ApplicationID, "stores": all})
}

func (e *Engine) storeInfo(p placement) storeInfo {
	spec := p.store.Spec
	info := storeInfo{Name: spec.Name, Kind: spec.Kind.String(), Global: p.store.Global, Partitions: p.partitions, Here: e.here(p), Queries: []string{}}
	for _, route := range slices.Sorted(maps.Keys(storeRoutes)) {
		if slices.Contains(storeRoutes[route].kinds, spec.Kind) {
			info.Queries = append(info.Queries, route)
		}
	}
	return info
}

func (e *Engine) showStore(w http.ResponseWriter, r *http.Request) {
	p, err := e.place(r.PathValue("store"))
	if err != nil {
		writeError(w, err)
		return
	}
	info := e.storeInfo(p)
	locations, err := e.Locations(r.Context(), info.Name)
	if err != nil {
		writeError(w, err)
		return
	}
	for _, l := range locations {
		info.Locations = append(info.Locations, locationInfo{l.Partition, l.Member, l.Endpoint, l.Here})
	}
	writeJSON(w, http.StatusOK, info)
}

// ask is a request, taken apart.
type ask struct {
	store            string
	kind             state.Kind
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
func (e *Engine) parseAsk(r *http.Request, route string, s *plan.Store) (*ask, error) {
	a := &ask{
		store: s.Spec.Name, kind: s.Spec.Kind, route: route, query: r.URL.Query(), partition: -1, limit: defaultLimit,
		forwarded: r.Header.Get(forwardedHeader) != "", times: map[string]int64{},
	}
	if !slices.Contains(storeRoutes[route].kinds, a.kind) {
		return nil, bad("store %s is of kind %s, which has no %q", a.store, a.kind, route)
	}
	if err := e.parseKeys(a); err != nil {
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
func (e *Engine) parseKeys(a *ask) (err error) {
	render, typed := e.renderer(a.store)
	for name, to := range map[string]*[]byte{"key": &a.key, "from": &a.from, "to": &a.to} {
		switch {
		case a.query.Has(name + "64"):
			if *to, err = base64.URLEncoding.DecodeString(a.query.Get(name + "64")); err != nil {
				return bad("%s64 is base64 (URL alphabet, padded): %v", name, err)
			}
			*to = own(*to)
		case !a.query.Has(name):
		case typed:
			if *to, err = render.KeyOf(a.query.Get(name)); err != nil {
				return bad("%s: %v", name, err)
			}
			*to = own(*to)
		default:
			*to = own([]byte(a.query.Get(name)))
		}
	}
	switch {
	case a.query.Has("prefix64"):
		if a.prefix, err = base64.URLEncoding.DecodeString(a.query.Get("prefix64")); err != nil {
			return bad("prefix64 is base64 (URL alphabet, padded): %v", err)
		}
		a.prefix = own(a.prefix)
	case a.query.Has("prefix"):
		a.prefix = own([]byte(a.query.Get("prefix")))
	}
	if storeRoutes[a.route].keyed && a.key == nil {
		return bad("give key, or key64 with the key's bytes as base64")
	}
	return nil
}

// own copies bytes; empty is not nil.
func own(b []byte) []byte { return append(make([]byte, 0, len(b)), b...) }

// rowJSON is a row as it is shown.
type rowJSON struct {
	Partition int32           `json:"partition"`
	Key       json.RawMessage `json:"key"`
	Value     json.RawMessage `json:"value"`
	Timestamp *int64          `json:"timestamp,omitempty"`
	Start     *int64          `json:"start,omitempty"`
	End       *int64          `json:"end,omitempty"`
	// Behind says that the row was read from a standby that lacked so many changelog records then.
	Behind *int64 `json:"behind,omitempty"`
}

// rowsJSON is an answer.
type rowsJSON struct {
	Store string    `json:"store"`
	Rows  []rowJSON `json:"rows"`
	// Truncated says that there may be more rows than the limit.
	Truncated bool `json:"truncated"`
}

func (e *Engine) answerQuery(w http.ResponseWriter, r *http.Request, route string) {
	p, err := e.place(r.PathValue("store"))
	if err != nil {
		writeError(w, err)
		return
	}
	if app := r.Header.Get(applicationHeader); app != "" && app != e.plan.ApplicationID {
		writeJSON(w, http.StatusMisdirectedRequest, map[string]string{"error": "this is an instance of " + e.plan.ApplicationID + ", not of " + app})
		return
	}
	a, err := e.parseAsk(r, route, p.store)
	if err != nil {
		writeError(w, err)
		return
	}
	answer, err := e.collect(r.Context(), p, a)
	switch {
	case err != nil:
		writeError(w, err)
	case route == "get" && len(answer.Rows) == 0 && !a.forwarded:
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "no such key"})
	case route == "get" && !a.forwarded:
		writeJSON(w, http.StatusOK, answer.Rows[0])
	default:
		writeJSON(w, http.StatusOK, answer)
	}
}

// collect gathers rows from the partitions that may have them, wherever they are, up to the limit.
func (e *Engine) collect(ctx context.Context, p placement, a *ask) (*rowsJSON, error) {
	parts, err := partitionsOf(p, a)
	if err != nil {
		return nil, err
	}
	out := &rowsJSON{Store: a.store, Rows: []rowJSON{}}
	for i, part := range parts {
		left := a.limit - len(out.Rows)
		if left == 0 {
			out.Truncated = i < len(parts)
			break
		}
		got, err := e.collectPartition(ctx, p, a, part, left)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, got.Rows...)
		out.Truncated = out.Truncated || got.Truncated
	}
	return out, nil
}

// partitionsOf are the partitions that may have what is asked for.
func partitionsOf(p placement, a *ask) ([]int32, error) {
	switch {
	case a.partition >= p.partitions:
		return nil, bad("store %s has %d partitions", a.store, p.partitions)
	case a.partition >= 0:
		return []int32{a.partition}, nil
	case a.key != nil:
		at, err := p.partitionOf(a.key)
		return []int32{at}, err
	}
	parts := make([]int32, p.partitions)
	for i := range parts {
		parts[i] = int32(i)
	}
	return parts, nil
}

// collectPartition reads a partition here, or has it read where it is.
func (e *Engine) collectPartition(ctx context.Context, p placement, a *ask, part int32, limit int) (*rowsJSON, error) {
	var got scan.Portion
	behind := notStandby
	take := func(s state.Stores) error {
		got = storeRoutes[a.route].scan(s, a, limit)
		return got.Err
	}
	var err error
	if a.standby {
		behind, err = e.readAny(p, part, take)
	} else {
		err = e.read(p, part, take)
	}
	var absent *NotHereError
	if errors.As(err, &absent) && absent.Reason == Elsewhere && !a.forwarded {
		answer, err := e.forward(ctx, p, a, part, limit)
		if err != nil && a.standby {
			return e.forwardToStandby(ctx, p, a, part, limit, err)
		}
		return answer, err
	}
	if err != nil {
		return nil, err
	}
	out := &rowsJSON{Store: a.store, Truncated: got.More}
	for i := range got.Rows {
		row := e.render(a, part, &got.Rows[i])
		if behind != notStandby {
			row.Behind = &behind
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// render shows a row by the store's serdes where they are known and give something that JSON can show, else as text or base64.
func (e *Engine) render(a *ask, part int32, r *scan.Row) rowJSON {
	key, value := rawJSON(r.Key), rawJSON(r.Value)
	if render, ok := e.renderer(a.store); ok && !a.query.Has("raw") {
		key, value = shown(render.Key, r.Key), shown(render.Value, r.Value)
	}
	out := rowJSON{Partition: part, Key: key, Value: value}
	switch a.kind {
	case state.TimestampedKeyValue:
		out.Timestamp = &r.Timestamp
	case state.TimestampedWindow:
		out.Timestamp, out.Start = &r.Timestamp, &r.Start
	case state.Window:
		out.Start = &r.Start
	case state.Session:
		out.Start, out.End = &r.Start, &r.End
	case state.Versioned:
		out.Start = &r.Start
		if r.End != state.LatestVersion {
			out.End = &r.End
		}
	}
	return out
}

func shown(decode func([]byte) (any, error), data []byte) json.RawMessage {
	v, err := decode(data)
	if err != nil {
		return rawJSON(data)
	}
	if b, ok := v.([]byte); ok {
		return rawJSON(b)
	}
	text, err := jsonText(v)
	if err != nil { // no JSON form: NaN, a function
		return rawJSON(data)
	}
	return text
}

// rawJSON shows bytes: {"text": …} if they can be read, else {"base64": …}.
func rawJSON(data []byte) json.RawMessage {
	shown := map[string]string{}
	if utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) }) {
		shown["text"] = string(data)
	} else {
		shown["base64"] = base64.URLEncoding.EncodeToString(data)
	}
	out, err := jsonText(shown)
	if err != nil {
		return json.RawMessage("null") // strings always have a JSON form
	}
	return out
}

// jsonText is json.Marshal with &, < and > as they are: answers are read by people, too, and errors quote URLs.
func jsonText(v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(text.Bytes(), []byte{'\n'}), err
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := jsonText(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer has no JSON form"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the one who asked may have gone
}

// writeError tells an error by its kind: 404 for unknown stores, 400 for what can't be asked, 421 for what another instance has, 503 for
// what may be there soon.
func writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var unknown *UnknownStoreError
	var request *badRequest
	var absent *NotHereError
	var failed *forwardError
	switch {
	case errors.As(err, &unknown):
		status = http.StatusNotFound
	case errors.As(err, &request):
		status = http.StatusBadRequest
	case errors.As(err, &absent) && absent.Reason == Elsewhere:
		status = http.StatusMisdirectedRequest
	case errors.As(err, &absent):
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	case errors.As(err, &failed):
		status = http.StatusBadGateway
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}
