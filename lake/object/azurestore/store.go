package azurestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tributary-io/tributary/lake/object"
)

// Store is a folder of a container. Objects are durable when they are visible, so that Sync has nothing to do.
type Store struct {
	place     string // for people
	container *container.Client
	prefix    string // of all keys: "" or ending in a slash
}

func (s *Store) String() string { return s.place }

// Of a large object: the size of the parts that it is sent in, and how many of them are held in memory and sent at once.
const (
	partSize  = 8 << 20
	partsSent = 2
)

func (s *Store) blob(name string) *blockblob.Client {
	return s.container.NewBlockBlobClient(s.prefix + name)
}

// once is a context under which the client doesn't repeat a request.
func once(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
}

// PutIfAbsent implements object.Store. The client doesn't repeat it: what a lost request has done is for the caller to find out.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	_, err := s.blob(name).Upload(once(ctx), streaming.NopCloser(bytes.NewReader(data)), &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}},
	})
	if err == nil {
		return nil
	}
	return s.fail("put if absent", name, putError(err))
}

// putError sorts the errors of a conditional put. Only an answer that refuses it makes clear that nothing was stored.
func putError(err error) error {
	if bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet) {
		return object.ErrExists
	}
	var answer *azcore.ResponseError
	if errors.As(err, &answer) && answer.StatusCode >= 400 && answer.StatusCode < 500 && answer.StatusCode != http.StatusRequestTimeout {
		return err
	}
	return fmt.Errorf("%w: %w", object.ErrUnknown, err)
}

// Put implements object.Store.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	_, err := s.blob(name).Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), nil)
	return s.fail("put", name, err)
}

// Create implements object.Store. The object is uploaded in parts while it is written. Azure drops parts that no blob was made of after a
// week, and nobody sees them.
func (s *Store) Create(ctx context.Context, name string) (object.Writer, error) {
	upload := func(ctx context.Context, r io.Reader) error {
		_, err := s.blob(name).UploadStream(ctx, r, &blockblob.UploadStreamOptions{BlockSize: partSize, Concurrency: partsSent})
		return err
	}
	return object.NewPipe(ctx, upload, func(operation string, err error) error { return s.fail(operation, name, err) }), nil
}

// Sync implements object.Store.
func (s *Store) Sync(context.Context, ...string) error { return nil }

// Get implements object.Store.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	return s.download(ctx, name, blob.HTTPRange{})
}

// GetRange implements object.Store.
func (s *Store) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	return s.download(ctx, name, blob.HTTPRange{Offset: off, Count: n})
}

func (s *Store) download(ctx context.Context, name string, span blob.HTTPRange) ([]byte, error) {
	res, err := s.blob(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: span})
	if err != nil {
		return nil, s.fail("get", name, err)
	}
	body := res.NewRetryReader(ctx, nil)
	defer body.Close()
	data, err := io.ReadAll(body)
	return data, s.fail("get", name, err)
}

// Stat implements object.Store.
func (s *Store) Stat(ctx context.Context, name string) (object.Info, error) {
	p, err := s.blob(name).GetProperties(ctx, nil)
	if err != nil {
		return object.Info{}, s.fail("stat", name, err)
	}
	return object.Info{Name: name, Size: value(p.ContentLength), Modified: value(p.LastModified)}, nil
}

// value is what a pointer of an answer points to, the zero value if the service left it out.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Delete implements object.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	_, err := s.blob(name).Delete(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil
	}
	return s.fail("delete", name, err)
}

// List implements object.Store.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		opts := &container.ListBlobsFlatOptions{Prefix: to.Ptr(s.prefix + prefix), Include: container.ListBlobsInclude{Metadata: true}}
		if after != "" {
			opts.StartFrom = to.Ptr(s.prefix + after)
		}
		pages := s.container.NewListBlobsFlatPager(opts)
		for pages.More() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(object.Info{}, s.fail("list", prefix, err))
				return
			}
			for _, item := range page.Segment.BlobItems {
				name := strings.TrimPrefix(value(item.Name), s.prefix)
				if name <= after || isFolder(item) { // the start is inclusive, and emulators don't know it
					continue
				}
				if !yield(object.Info{Name: name, Size: value(item.Properties.ContentLength), Modified: value(item.Properties.LastModified)}, nil) {
					return
				}
			}
		}
	}
}

// isFolder tells the marks that accounts with a hierarchical namespace list for their folders.
func isFolder(item *container.BlobItem) bool {
	for name, v := range item.Metadata {
		if strings.EqualFold(name, "hdi_isfolder") && strings.EqualFold(value(v), "true") {
			return true
		}
	}
	return false
}

// fail wraps err with what was tried, and with the error that callers test for. A nil err stays nil.
func (s *Store) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var answer *azcore.ResponseError
	switch {
	case !errors.As(err, &answer):
	case answer.StatusCode == http.StatusNotFound && op != "list" && !bloberror.HasCode(err, bloberror.ContainerNotFound):
		err = object.ErrNotFound
	case answer.StatusCode == http.StatusForbidden:
		err = fmt.Errorf("%w: %w", fs.ErrPermission, err)
	}
	return &object.Error{Op: op, Store: s.place, Name: name, Err: err}
}
