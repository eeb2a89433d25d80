package s3

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/io/gocloud/s3"
	"github.com/apache/iceberg-go/utils"
	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/tributary-io/tributary/lake/object"
)

// iceberg-go opens a bucket anew for whatever it does with a table, some five times in a commit, and each time with a client, connections and credentials of
// its own, of which none are closed. So the schemes are taken over here, and what they open shares clients. ossScheme stays iceberg-go's: it opens the same
// buckets.
const ossScheme = "oss"

func init() {
	for _, scheme := range []string{"s3", "s3a", "s3n"} {
		icebergio.Unregister(scheme)
		icebergio.Register(scheme, open)
	}
}

// configs are by what key leaves of the properties of catalogs and tables, and by the identity of the config that a catalog has.
var configs object.Clients[*aws.Config]

// open opens an URL's bucket. What it returns lives under ctx.
func open(ctx context.Context, u *url.URL, properties map[string]string) (icebergio.IO, error) {
	given := utils.GetAwsConfig(ctx) // that of a catalog, such as Glue
	who, err := identity(ctx, given)
	if err != nil {
		return nil, err
	}
	cfg, err := configs.Get(key(properties)+who, func() (*aws.Config, error) {
		cfg := given
		if cfg == nil {
			var err error
			if cfg, err = s3.ParseAWSConfig(context.WithoutCancel(ctx), properties); err != nil {
				return nil, err
			}
		}
		shared := *cfg
		if shared.HTTPClient == nil {
			shared.HTTPClient = awshttp.NewBuildableClient()
		}
		if client, ok := shared.HTTPClient.(*awshttp.BuildableClient); ok {
			shared.HTTPClient = client.Freeze() // each service would make its own of one that can be built upon
		}
		return &shared, nil
	})
	if err != nil {
		return nil, err
	}
	return icebergio.LoadFS(utils.WithAwsConfig(ctx, cfg), properties, ossScheme+"://"+u.Host)
}

// identity tells the configs of catalogs apart: by whom they speak for, and where. It is empty without one.
func identity(ctx context.Context, of *aws.Config) (string, error) {
	if of == nil {
		return "", nil
	}
	var who aws.Credentials
	if of.Credentials != nil {
		var err error
		if who, err = of.Credentials.Retrieve(ctx); err != nil { // which keeps them while they are valid
			return "", fmt.Errorf("credentials of the catalog: %w", err)
		}
	}
	return fmt.Sprint(" of ", of.Region, " ", aws.ToString(of.BaseEndpoint), " ", who.AccessKeyID, " ", who.SecretAccessKey, " ", who.SessionToken), nil
}

// key has those properties that a config is made of; among the others is how far a table has come, which changes with each commit.
func key(properties map[string]string) string {
	own := maps.Clone(properties)
	maps.DeleteFunc(own, func(name, _ string) bool {
		return name != "token" && !strings.HasPrefix(name, "s3.") && !strings.HasPrefix(name, "client.")
	})
	return fmt.Sprint(own) // in the order of their names
}
