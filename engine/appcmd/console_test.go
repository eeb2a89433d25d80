package appcmd

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tributary-io/tributary/console"
	"github.com/tributary-io/tributary/engine"
)

// run serves the console unless it is told not to, also where the application has it among its options.
func TestConsole(t *testing.T) {
	for _, own := range [][]engine.Option{nil, {console.Serve()}} {
		for looked, want := range map[bool]int{true: http.StatusOK, false: http.StatusNotFound} {
			app := counting("totals")
			app.Options = own
			plan, err := app.plan()
			if err != nil {
				t.Fatal(err)
			}
			c := cluster{brokers: []string{"localhost:1"}, stateDir: t.TempDir()}
			e, err := engine.New(plan, c.options(app, nil, serving{http: "127.0.0.1:0", console: looked})...)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			e.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/", nil))
			if w.Code != want {
				t.Errorf("looked at: %v; %d, want %d", looked, w.Code, want)
			}
		}
	}
}
