package kafkaflags

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func parse(t *testing.T, args ...string) (*Flags, *pflag.FlagSet) {
	t.Helper()
	var f Flags
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Add(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f, set
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestWithoutSecurityThereAreNoOptions(t *testing.T) {
	f, _ := parse(t)
	opts, err := f.Options(environment())
	if err != nil || len(opts) != 0 || f.Given() {
		t.Errorf("%d options, given %v, error %v", len(opts), f.Given(), err)
	}
}

func TestFlagsGoBeforeTheEnvironment(t *testing.T) {
	f, _ := parse(t, "--sasl-mechanism=plain", "--sasl-user=alice", "--sasl-password=of-flag")
	all, err := f.withEnvironment(environment(EnvMechanism, ScramSHA512, EnvUser, "bob", EnvPassword, "of-env", EnvPasswordFile, "file", EnvTLS, "true"))
	if err != nil {
		t.Fatal(err)
	}
	want := Flags{tls: true, mechanism: "plain", user: "alice", password: f.password}
	if all != want || *all.password.text != "of-flag" {
		t.Errorf("got user %s, mechanism %s, TLS %v, password file %s", all.user, all.mechanism, all.tls, all.passwordFile)
	}
	m, err := all.saslMechanism()
	if err != nil || m.Name() != Plain {
		t.Errorf("mechanism %v, error %v", m, err)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		env  []string
		want string
	}{
		{args: []string{"--tls-cert=x"}, want: "both --tls-cert and --tls-key"},
		{args: []string{"--tls-ca=" + empty}, want: "no certificate in PEM"},
		{args: []string{"--tls-ca=/nowhere/ca.pem"}, want: "/nowhere/ca.pem"},
		{args: []string{"--tls-cert=/nowhere/c", "--tls-key=/nowhere/k"}, want: "client certificate /nowhere/c"},
		{args: []string{"--sasl-user=alice"}, want: "no --sasl-mechanism"},
		{args: []string{"--sasl-mechanism=PLAIN", "--sasl-password=hunter2"}, want: "needs --sasl-user"},
		{args: []string{"--sasl-mechanism=PLAIN", "--sasl-user=alice"}, want: "needs a password"},
		{args: []string{"--sasl-mechanism=PLAIN", "--sasl-user=alice", "--sasl-password-file=" + empty}, want: "is empty"},
		{args: []string{"--sasl-mechanism=PLAIN", "--sasl-user=alice", "--sasl-password=hunter2", "--sasl-password-file=f"}, want: "give one of them"},
		{args: []string{"--sasl-mechanism=GSSAPI", "--sasl-user=alice", "--sasl-password=hunter2"}, want: "SCRAM-SHA-512"},
		{env: []string{EnvTLS, "perhaps"}, want: "true or false"},
	} {
		f, _ := parse(t, c.args...)
		_, err := f.Options(environment(c.env...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q in it", c.args, err, c.want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: the password is in the error: %v", c.args, err)
		}
	}
}

func TestPasswordIsShownNowhere(t *testing.T) {
	f, set := parse(t, "--sasl-mechanism=PLAIN", "--sasl-user=alice", "--sasl-password=hunter2")
	var out bytes.Buffer
	fmt.Fprintf(&out, "%v %+v %#v %s %q %x\n", *f, *f, f.password, f.password, f.password, f.password)
	slog.New(slog.NewTextHandler(&out, nil)).Info("flags", "password", f.password, "flags", *f)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("flags", "password", f.password)
	if err := json.NewEncoder(&out).Encode(map[string]any{"p": f.password}); err != nil {
		t.Fatal(err)
	}
	out.WriteString(set.FlagUsages())
	set.VisitAll(func(flag *pflag.Flag) { out.WriteString(flag.Value.String()) })
	if text := out.String(); strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
		t.Errorf("the password is shown:\n%s", text)
	}
}

func TestPasswordFileIsReadForEachConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	write := func(p string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(p+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	f, _ := parse(t, "--sasl-password-file="+file)
	password, err := f.passwordSource()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "second"} {
		write(want)
		if got, err := password(); got != want || err != nil {
			t.Errorf("password %q, error %v, want %q", got, err, want)
		}
	}
}
