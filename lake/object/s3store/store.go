package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcerrors"

	"github.com/tributary-io/tributary/lake/object"
)

func init() {
	object.Register(s3blob.Scheme, func(ctx context.Context, u *url.URL) (object.Store, error) { return Open(ctx, u) })
}

// Store is a folder of a bucket. Objects are durable when they are visible, so that Sync has nothing to do.
type Store struct {
	place      string // for people
	bucketName string
	endpoint   bool // of its own, so not Amazon's
	bucket     *blob.Bucket
	prefix     string // of all keys: "" or ending in a slash
}

// buckets are by the URLs of their roots.
var buckets object.Clients[*blob.Bucket]

// Open opens s3://bucket/folder; see the package's comment for the query.
func Open(ctx context.Context, u *url.URL) (*Store, error) {
	if u.Host == "" {
		return nil, fmt.Errorf("open object store %s: the URL names no bucket (write s3://bucket/folder)", u.Redacted())
	}
	root := *u
	root.Path = ""
	bucket, err := buckets.Get(root.String(), func() (*blob.Bucket, error) { return new(s3blob.URLOpener).OpenBucketURL(ctx, &root) })
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", u.Redacted(), err)
	}
	s := &Store{place: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), bucket: bucket, bucketName: u.Host, endpoint: u.Query().Has("endpoint")}
	if folder := strings.Trim(u.Path, "/"); folder != "" {
		s.prefix = folder + "/"
	}
	return s, nil
}

func (s *Store) String() string { return s.place }

// minPart is the least part size of uploads that must be a single request; a part is larger than any of these.
const minPart = 8 << 20

// PutIfAbsent implements object.Store.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	err := s.put(ctx, name, data, &blob.WriterOptions{IfNotExist: true})
	if err == nil {
		return nil
	}
	return s.fail("put if absent", name, putError(err))
}

// Put implements object.Store.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	return s.fail("put", name, s.put(ctx, name, data, &blob.WriterOptions{}))
}

func (s *Store) put(ctx context.Context, name string, data []byte, opts *blob.WriterOptions) error {
	opts.BufferSize = max(len(data)+1, minPart) // one request
	opts.ContentType = "application/octet-stream"
	return s.bucket.WriteAll(ctx, s.prefix+name, data, opts)
}

// putError sorts the errors of a conditional put. Only an answer of the store that it refused makes clear that nothing was
// stored; 409 (a conflicting request is under way) leaves it open, as does no answer.
func putError(err error) error {
	switch gcerrors.Code(err) {
	case gcerrors.FailedPrecondition:
		return object.ErrExists
	case gcerrors.PermissionDenied, gcerrors.NotFound, gcerrors.InvalidArgument:
		return err
	}
	var answer smithy.APIError
	if errors.As(err, &answer) && answer.ErrorFault() == smithy.FaultClient && answer.ErrorCode() != "ConditionalRequestConflict" {
		return err
	}
	return fmt.Errorf("%w: %w", object.ErrUnknown, err)
}

// Create implements object.Store. The object is uploaded in parts while it is written.
func (s *Store) Create(ctx context.Context, name string) (object.Writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	w, err := s.bucket.NewWriter(ctx, s.prefix+name, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		cancel()
		return nil, s.fail("create", name, err)
	}
	return &writer{s, name, w, cancel, false}, nil
}

type writer struct {
	store  *Store
	name   string
	inner  *blob.Writer
	cancel context.CancelFunc
	closed bool
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.inner.Write(p)
	return n, w.store.fail("write", w.name, err)
}

func (w *writer) Close() error {
	w.closed = true
	defer w.cancel()
	return w.store.fail("close", w.name, w.inner.Close())
}

// Abort ends the upload; closing under an ended context drops the parts.
func (w *writer) Abort() {
	if w.closed {
		return
	}
	w.closed = true
	w.cancel()
	_ = w.inner.Close() // always an error: the context has ended
}

// Sync implements object.Store.
func (s *Store) Sync(context.Context, ...string) error { return nil }

// Get implements object.Store.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := s.bucket.ReadAll(ctx, s.prefix+name)
	return data, s.fail("get", name, err)
}

// GetRange implements object.Store.
func (s *Store) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	r, err := s.bucket.NewRangeReader(ctx, s.prefix+name, off, n, nil)
	if err != nil {
		return nil, s.fail("get", name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	return data, s.fail("get", name, err)
}

// Stat implements object.Store.
func (s *Store) Stat(ctx context.Context, name string) (object.Info, error) {
	a, err := s.bucket.Attributes(ctx, s.prefix+name)
	if err != nil {
		return object.Info{}, s.fail("stat", name, err)
	}
	return object.Info{Name: name, Size: a.Size, Modified: a.ModTime}, nil
}

// Delete implements object.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := s.bucket.Delete(ctx, s.prefix+name)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil
	}
	return s.fail("delete", name, err)
}

// List implements object.Store.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		it := s.bucket.List(&blob.ListOptions{Prefix: s.prefix + prefix, BeforeList: func(as func(any) bool) error {
			var in *s3.ListObjectsV2Input
			if after != "" && as(&in) && in.ContinuationToken == nil {
				in.StartAfter = aws.String(s.prefix + after)
			}
			return nil
		}})
		for {
			o, err := it.Next(ctx)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(object.Info{}, s.fail("list", prefix, err))
				return
			}
			name := strings.TrimPrefix(o.Key, s.prefix)
			if name <= after { // a compatible that doesn't know start-after
				continue
			}
			if !yield(object.Info{Name: name, Size: o.Size, Modified: o.ModTime}, nil) {
				return
			}
		}
	}
}

// fail wraps err with what was tried, and with the error that callers test for. A nil err stays nil.
func (s *Store) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var answer smithy.APIError
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound && !(errors.As(err, &answer) && answer.ErrorCode() == "NoSuchBucket"):
		err = object.ErrNotFound
	case gcerrors.Code(err) == gcerrors.PermissionDenied:
		err = fmt.Errorf("%w: %w", fs.ErrPermission, err)
	case errors.As(err, &answer) && answer.ErrorCode() == "QuotaExceeded":
		err = fmt.Errorf("%w: %w", object.ErrNoSpace, err)
	}
	if hint := s.hint(err); hint != "" {
		err = fmt.Errorf("%s: %w", hint, err)
	}
	return &object.Error{Op: op, Store: s.place, Name: name, Err: err}
}

// hint says what to do about what fails before a store is asked. The SDK has no types for these errors.
func (s *Store) hint(err error) string {
	var lookup *net.DNSError
	switch text := err.Error(); {
	case strings.Contains(text, "Invalid region"):
		return "no region is known: set AWS_REGION, or write ?region=… behind the place"
	case strings.Contains(text, "get identity: get credentials"):
		return "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine or pod a role"
	case s.endpoint && errors.As(err, &lookup) && strings.HasPrefix(lookup.Name, s.bucketName+"."):
		return "the endpoint has no host for each bucket, it seems: write &use_path_style=true behind it"
	}
	return ""
}
