package land

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/tributary-io/tributary/lake"
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
	client, err := sr.NewClient(append(opts, sr.URLs(list...), sr.UserAgent("tributary"))...)
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

// Pauses between two questions to a registry that doesn't answer, and how long a record waits for it within the engine.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	grace        = 2 * time.Second
)

// awayError says that the registry gives no answer about a schema. It ends the engine, so that nothing is held up by a record that waits: Run
// waits in its place, and starts the engine again.
type awayError struct {
	key lake.SchemaKey
	err error
}

func (e *awayError) Error() string {
	return fmt.Sprintf("the schema registry gives no answer about schema %s: %v", e.key, e.err)
}

func (e *awayError) Unwrap() error { return e.err }

// writers finds the schemas that records were written with, for all formats. Where the registry can't be reached the error is an *awayError: that says
// nothing about the record, and nothing can be landed without an answer. An id that the registry doesn't know makes a bad record.
type writers struct {
	ctx      context.Context
	registry *serde.Registry
}

// SchemaByID implements lake.SchemaSource.
func (w *writers) SchemaByID(id int) (lake.WriterSchema, error) {
	return avroText(w.get(lake.SchemaKey{ID: uint32(id)}))
}

// SchemaByGUID finds the schemas that serializers name in headers.
func (w *writers) SchemaByGUID(guid [16]byte) (lake.WriterSchema, error) {
	return avroText(w.get(lake.SchemaKey{GUID: guid, ByGUID: true}))
}

func avroText(s serde.Schema, err error) (lake.WriterSchema, error) {
	if err != nil {
		return lake.WriterSchema{}, err
	}
	if s.Type != serde.SchemaAvro {
		return lake.WriterSchema{}, fmt.Errorf("%w of type Avro: it is of type %s", lake.ErrUnknownSchema, s.Type)
	}
	out := lake.WriterSchema{Schema: s.Text}
	for _, ref := range s.References {
		out.References = append(out.References, ref.Text)
	}
	return out, nil
}

// protobuf finds the schemas of Protobuf messages.
func (w *writers) protobuf(key lake.SchemaKey) (lake.ProtobufSchema, error) {
	s, err := w.get(key)
	if err != nil {
		return lake.ProtobufSchema{}, err
	}
	if s.Type != serde.SchemaProtobuf {
		return lake.ProtobufSchema{}, fmt.Errorf("%w of type Protobuf: it is of type %s", lake.ErrUnknownSchema, s.Type)
	}
	out := lake.ProtobufSchema{Schema: s.Text, Imports: map[string]string{}}
	for _, ref := range s.References {
		out.Imports[ref.Name] = ref.Text
	}
	return out, nil
}

func (w *writers) get(key lake.SchemaKey) (serde.Schema, error) { return w.ask(w.ctx, key, grace) }

// ask asks again and again until there is an answer or the limit is over.
func (w *writers) ask(ctx context.Context, key lake.SchemaKey, limit time.Duration) (s serde.Schema, err error) {
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if key.ByGUID {
			s, err = w.registry.SchemaByGUID(ctx, key.GUID)
		} else {
			s, err = w.registry.SchemaByID(ctx, int(key.ID))
		}
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return s, ctx.Err()
		case !serde.Retriable(err):
			return s, fmt.Errorf("%w: %w", lake.ErrUnknownSchema, err)
		case time.Since(began) >= limit:
			return s, &awayError{key, err}
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(pause):
		}
	}
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
