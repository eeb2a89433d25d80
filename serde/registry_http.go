package serde

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// RegistryOption changes what NewRegistry makes.
type RegistryOption func(*registryConfig)

type registryConfig struct {
	timeout time.Duration // of requests that records wait for
	atStart time.Duration // of the others
	now     func() time.Time
	tls     *tls.Config
	client  []sr.ClientOpt
}

const (
	// defaultRegistryTimeout is long for one schema, and short for a task that waits for it, which asks again.
	defaultRegistryTimeout = 5 * time.Second
	// defaultAtStart is for what ends a start where it fails: a registry that has just been started, or is busy, takes longer than a task may.
	defaultAtStart = 30 * time.Second
)

func defaultRegistryConfig() registryConfig {
	return registryConfig{timeout: defaultRegistryTimeout, atStart: defaultAtStart, now: time.Now}
}

// RegistryTimeout limits each request. The default is 5 seconds for schemas that records need, and 30 seconds for what programs ask when they start: Ping,
// Register, Lookup, CheckCompatible.
func RegistryTimeout(d time.Duration) RegistryOption {
	return func(c *registryConfig) { c.timeout, c.atStart = d, d }
}

// RegistryClock replaces the wall clock, by which unknown ids are forgotten.
func RegistryClock(now func() time.Time) RegistryOption {
	return func(c *registryConfig) { c.now = now }
}

// RegistryBasicAuth sends a user name and a password (Confluent Cloud: API key and secret).
func RegistryBasicAuth(user, password string) RegistryOption {
	return func(c *registryConfig) { c.client = append(c.client, sr.BasicAuth(user, password)) }
}

// RegistryBearerToken sends a token.
func RegistryBearerToken(token string) RegistryOption {
	return func(c *registryConfig) { c.client = append(c.client, sr.BearerToken(token)) }
}

// RegistryTLS sets certificates and roots for https URLs. The configuration is not copied.
func RegistryTLS(config *tls.Config) RegistryOption {
	return func(c *registryConfig) { c.tls = config }
}

// NewRegistry makes a client of the registry at the URL, or at several of the same cluster separated by commas, which are tried
// in turn. A user and password in the first URL are sent as RegistryBasicAuth would, and appear in no message. Nothing is asked of
// the registry yet; Ping does.
func NewRegistry(urls string, opts ...RegistryOption) (*Registry, error) {
	cfg := defaultRegistryConfig()
	for _, o := range opts {
		o(&cfg)
	}
	list, user, err := splitURLs(urls)
	if err != nil {
		return nil, err
	}
	if user != nil {
		password, _ := user.Password()
		RegistryBasicAuth(user.Username(), password)(&cfg)
	}
	// A transport of our own: its idle connections end with Close.
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = cfg.tls
	client, err := sr.NewClient(append([]sr.ClientOpt{
		sr.URLs(list...), sr.UserAgent("tributary"), sr.HTTPClient(&http.Client{Transport: transport}),
	}, cfg.client...)...)
	if err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	return newRegistry(&httpStore{client, transport}, strings.Join(list, ","), cfg), nil
}

// splitURLs returns the URLs without a user, and the user of the first that has one.
func splitURLs(urls string) (list []string, user *url.Userinfo, err error) {
	for text := range strings.SplitSeq(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil {
			return nil, nil, errors.New("schema registry: the URL can't be parsed; give one such as http://host:8081")
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, nil, fmt.Errorf("schema registry %q: give a URL such as http://host:8081", u.Redacted())
		}
		if user == nil {
			user = u.User
		}
		u.User = nil
		list = append(list, u.String())
	}
	return list, user, nil
}

// httpStore asks a server.
type httpStore struct {
	client    *sr.Client
	transport *http.Transport
}

func (s *httpStore) get(ctx context.Context, key schemaKey) (out Schema, err error) {
	var got sr.Schema
	if key.byGUID {
		var answer sr.SubjectSchema
		answer, err = s.client.SchemaByGUID(ctx, strings.TrimPrefix(key.String(), "schema "))
		got = answer.Schema
	} else {
		got, err = s.client.SchemaByID(ctx, key.id)
	}
	if err != nil {
		return out, err
	}
	out.Type, out.Text = got.Type.String(), got.Schema
	return out, s.references(ctx, &out, got.References, map[string]bool{})
}

// maxReferences bounds what one schema may refer to, over all levels.
const maxReferences = 500

// references adds what a schema refers to, those that others need first.
func (s *httpStore) references(ctx context.Context, out *Schema, refs []sr.SchemaReference, seen map[string]bool) error {
	for _, ref := range refs {
		at := fmt.Sprintf("%s version %d as %s", ref.Subject, ref.Version, ref.Name)
		if seen[at] {
			continue
		}
		if seen[at] = true; len(seen) > maxReferences {
			return &UnsupportedSchemaError{What: fmt.Sprintf("a schema that refers to more than %d others", maxReferences)}
		}
		got, err := s.client.SchemaByVersion(ctx, ref.Subject, ref.Version)
		if err != nil {
			return fmt.Errorf("its reference to %s: %w", at, err)
		}
		if err := s.references(ctx, out, got.References, seen); err != nil {
			return err
		}
		out.References = append(out.References, SchemaReference{Name: ref.Name, Subject: ref.Subject, Text: got.Schema.Schema})
	}
	return nil
}

func (s *httpStore) register(ctx context.Context, subject, schema string) (int, error) {
	return s.client.RegisterSchema(ctx, subject, sr.Schema{Schema: schema, Type: sr.TypeAvro}, -1, -1)
}

func (s *httpStore) lookup(ctx context.Context, subject, schema string) (int, error) {
	got, err := s.client.LookupSchema(ctx, subject, sr.Schema{Schema: schema, Type: sr.TypeAvro})
	return got.ID, err
}

func (s *httpStore) compatible(ctx context.Context, subject, schema string) error {
	ctx = sr.WithParams(ctx, sr.Verbose)
	got, err := s.client.CheckCompatibility(ctx, subject, latestVersion, sr.Schema{Schema: schema, Type: sr.TypeAvro})
	if err != nil {
		var re *sr.ResponseError
		if errors.As(err, &re) && sr.IsNotFoundError(re.ErrorCode) {
			return nil // no version yet that it could be incompatible with
		}
		return err
	}
	if !got.Is {
		return &IncompatibleError{Reasons: got.Messages}
	}
	return nil
}

// latestVersion is the sr client's word for "latest".
const latestVersion = -1

func (s *httpStore) ping(ctx context.Context) error {
	_, err := s.client.Subjects(ctx)
	return err
}

func (s *httpStore) close() { s.transport.CloseIdleConnections() }
