package object

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

// Open opens the store at a place: the path of a folder (made if missing), file:///path, or an URL of a registered scheme (see
// Register), such as s3://bucket/folder where package s3store is linked in.
func Open(ctx context.Context, place string) (Store, error) {
	scheme, _, found := strings.Cut(place, "://")
	if !found || len(scheme) < 2 {
		return NewLocal(place)
	}
	u, err := url.Parse(place)
	if err != nil {
		return nil, fmt.Errorf("open object store %q: not a valid URL: %w", place, err)
	}
	if u.Scheme == "file" {
		return openFile(u)
	}
	if open := opener(u.Scheme); open != nil {
		return open(ctx, u)
	}
	return nil, fmt.Errorf("open object store %q: the scheme %q is not supported in this build, which has folders (%s)", place, u.Scheme, schemeNames())
}

func openFile(u *url.URL) (Store, error) {
	if u.Host != "" && u.Host != "localhost" {
		return nil, fmt.Errorf("open object store %q: a file URL has no host (write file:///path)", u)
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	return NewLocal(filepath.FromSlash(path))
}
