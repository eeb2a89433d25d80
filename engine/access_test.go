package engine

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/tributary-io/tributary/engine/internal/brokertest"
	"github.com/tributary-io/tributary/internal/realkafka"
	"github.com/tributary-io/tributary/serde"
	"github.com/tributary-io/tributary/topology"
)

const (
	accessUser     = "app-user"
	accessPrefix   = "team." // of transactional ids
	accessPassword = "not for the log"
)

// guarded is a topology like counts whose own topics aren't covered by the rights on what belongs to the application.
func guarded() *topology.Plan {
	b := topology.NewBuilder("guarded")
	b.Stream("access-in", serde.String, serde.String).
		GroupBy(func(_, v string) string { return v }, topology.Name("by-value")).
		Count(topology.Store("counts")).
		ToStream().
		To("access-out")
	b.Stream("access-days", serde.String, serde.String).
		GroupByKey().Windowed(topology.Tumbling(time.Hour)).Count(topology.Store("windows"))
	p, err := b.Build()
	if err != nil {
		panic(err)
	}
	return p
}

// wayIn is a listener and what opens it.
type wayIn struct {
	name, addr string
	client     []kgo.Opt
}

func waysIn(t *testing.T, b *realkafka.Secure) []wayIn {
	t.Helper()
	ca, err := os.ReadFile(b.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(b.CertFile, b.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	overTLS := kgo.DialTLSConfig(&tls.Config{RootCAs: trusted})
	auth := scram.Auth{User: accessUser, Pass: accessPassword}
	return []wayIn{
		{"PLAIN over TLS", b.SASLTLS, []kgo.Opt{overTLS, kgo.SASL(plain.Auth{User: accessUser, Pass: accessPassword}.AsMechanism())}},
		{"SCRAM-SHA-256", b.SASL, []kgo.Opt{kgo.SASL(auth.AsSha256Mechanism())}},
		{"SCRAM-SHA-512 over TLS", b.SASLTLS, []kgo.Opt{overTLS, kgo.SASL(auth.AsSha512Mechanism())}},
		{"OAUTHBEARER over TLS", b.SASLTLS, []kgo.Opt{overTLS, kgo.SASL(oauth.Auth{Token: unsecuredToken(accessUser)}.AsMechanism())}},
		{"client certificate", b.TLS, []kgo.Opt{kgo.DialTLSConfig(&tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{cert}})}},
	}
}

// unsecuredToken is a token for a broker that checks no signatures (RFC 7515, appendix A.5).
func unsecuredToken(user string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	now := time.Now().Unix()
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, user, now-10, now+3600)) + "."
}

// rights changes ACLs and waits until the broker acts by them.
type rights struct {
	t     *testing.T
	admin *kadm.Client
}

func (r *rights) builder(a ACL, op string) *kadm.ACLBuilder {
	operation, err := kmsg.ParseACLOperation(op)
	if err != nil {
		r.t.Fatal(err)
	}
	pattern := kadm.ACLPatternLiteral
	if a.Prefixed {
		pattern = kadm.ACLPatternPrefixed
	}
	b := kadm.NewACLs().Allow("User:"+accessUser, "User:"+realkafka.CertifiedUser).AllowHosts("*").ResourcePatternType(pattern).Operations(operation)
	switch a.Resource {
	case TopicResource:
		return b.Topics(a.Name)
	case GroupResource:
		return b.Groups(a.Name)
	default:
		return b.TransactionalIDs(a.Name)
	}
}

func (r *rights) give(a ACL, op string) {
	r.t.Helper()
	results, err := r.admin.CreateACLs(r.t.Context(), r.builder(a, op))
	for _, result := range results {
		err = errors.Join(err, result.Err)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.await(a, op, true)
}

func (r *rights) take(a ACL, op string) {
	r.t.Helper()
	results, err := r.admin.DeleteACLs(r.t.Context(), r.builder(a, op))
	for _, result := range results {
		err = errors.Join(err, result.Err)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.await(a, op, false)
}

func (r *rights) await(a ACL, op string, there bool) {
	r.t.Helper()
	eventually(r.t, "the broker knows the ACL", func() bool {
		found, err := r.admin.DescribeACLs(r.t.Context(), r.builder(a, op))
		if err != nil {
			r.t.Fatal(err)
		}
		n := 0
		for _, f := range found {
			n += len(f.Described)
		}
		return there == (n > 0)
	})
}

// accessLog collects the logs of all instances.
type accessLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *accessLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *accessLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// An application with state, a repartition and transactions works with exactly the rights that RequiredACLs lists, by each way into a
// secured broker, and says what is missing where one is.
func TestAccess(t *testing.T) {
	t.Parallel()
	broker := realkafka.StartSecure(t, map[string]string{accessUser: accessPassword})
	s := &secured{t: t, app: newApp(t, &brokertest.Cluster{Addrs: broker.Addrs()}, "access"), ways: waysIn(t, broker), log: &accessLog{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.log)
		}
	})
	s.create("in", 2)
	s.create("out", 2)
	s.createWith("days", 1, map[string]string{"retention.ms": "-1"})
	s.rights = &rights{t, kadm.NewClient(s.c.Client(t))}
	s.acls = RequiredACLs(guarded(), ACLOptions{TransactionalIDPrefix: accessPrefix})
	for _, a := range s.acls {
		for _, op := range a.Operations {
			s.give(a, op)
		}
	}
	s.out = s.read("out")
	s.refusedWithout(t, func(_ ACL, op string) bool { return op == "Create" }) // while there is something to make
	s.worksByEachWay(t)
	s.refusedWithout(t, func(_ ACL, op string) bool { return op != "Create" && op != "Delete" })
	s.complainsWithoutDelete(t)
	s.wrongPassword(t)
	if log := s.log.String(); strings.Contains(log, accessPassword) || strings.Contains(log, unsecuredToken(accessUser)[:20]) {
		t.Error("the log holds a secret")
	}
}

type secured struct {
	*app
	*rights
	t        *testing.T
	ways     []wayIn
	acls     []ACL
	out      *output
	log      *accessLog
	produced int
	days     int64
}

func (s *secured) instance(w wayIn, opts ...Option) *instance {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return s.start(guarded(), "a", append([]Option{Brokers(w.addr), Client(w.client...), Logger(log), TransactionalIDPrefix(accessPrefix)}, opts...)...)
}

func (s *secured) feed() {
	s.t.Helper()
	s.app.produce("in", 2, numbered(100, 10)...)
	s.produced += 100
	s.app.produceAt("days", time.UnixMilli(int64(s.produced)*864_000), "a day later")
	s.days++
}

// daysCommitted tells whether all days have been processed: windows of one commit don't expire by each other.
func (s *secured) daysCommitted() bool {
	committed, err := s.admin.FetchOffsets(s.t.Context(), guarded().ApplicationID())
	if err != nil {
		s.t.Fatal(err)
	}
	o, ok := committed.Lookup(s.topic("days"), 0)
	return ok && o.At >= s.days
}

func (s *secured) worksByEachWay(t *testing.T) {
	for n, w := range s.ways {
		s.feed()
		i := s.instance(w, PurgeInterval(100*time.Millisecond))
		eventually(t, w.name+": all is counted", func() bool { return total(s.out.lastCounts()) == int64(s.produced) })
		eventually(t, w.name+": the day is committed", s.daysCommitted)
		if n == len(s.ways)-1 { // by then windows have expired
			for _, topic := range []string{"guarded-by-value-repartition", "guarded-windows-changelog"} {
				eventually(t, "records of "+topic+" are deleted", func() bool { return s.deleted(topic) })
			}
		}
		i.stop(t)
	}
}

// deleted tells whether some partition of a topic no longer begins at 0.
func (s *secured) deleted(topic string) bool {
	starts, err := s.admin.ListStartOffsets(s.t.Context(), topic)
	if err != nil {
		s.t.Fatal(err)
	}
	some := false
	starts.Each(func(o kadm.ListedOffset) { some = some || o.Offset > 0 })
	return some
}

// refusedWithout takes each chosen right away by itself: the application must end, and name it.
func (s *secured) refusedWithout(t *testing.T, chosen func(a ACL, op string) bool) {
	for _, a := range s.acls {
		for _, op := range a.Operations {
			if !chosen(a, op) {
				continue
			}
			s.take(a, op)
			s.feed()
			err := s.instance(s.ways[1]).failsWithin(waitLimit)
			s.give(a, op)
			var refused *AccessError
			if !errors.As(err, &refused) {
				t.Errorf("without %s on %s %s: error %v", op, a.Resource, a.Name, err)
				continue
			}
			lists := func(n ACL) bool { return n.Name == a.Name && slices.Contains(n.Operations, op) }
			if !slices.ContainsFunc(refused.Needs, lists) || !strings.Contains(err.Error(), a.Name) {
				t.Errorf("without %s on %s %s the error doesn't say so: %v", op, a.Resource, a.Name, err)
			}
		}
	}
}

// failsWithin returns the error with which an instance ends, nil if it goes on; then it is ended.
func (i *instance) failsWithin(limit time.Duration) error {
	select {
	case err := <-i.ended:
		i.ended <- nil // for the clean-up
		return err
	case <-time.After(limit):
	}
	i.cancel()
	<-i.ended
	i.ended <- nil
	return nil
}

// complainsWithoutDelete: what can't be purged takes space, but is no reason to stop.
func (s *secured) complainsWithoutDelete(t *testing.T) {
	for _, a := range s.acls {
		if !slices.Contains(a.Operations, "Delete") {
			continue
		}
		s.take(a, "Delete")
		s.feed()
		i := s.instance(s.ways[1], PurgeInterval(50*time.Millisecond))
		eventually(t, "the log names the topic that can't be purged", func() bool {
			log := s.log.String()
			return strings.Contains(log, "lacks the right to delete") && strings.Contains(log, "topic="+a.Name)
		})
		eventually(t, "all is counted", func() bool { return total(s.out.lastCounts()) == int64(s.produced) })
		i.stop(t)
		s.give(a, "Delete")
	}
}

func (s *secured) wrongPassword(t *testing.T) {
	w := s.ways[1]
	w.client = []kgo.Opt{kgo.SASL(scram.Sha256(func(context.Context) (scram.Auth, error) {
		return scram.Auth{User: accessUser, Pass: "wrong " + accessPassword}, nil
	}))}
	err := s.instance(w).failure(t)
	var refused *AccessError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "password") || strings.Contains(err.Error(), accessPassword) {
		t.Errorf("with a wrong password: error %v", err)
	}
}
