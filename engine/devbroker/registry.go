package devbroker

import "github.com/tributary-io/tributary/internal/embedded"

// RegistryConfig says how a schema registry runs. The zero value is one in memory on a free port.
type RegistryConfig struct {
	// Dir keeps schemas and levels over restarts, under the same ids. Empty means in memory. One process at a time may use it.
	Dir string
	// Port on 127.0.0.1; 0 is a free one.
	Port int
}

// Registry is a running schema registry.
type Registry struct{ inner *embedded.Registry }

// StartRegistry starts a schema registry beside a broker: Confluent's HTTP interface, with the compatibility levels of Avro schemas. Close it.
func StartRegistry(cfg RegistryConfig) (*Registry, error) {
	r, err := embedded.StartRegistry(embedded.RegistryConfig{Dir: cfg.Dir, Port: cfg.Port})
	if err != nil {
		return nil, err
	}
	return &Registry{r}, nil
}

// URL is the registry's base URL.
func (r *Registry) URL() string { return r.inner.URL() }

// Close stops the registry. Everything registered is in its directory, if it has one.
func (r *Registry) Close() error { return r.inner.Close() }
