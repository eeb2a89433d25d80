package s3

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/utils"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// TestCatalogsKeepTheirCredentials has catalogs with configs of their own, such as Glue's of two accounts, and one without, whose properties are the same.
func TestCatalogsKeepTheirCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "environment")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_REGION", "us-east-1")
	var signed string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	for _, who := range []string{"first", "second", "environment"} {
		ctx := t.Context()
		if who != "environment" {
			ctx = utils.WithAwsConfig(ctx, &aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider(who, "secret", "")})
		}
		fs, err := icebergio.LoadFS(ctx, map[string]string{"s3.endpoint": server.URL}, "s3://bucket/table")
		if err != nil {
			t.Fatal(err)
		}
		if f, err := fs.Open("s3://bucket/table/file"); err == nil {
			f.Close()
			t.Fatal("opened a file that isn't there")
		}
		if !strings.Contains(signed, "Credential="+who+"/") {
			t.Errorf("the request of %s is signed by %q", who, signed)
		}
	}
}
