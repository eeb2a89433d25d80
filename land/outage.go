package land

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// outage knows whether records wait for the schema registry, and since when.
type outage struct {
	now func() time.Time

	mu      sync.Mutex
	waiting int
	since   time.Time
	why     error
}

// begin says that one more waits, and why. Each is ended by end.
func (o *outage) begin(why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting == 0 {
		o.since = o.now()
	}
	o.waiting++
	o.why = why
}

func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting--
}

// is tells whether anything waits.
func (o *outage) is() (since time.Time, why error, waits bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.why, o.waiting > 0
}

// readiness answers 503 while records wait for the registry, and else what inner says.
func (o *outage) readiness(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		since, why, waits := o.is()
		if !waits {
			inner.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "records wait for the schema registry since %s: %v\n", since.UTC().Format("2006-01-02T15:04:05Z"), why)
	})
}

// health answers 200 while records wait for the registry: there is no engine then that could, and starting again would not help.
func (o *outage) health(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, waits := o.is(); !waits {
			inner.ServeHTTP(w, r)
			return
		}
		fmt.Fprintln(w, "alive, and waiting for the schema registry")
	})
}

// gauge is the outage as a metric.
func (o *outage) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tributary_stream_registry_waiting_seconds",
		Help: "For how long records have waited for the schema registry; 0 while none does."}, func() float64 {
		since, _, waits := o.is()
		if !waits {
			return 0
		}
		return o.now().Sub(since).Seconds()
	})
}
