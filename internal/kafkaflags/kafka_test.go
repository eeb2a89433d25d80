package kafkaflags

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tributary-io/tributary/internal/realkafka"
)

func TestMain(m *testing.M) { realkafka.Main(m) }

// unsecuredToken is a token for a broker that checks no signatures (RFC 7515, appendix A.5).
func unsecuredToken(user string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	now := time.Now().Unix()
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, user, now-10, now+3600)) + "."
}

// Each way in is tried against a real broker, with what lets one in and with what doesn't.
func TestConnects(t *testing.T) {
	broker := realkafka.StartSecure(t, map[string]string{"alice": "alice secret"})
	ca := "--tls-ca=" + broker.CAFile
	ping := func(addr, password string, args ...string) error {
		f, _ := parse(t, args...)
		opts, err := f.Options(environment(EnvPassword, password))
		if err != nil {
			return err
		}
		client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr), kgo.RequestRetries(3))...)
		if err != nil {
			return err
		}
		defer client.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return client.Ping(ctx)
	}
	for _, mechanism := range []string{Plain, ScramSHA256, ScramSHA512, OAuthBearer} {
		args := []string{"--sasl-mechanism=" + mechanism, "--sasl-user=alice"}
		right, wrong := "alice secret", "hunter2"
		if mechanism == OAuthBearer {
			args, right, wrong = args[:1], unsecuredToken("alice"), "no token"
		}
		if err := ping(broker.SASL, right, args...); err != nil {
			t.Errorf("%s: %v", mechanism, err)
		}
		if err := ping(broker.SASLTLS, right, append(args, ca)...); err != nil {
			t.Errorf("%s over TLS: %v", mechanism, err)
		}
		if err := ping(broker.SASL, wrong, args...); err == nil || strings.Contains(err.Error(), wrong) {
			t.Errorf("%s with a wrong password: error %v", mechanism, err)
		}
	}
	if err := ping(broker.TLS, "", ca, "--tls-cert="+broker.CertFile, "--tls-key="+broker.KeyFile); err != nil {
		t.Errorf("client certificate: %v", err)
	}
	if err := ping(broker.TLS, "", ca); err == nil {
		t.Error("the broker lets in who shows no certificate")
	}
	if err := ping(broker.SASLTLS, "alice secret", "--tls", "--sasl-mechanism=PLAIN", "--sasl-user=alice"); err == nil {
		t.Error("a broker is trusted whose authority nobody knows")
	}
	file := t.TempDir() + "/password"
	if err := os.WriteFile(file, []byte("alice secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ping(broker.SASL, "", "--sasl-mechanism=SCRAM-SHA-512", "--sasl-user=alice", "--sasl-password-file="+file); err != nil {
		t.Errorf("password from a file: %v", err)
	}
}
