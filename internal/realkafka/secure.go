package realkafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/child"
)

// Secure is a broker with TLS, SASL and ACLs. Addrs is its listener without either, whose users may do everything: it is there to set up
// topics, ACLs and checks. On the others a user may do what ACLs allow and nothing else.
type Secure struct {
	*Cluster
	// SASL is the listener with SASL over plain text, SASLTLS with SASL over TLS: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, and
	// OAUTHBEARER with unsecured tokens (RFC 7515 appendix A.5), whose subject is the user.
	SASL, SASLTLS string
	// TLS is the listener that wants a client's certificate. The user is the certificate's common name.
	TLS string
	// CAFile is the authority that signed the brokers' certificates, PEM. CertFile and KeyFile are a certificate of the user "certified".
	CAFile, CertFile, KeyFile string
}

// CertifiedUser is who comes with Secure.CertFile.
const CertifiedUser = "certified"

// StartSecure starts a broker with these users (name to password) for one test, and stops it when the test ends.
func StartSecure(t testing.TB, users map[string]string) *Secure {
	t.Helper()
	s, err := startSecure(users)
	if err != nil {
		skipOrFail(t, err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("stop Kafka: %v", err)
		}
	})
	if err := s.addScramUsers(t.Context(), users); err != nil {
		t.Fatalf("make users: %v", err)
	}
	return s
}

func startSecure(users map[string]string) (*Secure, error) {
	lib, err := jars()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tributary-kafka-")
	if err != nil {
		return nil, err
	}
	s := &Secure{Cluster: newCluster(dir, lib, smallJVM)}
	if err := s.prepare(users); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := s.upAll(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Secure) prepare(users map[string]string) error {
	ports, err := child.FreePorts(5)
	if err != nil {
		return err
	}
	n := &node{id: 1, dir: s.dir + "/n1", port: ports[0], controller: ports[1]}
	s.nodes = []*node{n}
	local := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	s.SASL, s.SASLTLS, s.TLS = local(ports[2]), local(ports[3]), local(ports[4])
	a, err := newAuthority(s.dir)
	if err != nil {
		return err
	}
	s.CAFile = a.caFile()
	_, _, store, err := a.issue("broker")
	if err != nil {
		return err
	}
	if s.CertFile, s.KeyFile, _, err = a.issue(CertifiedUser); err != nil {
		return err
	}
	return s.format(s.settings(n, store, users))
}

// settings are the broker's over the package's own. The listener without security is also the brokers' own.
func (s *Secure) settings(n *node, store string, users map[string]string) map[string]string {
	clients := fmt.Sprintf("PLAINTEXT://%s,SASL_PLAINTEXT://%s,SASL_SSL://%s,SSL://%s", n.addr(), s.SASL, s.SASLTLS, s.TLS)
	settings := map[string]string{
		"listeners":                      fmt.Sprintf("%s,CONTROLLER://127.0.0.1:%d", clients, n.controller),
		"advertised.listeners":           clients,
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL",
		"sasl.enabled.mechanisms":        "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
		"authorizer.class.name":          "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                    "User:ANONYMOUS",
		"ssl.keystore.type":              "PEM",
		"ssl.keystore.location":          store,
		"ssl.truststore.type":            "PEM",
		"ssl.truststore.location":        s.CAFile,
		// With SASL it isn't asked for.
		"listener.name.ssl.ssl.client.auth": "required",
		"ssl.principal.mapping.rules":       "RULE:^CN=([^,]*).*$/$1/,DEFAULT",
	}
	var plain strings.Builder
	for _, user := range slices.Sorted(maps.Keys(users)) {
		fmt.Fprintf(&plain, " user_%s=%q", user, users[user])
	}
	const modules = "org.apache.kafka.common.security."
	for _, listener := range []string{"sasl_plaintext", "sasl_ssl"} {
		jaas := func(mechanism, module, options string) {
			settings["listener.name."+listener+"."+mechanism+".sasl.jaas.config"] = modules + module + " required" + options + ";"
		}
		jaas("plain", "plain.PlainLoginModule", plain.String())
		jaas("scram-sha-256", "scram.ScramLoginModule", "")
		jaas("scram-sha-512", "scram.ScramLoginModule", "")
		jaas("oauthbearer", "oauthbearer.OAuthBearerLoginModule", "")
	}
	return settings
}

// addScramUsers makes the users known to SCRAM.
func (s *Secure) addScramUsers(ctx context.Context, users map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Addrs()...))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} { // a request may hold a user once
		var upserts []kadm.UpsertSCRAM
		for user, password := range users {
			upserts = append(upserts, kadm.UpsertSCRAM{User: user, Mechanism: m, Iterations: 4096, Password: password})
		}
		altered, err := admin.AlterUserSCRAMs(ctx, nil, upserts)
		if err = errors.Join(err, altered.Error()); err != nil {
			return err
		}
	}
	return nil
}
