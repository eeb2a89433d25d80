package sqlite

import (
	"net/url"
	"path/filepath"
	"strings"

	_ "github.com/apache/iceberg-go/catalog/sql" // the catalog type "sql"
	_ "modernc.org/sqlite"                       // the driver "sqlite"

	"github.com/tributary-io/tributary/lake/iceberg"
)

// Catalog is a catalog in the SQLite file at path, which is made if it isn't there. New tables lie in folders of warehouse, which is
// a local path or an URL. The catalog's name inside the file is "default", as PyIceberg has it.
func Catalog(path, warehouse string) iceberg.Catalog {
	return Named("default", path, warehouse, nil)
}

// Named is Catalog under another name, and with more properties of iceberg-go, such as "s3.endpoint".
func Named(name, path, warehouse string, properties map[string]string) iceberg.Catalog {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if !strings.Contains(warehouse, "://") {
		if abs, err := filepath.Abs(warehouse); err == nil {
			warehouse = abs
		}
		warehouse = (&url.URL{Scheme: "file", Path: filepath.ToSlash(warehouse)}).String()
	}
	// A full synchronization at each commit: what the table shows has survived a loss of power. Writers wait for one another.
	dsn := (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: url.Values{
		"_pragma": {"busy_timeout(30000)", "journal_mode(WAL)", "synchronous(FULL)"}, "_txlock": {"immediate"}}.Encode()}).String()
	p := map[string]string{"type": "sql", "uri": dsn, "sql.driver": "sqlite", "sql.dialect": "sqlite", "warehouse": warehouse}
	for k, v := range properties {
		p[k] = v
	}
	return iceberg.Configured(name, p)
}
