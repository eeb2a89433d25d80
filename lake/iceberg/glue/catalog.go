package glue

import (
	"maps"

	_ "github.com/apache/iceberg-go/catalog/glue" // the catalog type "glue"

	"github.com/tributary-io/tributary/lake/iceberg"
	_ "github.com/tributary-io/tributary/lake/iceberg/s3" // where Glue's tables are
)

// Catalog is the Glue Data Catalog of an account. New tables lie in folders of warehouse, such as "s3://bucket/folder"; a Glue
// database is a namespace. Properties are those of iceberg-go, such as "glue.region", "glue.endpoint", "glue.id" (of another
// account's catalog) and "s3.endpoint"; nil for none.
func Catalog(warehouse string, properties map[string]string) iceberg.Catalog {
	p := map[string]string{"type": "glue", "warehouse": warehouse}
	maps.Copy(p, properties)
	return iceberg.Configured("glue", p)
}
