package gcsstore

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"

	"github.com/tributary-io/tributary/lake/object"
)

// Scheme is that of the URLs.
const Scheme = "gs"

func init() {
	object.Register(Scheme, func(ctx context.Context, u *url.URL) (object.Store, error) { return Open(ctx, u) })
}

// emulatorVariable names an emulator, host:port or a URL, as for Google's own clients.
const emulatorVariable = "STORAGE_EMULATOR_HOST"

// services are by what Open makes their options of: the emulator's address and a URL's query.
var services object.Clients[*storage.Service]

// Open opens gs://bucket/folder; see the package's comment for the query. ctx is used for what is looked up now, such as credentials in a file.
func Open(ctx context.Context, u *url.URL) (*Store, error) {
	fail := func(err error) (*Store, error) { return nil, fmt.Errorf("open object store %s: %w", u.Redacted(), err) }
	if u.Host == "" || u.User != nil {
		return fail(fmt.Errorf("the URL names no bucket (write gs://bucket/folder)"))
	}
	s := &Store{place: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), bucket: u.Host, pause: firstPause}
	if folder := strings.Trim(u.Path, "/"); folder != "" {
		s.prefix = folder + "/"
	}
	opts, err := s.options(u.Query())
	if err != nil {
		return fail(err)
	}
	service, err := services.Get(os.Getenv(emulatorVariable)+"?"+u.RawQuery, func() (*storage.Service, error) {
		// Tokens are fetched for as long as the service lives, not only while a store is opened.
		return storage.NewService(context.WithoutCancel(ctx), opts...)
	})
	if err != nil {
		return fail(fmt.Errorf("%w (set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`)", err))
	}
	s.objects = service.Objects
	return s, nil
}

// options reads a URL's query.
func (s *Store) options(query url.Values) ([]option.ClientOption, error) {
	opts := []option.ClientOption{option.WithScopes(storage.DevstorageReadWriteScope)}
	endpoint, anonymous := "", false
	if host := os.Getenv(emulatorVariable); host != "" {
		endpoint, anonymous = host, true
		if !strings.Contains(host, "://") {
			endpoint = "http://" + host
		}
	}
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "endpoint":
			endpoint = value
		case "anonymous":
			anonymous = value == "true"
		case "user_project":
			s.userProject = value
		default:
			return nil, fmt.Errorf("unknown parameter %q: endpoint, anonymous and user_project are known", name)
		}
	}
	if endpoint != "" {
		opts = append(opts, option.WithEndpoint(strings.TrimSuffix(endpoint, "/")+"/storage/v1/"))
	}
	if anonymous {
		opts = append(opts, option.WithoutAuthentication())
	}
	return opts, nil
}
