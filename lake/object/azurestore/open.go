package azurestore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tributary-io/tributary/lake/object"
)

func init() {
	for _, scheme := range []string{"az", "abfs", "abfss"} {
		object.Register(scheme, func(ctx context.Context, u *url.URL) (object.Store, error) { return Open(ctx, u) })
	}
}

// blobDomain is that of the public cloud; others are named by abfss URLs and endpoints.
const blobDomain = "blob.core.windows.net"

// address is where a container lies.
type address struct {
	account, container, folder string
	endpoint                   string // of the account
	named                      bool   // the URL itself says where, and not the environment
}

// Open opens a folder of a container; see the package's comment for URLs and credentials.
func Open(_ context.Context, u *url.URL) (*Store, error) {
	fail := func(err error) (*Store, error) { return nil, fmt.Errorf("open object store %s: %w", u.Redacted(), err) }
	a, err := parse(u)
	if err != nil {
		return fail(err)
	}
	client, err := a.client()
	if err != nil {
		return fail(err)
	}
	s := &Store{place: (&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: u.Path}).Redacted(), container: client}
	if a.folder != "" {
		s.prefix = a.folder + "/"
	}
	return s, nil
}

// parse reads a URL.
func parse(u *url.URL) (a address, err error) {
	a.folder = strings.Trim(u.Path, "/")
	for name, values := range u.Query() {
		value := values[len(values)-1]
		switch name {
		case "account":
			a.account = value
		case "endpoint":
			a.endpoint = strings.TrimSuffix(value, "/")
		default:
			return a, fmt.Errorf("unknown parameter %q: account and endpoint are known; keys and tokens belong into the environment", name)
		}
	}
	if u.Scheme == "az" {
		a.container = u.Host
		if u.User != nil {
			return a, errors.New("write az://container/folder, or abfss://container@account.dfs.core.windows.net/folder")
		}
	} else if err := a.parseHost(u); err != nil {
		return a, err
	}
	if a.container == "" {
		return a, errors.New("the URL names no container (write az://container/folder)")
	}
	a.named = a.account != "" || a.endpoint != ""
	if a.account == "" {
		a.account = first("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT")
	}
	if a.endpoint == "" && a.account != "" {
		a.endpoint = "https://" + a.account + "." + blobDomain
	}
	return a, nil
}

// parseHost reads container@account.dfs.core.windows.net. Data Lake Storage has the same objects under the account's blob endpoint, whose conditions are what
// commits rest upon.
func (a *address) parseHost(u *url.URL) error {
	account, domain, ok := strings.Cut(u.Host, ".dfs.")
	if u.User == nil || !ok || account == "" {
		return fmt.Errorf("write %s://container@account.dfs.core.windows.net/folder", u.Scheme)
	}
	if _, secret := u.User.Password(); secret {
		return errors.New("the URL has a password: keys and tokens belong into the environment")
	}
	a.container, a.account = u.User.Username(), account
	if a.endpoint == "" {
		a.endpoint = "https://" + account + ".blob." + domain
	}
	return nil
}

// first is the first of some variables that is set.
func first(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// identities holds the environment's, which keeps its tokens. (Connections are the whole process's, as the SDK has it.)
var identities object.Clients[*azidentity.DefaultAzureCredential]

// client makes the client by the credentials of the environment.
func (a address) client() (*container.Client, error) {
	opts := &container.ClientOptions{}
	opts.Telemetry.ApplicationID = "tributary"
	if text := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"); text != "" {
		return a.connected(text, opts)
	}
	if a.endpoint == "" {
		return nil, errors.New("no storage account is named: add ?account=NAME, or set AZURE_STORAGE_ACCOUNT_NAME")
	}
	place := a.place()
	if key := first("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"); key != "" {
		if a.account == "" {
			return nil, errors.New("there is a key, but no storage account is named: add ?account=NAME, or set AZURE_STORAGE_ACCOUNT_NAME")
		}
		credential, err := container.NewSharedKeyCredential(a.account, key)
		if err != nil {
			return nil, fmt.Errorf("the account's key: %w", err)
		}
		return container.NewClientWithSharedKeyCredential(place, credential, opts)
	}
	if token := os.Getenv("AZURE_STORAGE_SAS_TOKEN"); token != "" {
		return container.NewClientWithNoCredential(place+"?"+strings.TrimPrefix(token, "?"), opts)
	}
	credential, err := identities.Get("", func() (*azidentity.DefaultAzureCredential, error) { return azidentity.NewDefaultAzureCredential(nil) })
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	return container.NewClient(place, credential, opts)
}

// place is the container's address.
func (a address) place() string { return a.endpoint + "/" + url.PathEscape(a.container) }

// connected makes the client by a connection string. It names an account: data must not go to another one than the URL's.
func (a address) connected(text string, opts *container.ClientOptions) (*container.Client, error) {
	client, err := container.NewClientFromConnectionString(text, a.container, opts)
	if err != nil {
		return nil, fmt.Errorf("AZURE_STORAGE_CONNECTION_STRING: %w", err)
	}
	if have, _, _ := strings.Cut(client.URL(), "?"); a.named && have != a.place() {
		return nil, fmt.Errorf("AZURE_STORAGE_CONNECTION_STRING is for %s, but the URL means %s: unset the one, or leave account and endpoint out of the other", have, a.place())
	}
	return client, nil
}
