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
	hint := ""
	if pkg := packages[u.Scheme]; pkg != "" {
		hint = fmt.Sprintf("; add import _ %q to the program", "github.com/tributary-io/tributary/lake/object/"+pkg)
	}
	return nil, fmt.Errorf("open object store %q: the scheme %q is not supported in this build, which has folders (%s)%s", place, u.Scheme, schemeNames(), hint)
}

// packages are those that register the schemes of clouds where they are linked in.
var packages = map[string]string{"s3": "s3store", "gs": "gcsstore", "az": "azurestore", "abfs": "azurestore", "abfss": "azurestore"}

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
