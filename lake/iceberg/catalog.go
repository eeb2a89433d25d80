package iceberg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	icebergo "github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/catalog/rest" // the catalog type "rest"
)

// Catalog says where tables are registered. Catalogs are made by REST and Configured here, and by the packages lake/iceberg/sqlite
// and lake/iceberg/glue. It is a description: nothing is opened before a sink is.
type Catalog struct {
	name       string
	place      string // for people, without credentials
	properties map[string]string
	// Where the catalog's own client lets nothing happen after it has returned an error, an outcome is settled by looking once.
	settled bool
	wrap    func(catalog.Catalog) catalog.Catalog // for tests with faults; nil otherwise
}

// String names the catalog for people.
func (c Catalog) String() string { return c.place }

// REST is a catalog that speaks Iceberg's REST protocol, at an URL. Further properties are those of iceberg-go, such as
// "credential", "token", "warehouse", "rest.sigv4-enabled", and "s3.endpoint" for the object store; nil for none.
func REST(uri string, properties map[string]string) Catalog {
	p := map[string]string{"type": "rest", "uri": uri}
	maps.Copy(p, properties)
	return Catalog{name: "rest", place: uri, properties: p}
}

// Configured is a catalog by iceberg-go's own properties, the "type" among them ("rest"; "sql" where package lake/iceberg/sqlite is
// imported, "glue" where lake/iceberg/glue is). name names the catalog: in an SQL catalog it is part of a table's identity, and
// iceberg-go's file .iceberg-go.yaml may hold more properties under it.
func Configured(name string, properties map[string]string) Catalog {
	place, _, _ := strings.Cut(properties["uri"], "?")
	if place == "" {
		place = properties["type"] + ":" + name
	}
	return Catalog{name: name, place: place, properties: maps.Clone(properties), settled: properties["type"] == "sql"}
}

// open makes the catalog's client.
func (c Catalog) open(ctx context.Context) (catalog.Catalog, error) {
	if c.properties == nil {
		return nil, errors.New("no catalog is given: make one with iceberg.REST, or in package lake/iceberg/sqlite or lake/iceberg/glue")
	}
	useDurableFiles()
	if err := c.makeFolder(); err != nil {
		return nil, fmt.Errorf("catalog %s: %w", c.place, err)
	}
	cat, err := catalog.Load(ctx, c.name, icebergo.Properties(c.properties))
	if errors.Is(err, catalog.ErrCatalogNotFound) {
		return nil, fmt.Errorf("catalog %s: %w: is the package that brings it (lake/iceberg/sqlite, lake/iceberg/glue) imported?", c.place, err)
	}
	if err != nil {
		return nil, fmt.Errorf("catalog %s: %w", c.place, err)
	}
	if c.wrap != nil {
		cat = c.wrap(cat)
	}
	return cat, nil
}

// makeFolder makes the folder that an SQLite file lies in: the driver makes the file only.
func (c Catalog) makeFolder() error {
	u, err := url.Parse(c.properties["uri"])
	if err != nil || c.properties["sql.dialect"] != "sqlite" || u.Scheme != "file" || u.Path == "" {
		return nil
	}
	return os.MkdirAll(filepath.Dir(filepath.FromSlash(u.Path)), 0o755)
}
