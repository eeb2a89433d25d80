package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/html"

	"github.com/tributary-io/tributary/engine"
	"github.com/tributary-io/tributary/topology"
)

// engineSeen is an engine that is what a test says.
type engineSeen struct {
	stats    engine.Stats
	members  []engine.Member
	refuses  error // Members
	sizes    []engine.StoreSize
	asked    int // how often for members
	answerIn time.Duration
}

func (e *engineSeen) Stats() engine.Stats { return e.stats }
func (e *engineSeen) Instance() string    { return "4711" }
func (e *engineSeen) Members(context.Context) ([]engine.Member, error) {
	e.asked++
	time.Sleep(e.answerIn)
	return e.members, e.refuses
}
func (e *engineSeen) StoreSizes(context.Context) ([]engine.StoreSize, error) { return e.sizes, nil }

// over is a console over such an engine.
func over(e *engineSeen, p *topology.Plan) *server {
	return &server{look: &look{source: e, plan: p.Internal()}, page: newPage(p)}
}

// answerOf is what a handler answers to a GET.
func answerOf(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w
}

// picturedAt is state.json.
func picturedAt(t *testing.T, h http.Handler, path string) *picture {
	t.Helper()
	var p picture
	d := json.NewDecoder(answerOf(t, h, path).Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// parsed is a page as a browser sees it: its text outside of scripts, its ids, and its elements by name.
type parsed struct {
	text string
	ids  map[string]int
	tags map[string]int
	refs []string // href, src
}

func parse(t *testing.T, page string) parsed {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	p := parsed{ids: map[string]int{}, tags: map[string]int{}}
	var text strings.Builder
	for n := range root.Descendants() {
		switch n.Type {
		case html.TextNode:
			text.WriteString(n.Data + "\n")
		case html.ElementNode:
			p.tags[n.Data]++
			for _, a := range n.Attr {
				switch {
				case a.Key == "id":
					p.ids[a.Val]++
				case a.Key == "href" || a.Key == "src":
					p.refs = append(p.refs, a.Val)
				case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
					t.Errorf("<%s %s=%q>: the policy doesn't let it", n.Data, a.Key, a.Val)
				}
			}
		}
	}
	p.text = text.String()
	return p
}

// wellFormed checks that each element that is opened is closed, which browsers would mend in silence.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	void := map[string]bool{"meta": true, "link": true, "input": true}
	var open []string
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("not closed: %v", open)
			}
			return
		case html.StartTagToken:
			if name, _ := z.TagName(); !void[string(name)] {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				t.Fatalf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

// trouble is an instance of counting in all sorts of it, with names that would be markup.
func trouble(now time.Time) *engineSeen {
	bad := errors.New(hostile + ` put https://user:secret@store.example/t/_delta_log/1.json?sig=sesame: denied`)
	restoring := engine.RestoreStats{Active: true, Records: 12_000, Bytes: 3_100_000, Left: 6_000, Total: 18_000, Began: now, Rate: 4_000, TimeLeft: 90 * time.Second}
	landed := engine.LakeStats{Sink: "landed"}
	landed.Version, landed.Rows, landed.Commits, landed.LastCommit, landed.Parked, landed.ParkedSince = 4, 99, 2, now, bad, now
	return &engineSeen{
		stats: engine.Stats{
			State: engine.Rebalancing, Since: now.Add(-time.Minute), Heard: now.Add(-time.Second), Lag: 7, Processed: 1_234_567, Commits: 3, LastCommit: now.Add(-2 * time.Second),
			OtherVersions: []string{hostile},
			Tasks: []engine.TaskStats{
				{Name: "0_0", Running: true, Processed: 1_000, StreamTime: 5_000, LastCommit: now.Add(-3 * time.Second), Inputs: []engine.InputStats{{Topic: "words", Position: 1_000, End: 1_007, Lag: 7}}},
				{Name: "1_0", StreamTime: -1, Restore: restoring, Inputs: []engine.InputStats{{Topic: hostile, Position: -1}}},
				{Name: "2_0", Lake: true, StreamTime: -1, Parked: bad, ParkedSince: now.Add(-time.Hour), Inputs: []engine.InputStats{{Topic: "in", Position: -1, HoldsSince: now}}},
				{Name: "1_1", StreamTime: -1},
			},
			Standbys: []engine.StandbyStats{{Name: "1_2", Following: true, Lag: 3}, {Name: "1_3", Warmup: true, Lag: -1, Restore: engine.RestoreStats{CheckpointBytes: 25, CheckpointTotal: 100}}},
			Lake:     []engine.LakeStats{landed},
			Memory:   engine.MemoryStats{Rows: 1 << 20, Spare: 5 << 20},
			Dropped:  []engine.Dropped{{Node: hostile, Reason: "late", Count: 5}},
		},
		members: []engine.Member{{ID: hostile, Endpoint: "here:8080", Here: true, Tasks: []string{"0_0"}}, {ID: "other", Endpoint: "there:8080"}, {ID: "evil", Endpoint: "javascript://x"}},
		sizes:   []engine.StoreSize{{Store: "counts", Partitions: 1, Of: 4}},
	}
}

func TestPageShowsTrouble(t *testing.T) {
	h := over(trouble(time.Now()), counting(t, "s3://key:secret@bucket/counts?token=sesame")).handler()
	page := answerOf(t, h, "/").Body.String()
	wellFormed(t, page)
	p := parse(t, page)
	for _, want := range []string{"counting", "rebalancing", "not ready", "4711", "2 of 4 tasks have to be brought up to date first; 1 of them are being restored", "1 of 1 tables are parked",
		"1,234,567", "1,000 of 1,007", "12,000 records, 3.1 MB, 6,000 offsets left, 4,000/s, 90 s left", "25 B of a checkpoint of 100 B", "the task is to move here",
		`<script>alert("x")</script>`, "put https://…@store.example/t/_delta_log/1.json?… denied", "delta:s3://…@bucket/counts?…", "(this one)", "by-word-repartition", "counts", "1 of 4", "late",
		"Sub-topology: 1", "write buffers that lie ready", "5.2 MB"} {
		if !strings.Contains(p.text, want) {
			t.Errorf("%q isn't on the page", want)
		}
	}
	for _, never := range []string{"secret", "sesame"} {
		for _, path := range []string{"/", "/live", "/state.json", "/topology.svg"} {
			if strings.Contains(answerOf(t, h, path).Body.String(), never) {
				t.Errorf("%s tells %q", path, never)
			}
		}
	}
	if p.tags["script"] != 1 || p.tags["style"] != 0 || p.tags["h1"] != 1 || p.tags["svg"] != 1 || p.tags["main"] != 1 {
		t.Errorf("elements %v", p.tags)
	}
	for id, n := range p.ids {
		if n > 1 {
			t.Errorf("id %s stands %d times", id, n)
		}
	}
	for _, ref := range p.refs {
		if ref != "http://there:8080/console/" && (strings.Contains(ref, "//") || strings.HasPrefix(ref, "/") || strings.Contains(ref, "javascript")) {
			t.Errorf("the page refers to %s", ref)
		}
	}
	if !slices.Contains(p.refs, "http://there:8080/console/") {
		t.Errorf("no way to the other instance: %v", p.refs)
	}
}

// What the script puts in has the ids of what is there, and the same in it.
func TestLivePartsAreThoseOfThePage(t *testing.T) {
	h := over(trouble(time.Now()), counting(t, "lake")).handler()
	live := answerOf(t, h, "/live").Body.String()
	wellFormed(t, live)
	part, whole := parse(t, live), parse(t, answerOf(t, h, "/").Body.String())
	if part.tags["section"] != whole.tags["section"]-1 || part.tags["svg"] != 0 {
		t.Errorf("parts %v of %v", part.tags, whole.tags) // all but the topology
	}
	for id := range part.ids {
		if whole.ids[id] != 1 {
			t.Errorf("%s isn't on the page", id)
		}
	}
}

func TestStateJSON(t *testing.T) {
	now := time.Now()
	p := picturedAt(t, over(trouble(now), counting(t, "lake/counts")).handler(), "/state.json")
	if p.Application != "counting" || p.Instance != "4711" || p.State != "rebalancing" || p.Ready || len(p.Why) != 3 {
		t.Errorf("%+v", p)
	}
	if got := (totals{Tasks: 4, Running: 1, Restoring: 1, Opening: 1, Parked: 1, Standbys: 2, Following: 1}); p.Totals.Tasks != got.Tasks || p.Totals.Running != 1 ||
		p.Totals.Restoring != 1 || p.Totals.Opening != 1 || p.Totals.Parked != 1 || p.Totals.Standbys != 2 || p.Totals.Following != 1 {
		t.Errorf("totals %+v", p.Totals)
	}
	if r := p.Tasks[1]; r.State != "restoring" || r.Restore == nil || r.Restore.Left != 6_000 || r.Restore.Total != 18_000 || *r.Restore.TimeLeft != 90 || r.Inputs[0].Position != nil {
		t.Errorf("%+v", r)
	}
	if l := p.Lake; len(l) != 1 || l[0].Sink != "landed" || *l[0].Version != 4 || l[0].Rows != 99 || l[0].Parked == "" || l[0].Table != "delta:lake/counts" {
		t.Errorf("%+v", l)
	}
	if s := p.Stores; len(s) != 1 || s[0].Kind != "timestampedKeyValue" || s[0].Changelog != "counting-counts-changelog" || s[0].Entries == nil {
		t.Errorf("%+v", s)
	}
	if len(p.Members) != 3 || !p.Members[0].Here || p.Members[0].Tasks != 1 {
		t.Errorf("%+v", p.Members)
	}
	if *p.Standbys[0].Lag != 3 || p.Standbys[1].Lag != nil || p.Standbys[1].State != "restoring" {
		t.Errorf("%+v", p.Standbys)
	}
}

func TestHeaders(t *testing.T) {
	h := over(trouble(time.Now()), counting(t, "lake")).handler()
	for path, kind := range map[string]string{"/": "text/html; charset=utf-8", "/live": "text/html; charset=utf-8", "/state.json": "application/json", "/topology.svg": "image/svg+xml",
		"/console.css": "text/css; charset=utf-8", "/console.js": "text/javascript; charset=utf-8", "/icon.svg": "image/svg+xml"} {
		w := answerOf(t, h, path)
		if got := w.Header().Get("Content-Type"); got != kind || w.Header().Get("Content-Security-Policy") != policy || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, w.Header())
		}
	}
	tag := answerOf(t, h, "/console.js").Header().Get("ETag")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console.js", nil)
	r.Header.Set("If-None-Match", tag)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); tag == "" || w.Code != http.StatusNotModified {
		t.Errorf("%s: %d", tag, w.Code)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/state.json", nil)); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

// many is an instance of 2,000 tasks of wide, of which every tenth isn't running.
func many(tasks, streams int) *engineSeen {
	e := &engineSeen{stats: engine.Stats{State: engine.Rebalancing}}
	for i := range tasks {
		t := engine.TaskStats{Name: fmt.Sprintf("%d_%d", i%streams, i/streams), Running: i%10 > 0, Lake: true, StreamTime: -1, Processed: int64(i)}
		t.Inputs = []engine.InputStats{{Topic: fmt.Sprintf("ods.shop.stream_%03d", i%streams), Partition: int32(i / streams), Position: 5, End: int64(5 + i), Lag: int64(i)}}
		e.stats.Tasks = append(e.stats.Tasks, t)
	}
	return e
}

func TestManyTasks(t *testing.T) {
	h := over(many(2_000, 20), wide(t, 20)).handler()
	p := picturedAt(t, h, "/state.json")
	if len(p.Tasks) != 100 || p.TaskPages != (pages{1, 20, 2_000}) || p.Totals.Tasks != 2_000 || len(p.Subtopologies) != 20 || p.Subtopologies[3].Tasks != 100 {
		t.Errorf("%d tasks, %+v, %+v", len(p.Tasks), p.TaskPages, p.Subtopologies[3])
	}
	for path, want := range map[string]struct {
		first string
		pages pages
	}{
		"?page=20":                    {"0_95", pages{20, 20, 2_000}},
		"?page=99":                    {"0_95", pages{20, 20, 2_000}},
		"?page=x&per=-1":              {"0_0", pages{1, 20, 2_000}},
		"?sort=lag&per=7":             {"19_99", pages{1, 286, 2_000}},
		"?show=waiting":               {"0_0", pages{1, 2, 200}},
		"?sub=7&sort=lag":             {"7_99", pages{1, 1, 100}},
		"?sub=99":                     {"", pages{1, 1, 0}},
		"?sub=10&show=waiting&page=2": {"10_0", pages{1, 1, 100}},
	} {
		p := picturedAt(t, h, "/state.json"+path)
		first := ""
		if len(p.Tasks) > 0 {
			first = p.Tasks[0].Name
		}
		if first != want.first || p.TaskPages != want.pages {
			t.Errorf("%s: %s, %+v", path, first, p.TaskPages)
		}
	}
	page := answerOf(t, h, "/?page=2&sort=lag").Body
	if page.Len() > 200_000 {
		t.Errorf("the page has %d bytes", page.Len())
	}
	text := page.String()
	wellFormed(t, text)
	refs := strings.Join(parse(t, text).refs, " ")
	for _, want := range []string{"?page=3&sort=lag#tasks", "?sort=lag#tasks", "?show=waiting&sort=lag#tasks", "state.json?page=2&sort=lag", "?sort=lag&sub=7#tasks", "?sort=rate#tasks"} {
		if !strings.Contains(" "+refs+" ", " "+want+" ") {
			t.Errorf("no link to %s in %s", want, refs)
		}
	}
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engineSeen{stats: engine.Stats{State: engine.Running, Tasks: []engine.TaskStats{{Name: "0_0", Running: true, StreamTime: -1}}}}
		s := over(e, counting(t, "lake"))
		rate := func(processed int64) *float64 {
			e.stats.Tasks = []engine.TaskStats{{Name: "0_0", Running: true, Processed: processed, StreamTime: -1}}
			p := s.look.picture(time.Now(), choice{Per: 10, Page: 1, StandbyPage: 1})
			if (p.Tasks[0].Rate == nil) != (p.Totals.Rate == nil) {
				t.Errorf("%+v", p)
			}
			return p.Tasks[0].Rate
		}
		if r := rate(0); r != nil {
			t.Errorf("%v from one look", *r)
		}
		time.Sleep(2 * time.Second)
		if r := rate(300); r == nil || *r != 150 {
			t.Errorf("%v", r)
		}
		time.Sleep(lookLives + time.Millisecond) // too soon for another rate
		if r := rate(301); r == nil || *r != 150 {
			t.Errorf("%v", r)
		}
		time.Sleep(2 * time.Second)
		if r := rate(0); r != nil {
			t.Errorf("%v of a task that began anew", *r)
		}
		time.Sleep(time.Minute)
		if r := rate(1_000); r != nil {
			t.Errorf("%v from a look long ago", *r)
		}
	})
}

// A look is shared by those who look at the same time, and what others must be asked for is asked for now and then, waited for a moment.
func TestLooksAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engineSeen{members: []engine.Member{{ID: "a"}}, answerIn: time.Second}
		s := over(e, counting(t, "lake"))
		look := func() *sight { return s.look.now(time.Now()) }
		began := time.Now()
		first := look()
		if took := time.Since(began); took != askedAtMost || first.members != nil {
			t.Errorf("took %v, %+v", took, first)
		}
		if first != look() {
			t.Error("two looks at once")
		}
		time.Sleep(2 * time.Second)
		if s := look(); len(s.members) != 1 || e.asked != 1 {
			t.Errorf("%+v, asked %d times", s, e.asked)
		}
		time.Sleep(10 * time.Second)
		if look(); e.asked != 1 {
			t.Errorf("asked %d times: a question that takes a second is asked each 50 s at most", e.asked)
		}
		time.Sleep(time.Minute)
		e.refuses, e.members = errors.New("no coordinator"), nil
		look()
		time.Sleep(2 * time.Second)
		if s := look(); len(s.members) != 1 || s.problem == nil {
			t.Errorf("what was known is gone: %+v", s)
		}
		time.Sleep(2 * time.Second) // the last question's answer
		synctest.Wait()
	})
}

func TestReasons(t *testing.T) {
	for state, want := range map[engine.State]string{engine.Created: "run", engine.Starting: "brokers", engine.Rebalancing: "shares", engine.Recovering: "no heartbeat", engine.Paused: "pause",
		engine.Draining: "closes", engine.Failed: "error", engine.Running: "", engine.Stopped: ""} {
		e := &engineSeen{stats: engine.Stats{State: state}}
		if state == engine.Recovering {
			e.stats.Reason = "no heartbeat was taken"
		}
		p := picturedAt(t, over(e, counting(t, "lake")).handler(), "/state.json")
		if got := strings.Join(p.Why, "; "); want == "" && got != "" || !strings.Contains(got, want) || p.Ready != state.Ready() {
			t.Errorf("%v: %q, ready %v", state, got, p.Ready)
		}
	}
}

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		number(int64(0)): "0", number(int64(999)): "999", number(1_000): "1,000", number(int64(-1_234_567)): "-1,234,567", number(int64(-123)): "-123",
		byteCount(0): "0 B", byteCount(999): "999 B", byteCount(1_000): "1.0 kB", byteCount(123_456): "123 kB", byteCount(999_600): "1.0 MB", byteCount(7 << 40): "7.7 TB",
		span(0.04): "0.0 s", span(9.96): "10 s", span(150): "2 min", span(7_200): "2 h", span(1e6): "12 days",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"no URL? really: a@b":                       "no URL? really: a@b",
		"s3://bucket/folder":                        "s3://bucket/folder",
		"s3://bucket/folder?region=eu&key=x":        "s3://bucket/folder?…",
		`Get "https://u:p@h/a?sig=x": 403 (why?)`:   `Get "https://…@h/a?…": 403 (why?)`,
		"https://user@h:1/ and http://h/?a b=c":     "https://…@h:1/ and http://h/?… b=c",
		"s3://key:p@ss@bucket/folder":               "s3://…@bucket/folder",
		"mail to a@b.example about https://h/x@y/z": "mail to a@b.example about https://h/x@y/z",
	} {
		if got := withoutSecrets(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := plain(strings.Repeat("ä", 3_000)); len(got) > longest+5 {
		t.Errorf("%d bytes", len(got))
	}
}

// BenchmarkManyTasks is what a look at 2,000 tasks costs.
func BenchmarkManyTasks(b *testing.B) {
	s := over(many(2_000, 20), wide(b, 20))
	c := parseChoice(nil)
	now := time.Now()
	for b.Loop() {
		now = now.Add(2 * time.Second) // a new look each time
		if err := s.page.write(discard{}, "live", s.look.picture(now, c), c); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
