package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/tributary-io/tributary/engine"
)

// Serve puts the page under /console of what the options HTTP and Handler of package engine serve.
func Serve() engine.Option {
	return engine.Handle(pattern, func(e *engine.Engine) http.Handler { return http.StripPrefix("/console", Handler(e)) })
}

// Off takes back what Serve has put there, where somebody else gives options.
func Off() engine.Option { return engine.Handle(pattern, nil) }

const pattern = "GET /console/"

// Handler serves the page of an instance for a server of one's own, at a path that ends with a slash:
//
//	mux.Handle("/console/", http.StripPrefix("/console", console.Handler(e)))
//
// It answers before Run and after it, too.
func Handler(e *engine.Engine) http.Handler {
	return (&server{look: newLook(e), page: newPage(e.Plan())}).handler()
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.whole)
	mux.HandleFunc("GET /live", s.live)
	mux.HandleFunc("GET /state.json", s.state)
	mux.HandleFunc("GET /topology.svg", s.drawing)
	for _, name := range []string{"console.css", "console.js", "icon.svg"} {
		mux.Handle("GET /"+name, newAsset(name))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	})
}

// policy lets the page have its own style sheet, script and icon, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

type server struct {
	look *look
	page *page
}

// whole answers the page.
func (s *server) whole(w http.ResponseWriter, r *http.Request) { s.html(w, r, "page") }

// live answers that part of the page that changes, for the script.
func (s *server) live(w http.ResponseWriter, r *http.Request) { s.html(w, r, "live") }

func (s *server) html(w http.ResponseWriter, r *http.Request, part string) {
	c := parseChoice(r.URL.Query())
	var out bytes.Buffer
	if err := s.page.write(&out, part, s.look.picture(time.Now(), c), c); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "text/html; charset=utf-8", out.Bytes())
}

func (s *server) state(w http.ResponseWriter, r *http.Request) {
	c := parseChoice(r.URL.Query())
	out, err := json.Marshal(s.look.picture(time.Now(), c))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "application/json", append(out, '\n'))
}

func (s *server) drawing(w http.ResponseWriter, _ *http.Request) {
	answer(w, "image/svg+xml", []byte(s.page.drawing()))
}

func answer(w http.ResponseWriter, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // the one who asked may have gone
}

//go:embed page.html console.css console.js icon.svg
var files embed.FS

// newAsset serves a file that comes with the program.
func newAsset(name string) http.Handler {
	body, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is compiled in
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:9]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // asks each time, by the tag
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	})
}
