package gcsstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/storage/v1"

	"github.com/tributary-io/tributary/lake/object"
)

// Store is a folder of a bucket. Objects are durable when they are visible, so that Sync has nothing to do.
type Store struct {
	place       string // for people
	bucket      string
	prefix      string // of all keys: "" or ending in a slash
	userProject string // who pays; "" for the bucket's owner
	objects     *storage.ObjectsService
	pause       time.Duration // before the first repetition
}

func (s *Store) String() string { return s.place }

// partSize is how much of a large object is sent, and held in memory, at once.
const partSize = 8 << 20

const contentType = "application/octet-stream"

// upload prepares a request that stores an object; parts is the size of its parts, 0 for a single request.
func (s *Store) upload(ctx context.Context, name string, data io.Reader, parts int) *storage.ObjectsInsertCall {
	call := s.objects.Insert(s.bucket, &storage.Object{Name: s.prefix + name}).Context(ctx).Fields("generation").
		Media(data, googleapi.ContentType(contentType), googleapi.ChunkSize(parts))
	if s.userProject != "" {
		call.UserProject(s.userProject)
	}
	return call
}

// PutIfAbsent implements object.Store. The client doesn't repeat it: what a lost request has done is for the caller to find out.
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	_, err := s.upload(ctx, name, bytes.NewReader(data), 0).IfGenerationMatch(0).Do()
	if err == nil {
		return nil
	}
	return s.fail("put if absent", name, putError(err))
}

// Put implements object.Store.
func (s *Store) Put(ctx context.Context, name string, data []byte) error {
	err := s.again(ctx, func() error {
		_, err := s.upload(ctx, name, bytes.NewReader(data), 0).Do()
		return err
	})
	return s.fail("put", name, err)
}

// Create implements object.Store. The object is uploaded in parts while it is written. Google drops the parts of an upload that isn't
// completed after a week, and nobody sees them.
func (s *Store) Create(ctx context.Context, name string) (object.Writer, error) {
	upload := func(ctx context.Context, r io.Reader) error {
		_, err := s.upload(ctx, name, r, partSize).WithRetry(nil, limited(uploadRepeats)).Do()
		return err
	}
	return object.NewPipe(ctx, upload, func(operation string, err error) error { return s.fail(operation, name, err) }), nil
}

// Sync implements object.Store.
func (s *Store) Sync(context.Context, ...string) error { return nil }

// get prepares a request for an object or what is known of it.
func (s *Store) get(ctx context.Context, name string) *storage.ObjectsGetCall {
	call := s.objects.Get(s.bucket, s.prefix+name).Context(ctx)
	if s.userProject != "" {
		call.UserProject(s.userProject)
	}
	return call
}

// Get implements object.Store.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	return s.download(ctx, name, "")
}

// GetRange implements object.Store.
func (s *Store) GetRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	return s.download(ctx, name, fmt.Sprintf("bytes=%d-%d", off, off+n-1))
}

func (s *Store) download(ctx context.Context, name, span string) (data []byte, err error) {
	err = s.again(ctx, func() error {
		call := s.get(ctx, name)
		if span != "" {
			call.Header().Set("Range", span)
		}
		res, err := call.Download()
		if err != nil {
			return err
		}
		defer res.Body.Close()
		data, err = io.ReadAll(res.Body)
		return err
	})
	return data, s.fail("get", name, err)
}

// Stat implements object.Store.
func (s *Store) Stat(ctx context.Context, name string) (info object.Info, err error) {
	err = s.again(ctx, func() error {
		o, err := s.get(ctx, name).Fields("name", "size", "updated").Do()
		if err == nil {
			info, err = infoOf(o, name)
		}
		return err
	})
	return info, s.fail("stat", name, err)
}

func infoOf(o *storage.Object, name string) (object.Info, error) {
	modified, err := time.Parse(time.RFC3339Nano, o.Updated)
	return object.Info{Name: name, Size: int64(o.Size), Modified: modified}, err
}

// Delete implements object.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := s.again(ctx, func() error {
		call := s.objects.Delete(s.bucket, s.prefix+name).Context(ctx)
		if s.userProject != "" {
			call.UserProject(s.userProject)
		}
		return call.Do()
	})
	if status(err) == http.StatusNotFound && !bucketMissing(err) {
		return nil
	}
	return s.fail("delete", name, err)
}

// List implements object.Store.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[object.Info, error] {
	return func(yield func(object.Info, error) bool) {
		for token := ""; ; {
			page, err := s.page(ctx, prefix, after, token)
			if err != nil {
				yield(object.Info{}, s.fail("list", prefix, err))
				return
			}
			for _, o := range page.Items {
				name := strings.TrimPrefix(o.Name, s.prefix)
				if name <= after || strings.HasSuffix(name, "/") { // the start is inclusive; others' tools make "folders"
					continue
				}
				info, err := infoOf(o, name)
				if err != nil {
					yield(object.Info{}, s.fail("list", prefix, err))
					return
				}
				if !yield(info, nil) {
					return
				}
			}
			if token = page.NextPageToken; token == "" {
				return
			}
		}
	}
}

func (s *Store) page(ctx context.Context, prefix, after, token string) (page *storage.Objects, err error) {
	err = s.again(ctx, func() (err error) {
		call := s.objects.List(s.bucket).Context(ctx).Prefix(s.prefix+prefix).Fields("nextPageToken", "items(name,size,updated)")
		if after != "" {
			call.StartOffset(s.prefix + after)
		}
		if token != "" {
			call.PageToken(token)
		}
		if s.userProject != "" {
			call.UserProject(s.userProject)
		}
		page, err = call.Do()
		return err
	})
	return page, err
}
