package kafkaflags

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// The environment variables, each for the flag of the same name.
const (
	EnvTLS          = "TRIBUTARY_TLS"
	EnvCA           = "TRIBUTARY_TLS_CA"
	EnvCert         = "TRIBUTARY_TLS_CERT"
	EnvKey          = "TRIBUTARY_TLS_KEY"
	EnvMechanism    = "TRIBUTARY_SASL_MECHANISM"
	EnvUser         = "TRIBUTARY_SASL_USER"
	EnvPassword     = "TRIBUTARY_SASL_PASSWORD"
	EnvPasswordFile = "TRIBUTARY_SASL_PASSWORD_FILE"
)

// The SASL mechanisms, as brokers call them.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
	OAuthBearer = "OAUTHBEARER"
)

// Flags is what a command was told of a cluster's security. The zero value is a cluster without any.
type Flags struct {
	tls           bool
	ca, cert, key string
	mechanism     string
	user          string
	password      secret
	passwordFile  string
}

// Add declares the flags.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.tls, "tls", false, "talk TLS to the brokers, trusting the system's authorities; the other --tls flags imply it ("+EnvTLS+")")
	flags.StringVar(&f.ca, "tls-ca", "", "file with the authorities to trust instead, PEM ("+EnvCA+")")
	flags.StringVar(&f.cert, "tls-cert", "", "file with the client's certificate, PEM ("+EnvCert+")")
	flags.StringVar(&f.key, "tls-key", "", "file with the certificate's key, PEM ("+EnvKey+")")
	flags.StringVar(&f.mechanism, "sasl-mechanism", "", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER ("+EnvMechanism+")")
	flags.StringVar(&f.user, "sasl-user", "", "user; with OAUTHBEARER the token says who it is ("+EnvUser+")")
	flags.Var(&f.password, "sasl-password", "password, or token with OAUTHBEARER; other users of the machine can see it, unlike "+EnvPassword)
	flags.StringVar(&f.passwordFile, "sasl-password-file", "", "file with the password or token, read for each connection ("+EnvPasswordFile+")")
}

// Given tells whether any flag was set; the environment doesn't count.
func (f *Flags) Given() bool { return *f != Flags{} }

// Options makes client options of flags and environment, none for a cluster without security. getenv is os.Getenv outside of tests. The
// error tells all that is wrong, without secrets.
func (f *Flags) Options(getenv func(string) string) ([]kgo.Opt, error) {
	all, err := f.withEnvironment(getenv)
	if err != nil {
		return nil, err
	}
	config, err := all.tlsConfig()
	mechanism, err2 := all.saslMechanism()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	var opts []kgo.Opt
	if config != nil {
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, nil
}

// withEnvironment fills in what flags don't say. A password of one source isn't mixed with the file of another.
func (f Flags) withEnvironment(getenv func(string) string) (Flags, error) {
	for to, name := range map[*string]string{&f.ca: EnvCA, &f.cert: EnvCert, &f.key: EnvKey, &f.mechanism: EnvMechanism, &f.user: EnvUser} {
		if *to == "" {
			*to = getenv(name)
		}
	}
	if !f.password.given() && f.passwordFile == "" {
		f.password, f.passwordFile = newSecret(getenv(EnvPassword)), getenv(EnvPasswordFile)
	}
	if text := getenv(EnvTLS); text != "" && !f.tls {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return f, fmt.Errorf("%s is %q: give true or false", EnvTLS, text)
		}
		f.tls = on
	}
	return f, nil
}

func (f *Flags) tlsConfig() (*tls.Config, error) {
	if (f.cert == "") != (f.key == "") {
		return nil, errors.New("a client certificate needs both --tls-cert and --tls-key")
	}
	if !f.tls && f.ca == "" && f.cert == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("authorities to trust: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("authorities to trust: %s holds no certificate in PEM", f.ca)
		}
	}
	if f.cert != "" {
		certFile, keyFile := f.cert, f.key
		load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				return nil, fmt.Errorf("client certificate %s with key %s: %w", certFile, keyFile, err)
			}
			return &c, nil
		}
		if _, err := load(nil); err != nil {
			return nil, err // now rather than at the first connection
		}
		config.GetClientCertificate = load
	}
	return config, nil
}

func (f *Flags) saslMechanism() (sasl.Mechanism, error) {
	if f.mechanism == "" {
		if f.user != "" || f.password.given() || f.passwordFile != "" {
			return nil, errors.New("a user or password is given, but no --sasl-mechanism")
		}
		return nil, nil
	}
	name := strings.ToUpper(f.mechanism)
	if f.user == "" && name != OAuthBearer {
		return nil, fmt.Errorf("--sasl-mechanism %s needs --sasl-user", name)
	}
	password, err := f.passwordSource()
	if err != nil {
		return nil, err
	}
	user := f.user
	switch name {
	case Plain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			p, err := password()
			return plain.Auth{User: user, Pass: p}, err
		}), nil
	case ScramSHA256, ScramSHA512:
		auth := func(context.Context) (scram.Auth, error) {
			p, err := password()
			return scram.Auth{User: user, Pass: p}, err
		}
		if name == ScramSHA256 {
			return scram.Sha256(auth), nil
		}
		return scram.Sha512(auth), nil
	case OAuthBearer:
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			p, err := password()
			return oauth.Auth{Token: p}, err
		}), nil
	}
	return nil, fmt.Errorf("--sasl-mechanism is %q: give %s, %s, %s or %s", f.mechanism, Plain, ScramSHA256, ScramSHA512, OAuthBearer)
}

// passwordSource returns what gives the password at each connection.
func (f *Flags) passwordSource() (func() (string, error), error) {
	switch {
	case f.password.given() && f.passwordFile != "":
		return nil, errors.New("a password and a file with one are given: give one of them")
	case f.password.given():
		p := *f.password.text
		return func() (string, error) { return p, nil }, nil
	case f.passwordFile != "":
		file := f.passwordFile
		read := func() (string, error) {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", fmt.Errorf("password file: %w", err)
			}
			p := strings.TrimRight(string(text), "\r\n")
			if p == "" {
				return "", fmt.Errorf("password file %s is empty", file)
			}
			return p, nil
		}
		_, err := read() // now rather than at the first connection
		return read, err
	}
	return nil, fmt.Errorf("--sasl-mechanism needs a password: give --sasl-password-file, or %s", EnvPassword)
}
