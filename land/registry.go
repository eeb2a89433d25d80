package land

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tributary-io/tributary/serde"
)

// admin is the part of a registry's interface that serde has no use for: compatibility levels and versions.
type admin struct{ client *sr.Client }

func newAdmin(urls string) (*admin, error) {
	var list []string
	var opts []sr.ClientOpt
	for text := range strings.SplitSeq(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(text))
		if err != nil {
			return nil, errors.New("schema registry: the URL can't be parsed")
		}
		if u.User != nil {
			password, _ := u.User.Password()
			opts = append(opts, sr.BasicAuth(u.User.Username(), password))
			u.User = nil
		}
		list = append(list, u.String())
	}
	// Its questions are asked when an instance starts, where a registry that is busy is worth waiting for.
	client, err := sr.NewClient(append(opts, sr.URLs(list...), sr.UserAgent("tributary"), sr.HTTPClient(&http.Client{Timeout: reachLimit}))...)
	if err != nil {
		return nil, fmt.Errorf("schema registry: %w", err)
	}
	return &admin{client}, nil
}

func isNotFound(err error) bool {
	var re *sr.ResponseError
	return errors.As(err, &re) && sr.IsNotFoundError(re.ErrorCode)
}

// latest returns the newest schema of a subject, and its version.
func (a *admin) latest(ctx context.Context, subject string) (schema string, version int, err error) {
	got, err := a.client.SchemaByVersion(ctx, subject, -1)
	if err != nil {
		return "", 0, fmt.Errorf("get the newest schema of subject %s: %w", subject, err)
	}
	if got.Type != sr.TypeAvro {
		return "", 0, fmt.Errorf("subject %s holds a schema of type %v: declare its columns by an Avro schema (--schema, or in the configuration), and say its format", subject, got.Type)
	}
	if len(got.References) > 0 {
		return "", 0, fmt.Errorf("the newest schema of subject %s refers to others: declare the stream by one that is whole (--schema, or in the configuration)", subject)
	}
	return got.Schema.Schema, got.Version, nil
}

// version is the newest version of a subject, whatever its schema is; 0 if there is none.
func (a *admin) version(ctx context.Context, subject string) (int, error) {
	got, err := a.client.SchemaByVersion(ctx, subject, -1)
	if isNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("get the newest schema of subject %s: %w", subject, err)
	}
	return got.Version, nil
}

// keepLevel gives a subject its compatibility level, where it is there: the schemas are its producers'.
func (a *admin) keepLevel(ctx context.Context, subject string, level sr.CompatibilityLevel) error {
	version, err := a.version(ctx, subject)
	if err != nil || version == 0 {
		return err
	}
	return a.setLevel(ctx, subject, level)
}

// register makes sure that the subject has the schema and the level, and returns the schema's version. A subject that is there gets the
// level first, so that the level decides about the schema: some registries give a subject none.
func (a *admin) register(ctx context.Context, subject, schema string, level sr.CompatibilityLevel) (version int, err error) {
	_, err = a.client.SubjectVersions(ctx, subject)
	there := err == nil
	if err != nil && !isNotFound(err) {
		return 0, fmt.Errorf("look at subject %s: %w", subject, err)
	}
	if there {
		if err := a.setLevel(ctx, subject, level); err != nil {
			return 0, err
		}
	}
	s := sr.Schema{Schema: schema, Type: sr.TypeAvro}
	if _, err := a.client.RegisterSchema(ctx, subject, s, -1, -1); err != nil {
		return 0, fmt.Errorf("register the declared schema under subject %s (level %v): %w", subject, level, err)
	}
	if !there {
		if err := a.setLevel(ctx, subject, level); err != nil {
			return 0, err
		}
	}
	got, err := a.client.LookupSchema(ctx, subject, s)
	if err != nil {
		return 0, fmt.Errorf("look up the declared schema under subject %s: %w", subject, err)
	}
	return got.Version, nil
}

func (a *admin) setLevel(ctx context.Context, subject string, level sr.CompatibilityLevel) error {
	if has := a.client.Compatibility(ctx, subject); len(has) == 1 && has[0].Err == nil && has[0].Level == level {
		return nil
	}
	for _, r := range a.client.SetCompatibility(ctx, sr.SetCompatibility{Level: level}, subject) {
		if r.Err != nil {
			return fmt.Errorf("set the compatibility level of subject %s to %v: %w", subject, level, r.Err)
		}
	}
	return nil
}

// remove takes a subject out for good, for those that were made for one proof only.
func (a *admin) remove(ctx context.Context, subject string) error {
	for _, how := range []sr.DeleteHow{sr.SoftDelete, sr.HardDelete} {
		if _, err := a.client.DeleteSubject(ctx, subject, how); err != nil && !isNotFound(err) {
			return fmt.Errorf("delete subject %s: %w", subject, err)
		}
	}
	return nil
}

// NewestSchema is the newest schema that a registry has for a topic's values.
func NewestSchema(ctx context.Context, registry, topic string) (string, error) {
	if registry == "" {
		return "", errors.New("no registry is given: --registry, or ODS_SINK_REGISTRY")
	}
	a, err := newAdmin(registry)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	schema, _, err := a.latest(ctx, serde.Subject(topic, false))
	return schema, err
}
