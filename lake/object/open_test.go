package object_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tributary-io/tributary/lake/object"
)

func TestSchemeThatIsNotLinkedInNamesThePackage(t *testing.T) {
	for place, want := range map[string]string{
		"gs://bucket/t": `add import _ "github.com/tributary-io/tributary/lake/object/gcsstore"`,
		"s3://bucket/t": `add import _ "github.com/tributary-io/tributary/lake/object/s3store"`,
		"az://bucket/t": `add import _ "github.com/tributary-io/tributary/lake/object/azurestore"`,
	} {
		if _, err := object.Open(context.Background(), place); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", place, err)
		}
	}
	if _, err := object.Open(context.Background(), "ftp://host/t"); err == nil || strings.Contains(err.Error(), "import") {
		t.Errorf("a scheme of nobody's: %v", err)
	}
}
