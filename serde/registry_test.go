package serde_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"go.uber.org/goleak"

	"github.com/tributary-io/tributary/internal/leaks"
	"github.com/tributary-io/tributary/serde"
)

// registryServer is a fake registry that counts requests and can be told to answer something else.
type registryServer struct {
	fake     *srfake.Registry
	requests atomic.Int64
	instead  atomic.Pointer[http.HandlerFunc]
	url      string
}

func (s *registryServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.requests.Add(1)
	if h := s.instead.Load(); h != nil {
		(*h)(w, req)
		return
	}
	s.fake.Handler().ServeHTTP(w, req)
}

func (s *registryServer) answer(h http.HandlerFunc) { s.instead.Store(&h) }

func fakeRegistry(t *testing.T, opts ...serde.RegistryOption) (*registryServer, *serde.Registry) {
	t.Helper()
	s := &registryServer{fake: srfake.NewRegistry()}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	reg, err := serde.NewRegistry(srv.URL, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reg.Close)
	return s, reg
}

func avroSchemaText(text string) sr.Schema { return sr.Schema{Schema: text, Type: sr.TypeAvro} }

func TestRegistryRegistersAndFinds(t *testing.T) {
	srv, reg := fakeRegistry(t)
	ctx := t.Context()
	if err := reg.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	id, err := reg.Register(ctx, "orders-value", orderSchema)
	if err != nil {
		t.Fatal(err)
	}
	// The text goes to the registry as it is: docs and attributes are what the lake makes comments and tags of.
	if got, ok := srv.fake.GetSchema("orders-value", 1); !ok || got.Schema.Schema != orderSchema {
		t.Errorf("registered %q", got.Schema.Schema)
	}
	before := srv.requests.Load()
	if again, err := reg.Register(ctx, "orders-value", orderSchema); again != id || err != nil {
		t.Errorf("registered again as %d, %v", again, err)
	}
	if text, err := reg.WriterSchema(ctx, id); text != orderSchema || err != nil {
		t.Errorf("schema %d is %q, %v", id, text, err)
	}
	if n := srv.requests.Load() - before; n != 0 {
		t.Errorf("%d requests for what is known", n)
	}
	if err := reg.CheckCompatible(ctx, "orders-value", orderSchema); err != nil {
		t.Error(err)
	}
	if err := reg.CheckCompatible(ctx, "new-value", orderSchema); err != nil {
		t.Errorf("a subject without versions takes any schema: %v", err)
	}
}

func TestRegistryAsksOnceForAll(t *testing.T) {
	srv, reg := fakeRegistry(t)
	id, _, err := srv.fake.RegisterSchema("s", avroSchemaText(`"string"`))
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan struct{})
	srv.answer(func(w http.ResponseWriter, req *http.Request) {
		<-waiting
		srv.fake.Handler().ServeHTTP(w, req)
	})
	gaveUp, giveUp := context.WithCancel(t.Context())
	var gone, all sync.WaitGroup
	gone.Go(func() {
		if _, err := reg.WriterSchema(gaveUp, id); err == nil || !serde.Retriable(err) {
			t.Errorf("who gave up got %v", err)
		}
	})
	for range 20 {
		all.Go(func() {
			if text, err := reg.WriterSchema(t.Context(), id); text != `"string"` || err != nil {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
	for srv.requests.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	giveUp()
	gone.Wait() // before there is an answer, which it could get as well
	close(waiting)
	all.Wait()
	if n := srv.requests.Load(); n > 2 { // one, or two if somebody came only after the first had ended
		t.Errorf("%d requests for one schema", n)
	}
}

func TestRegistryRemembersUnknownIDsForAWhile(t *testing.T) {
	now := time.Unix(0, 0)
	srv, reg := fakeRegistry(t, serde.RegistryClock(func() time.Time { return now }))
	for range 5 {
		if _, err := reg.WriterSchema(t.Context(), 1); err == nil || serde.Retriable(err) {
			t.Fatalf("error %v", err)
		}
	}
	if n := srv.requests.Load(); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
	if _, _, err := srv.fake.RegisterSchema("s", avroSchemaText(`"string"`)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if text, err := reg.WriterSchema(t.Context(), 1); text != `"string"` || err != nil {
		t.Errorf("registered since: %q, %v", text, err)
	}
}

func TestRegistryErrors(t *testing.T) {
	srv, reg := fakeRegistry(t)
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			w.Write([]byte(body))
		}
	}
	hang := make(chan struct{})
	for _, c := range []struct {
		name      string
		answer    http.HandlerFunc
		retriable bool
		want      string
	}{
		{"unknown id", status(404, `{"error_code":40403,"message":"Schema 7 not found"}`), false, "Schema 7 not found"},
		{"another server", status(404, `<html>`), true, "check the path of the URL"},
		{"no credentials", status(401, `{"error_code":401,"message":"Unauthorized"}`), true, "check the credentials"},
		{"not allowed", status(403, ``), true, "check the credentials"},
		{"in trouble", status(500, `{"error_code":50001,"message":"Error in the backend"}`), true, "Error in the backend"},
		{"overloaded", status(429, ``), true, "no response"},
		{"not JSON", status(200, `<html>`), true, "get schema 7"},
		{"Protobuf", status(200, `{"schema":"x","schemaType":"PROTOBUF"}`), false, "a schema of type PROTOBUF isn't supported"},
		{"references", status(200, `{"schema":"x","references":[{"name":"a","subject":"other-value","version":1}]}`), false, "a reference to other-value"},
		{"hangs", func(http.ResponseWriter, *http.Request) { <-hang }, true, "deadline exceeded"},
	} {
		srv.answer(c.answer)
		limit := time.Minute
		if c.name == "hangs" {
			limit = 200 * time.Millisecond
		}
		reg, err := serde.NewRegistry(srv.url, serde.RegistryTimeout(limit))
		if err != nil {
			t.Fatal(err)
		}
		_, err = reg.WriterSchema(t.Context(), 7)
		if c.name == "hangs" {
			close(hang)
		}
		if err == nil || serde.Retriable(err) != c.retriable || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), srv.url) {
			t.Errorf("%s: error %v, retriable %v; want %q, %v", c.name, err, serde.Retriable(err), c.want, c.retriable)
		}
		reg.Close()
	}

	srv.answer(status(409, `{"error_code":409,"message":"Schema being registered is incompatible"}`))
	if _, err := reg.Register(t.Context(), "s", `"string"`); err == nil || serde.Retriable(err) || !strings.Contains(err.Error(), "default") {
		t.Errorf("incompatible: %v", err)
	}
	srv.answer(status(422, `{"error_code":42201,"message":"Invalid schema"}`))
	if _, err := reg.Register(t.Context(), "s", `"strin"`); err == nil || serde.Retriable(err) {
		t.Errorf("invalid: %v", err)
	}
	srv.answer(status(200, `{"is_compatible":false,"messages":["READER_FIELD_MISSING_DEFAULT_VALUE"]}`))
	if err := reg.CheckCompatible(t.Context(), "s", `"string"`); err == nil || serde.Retriable(err) || !strings.Contains(err.Error(), "READER_FIELD") {
		t.Errorf("incompatible: %v", err)
	}
}

func TestRegistryDownAndBack(t *testing.T) {
	srv, reg := fakeRegistry(t)
	id, _, err := srv.fake.RegisterSchema("orders-value", avroSchemaText(`"string"`))
	if err != nil {
		t.Fatal(err)
	}
	s := serde.Avro[string](reg, `"string"`)
	data := append(serde.AppendFrame(nil, int32(id)), "\x02x"...)
	srv.answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	for range 3 {
		if _, err := s.Decode(data); !serde.Retriable(err) {
			t.Fatalf("down: %v", err)
		}
	}
	srv.instead.Store(nil)
	if v, err := s.Decode(data); v != "x" || err != nil {
		t.Errorf("back: %q, %v", v, err)
	}
}

func TestRegistryURLs(t *testing.T) {
	for _, bad := range []string{"", "localhost:8081", "http://a,b"} {
		if _, err := serde.NewRegistry(bad); err == nil {
			t.Errorf("%q was taken for a URL", bad)
		}
	}
	srv, _ := fakeRegistry(t)
	reg, err := serde.NewRegistry("http://127.0.0.1:1, " + srv.url)
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	if err := reg.Ping(t.Context()); err != nil {
		t.Errorf("the second URL wasn't tried: %v", err)
	}
}

func TestRegistryCredentials(t *testing.T) {
	srv, _ := fakeRegistry(t)
	var got string
	srv.answer(func(w http.ResponseWriter, req *http.Request) {
		got = req.Header.Get("Authorization")
		w.Write([]byte(`[]`))
	})
	for want, opt := range map[string]serde.RegistryOption{
		"Basic dTpw": serde.RegistryBasicAuth("u", "p"), "Bearer tok": serde.RegistryBearerToken("tok"),
	} {
		reg, err := serde.NewRegistry(srv.url, opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := reg.Ping(t.Context()); err != nil || got != want {
			t.Errorf("sent %q, %v, want %q", got, err, want)
		}
		reg.Close()
	}
}

func TestRegistryPasswordInURLStaysSecret(t *testing.T) {
	srv, _ := fakeRegistry(t)
	var got string
	srv.answer(func(w http.ResponseWriter, req *http.Request) {
		got = req.Header.Get("Authorization")
		w.WriteHeader(401)
	})
	for _, url := range []string{strings.Replace(srv.url, "://", "://u:secret@", 1), "http://u:secret@127.0.0.1:1"} {
		reg, err := serde.NewRegistry(url)
		if err != nil {
			t.Fatal(err)
		}
		defer reg.Close()
		if err := reg.Ping(t.Context()); err == nil || strings.Contains(err.Error()+reg.String(), "secret") {
			t.Errorf("%s: error %v", reg, err)
		}
	}
	if got != "Basic dTpzZWNyZXQ=" {
		t.Errorf("sent %q", got)
	}
	for _, bad := range []string{"ftp://u:secret@host", "http://u:secret@host:port", "//u:secret@host"} {
		if _, err := serde.NewRegistry(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v", err)
		}
	}
}

func TestRegistryTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("[]")) }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	reg, err := serde.NewRegistry(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	if err := reg.Ping(t.Context()); err == nil {
		t.Error("a certificate that nobody vouches for was taken")
	}
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig
	trusting, err := serde.NewRegistry(srv.URL, serde.RegistryTLS(roots))
	if err != nil {
		t.Fatal(err)
	}
	defer trusting.Close()
	if err := trusting.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRegistryCloseLeavesNothing(t *testing.T) {
	old := goleak.IgnoreCurrent()
	defer func() {
		if err := leaks.Find(old); err != nil {
			t.Error(err)
		}
	}()
	asked, hang := make(chan struct{}, 1), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-hang
	}))
	defer srv.Close()
	reg, err := serde.NewRegistry(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := reg.WriterSchema(context.Background(), 1)
		ended <- err
	}()
	<-asked
	reg.Close()
	if err := <-ended; err == nil {
		t.Error("a request outlived Close")
	}
	close(hang)
}
