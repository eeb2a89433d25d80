package faultproxy

import (
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tributary-io/tributary/internal/leaks"
)

// echo is a server that answers with what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, n *Network, addr string) net.Conn {
	t.Helper()
	c, err := n.Dial(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// says writes text and returns what comes back before the limit.
func says(c net.Conn, text string, limit time.Duration) (string, error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	buf := make([]byte, len(text))
	n, err := io.ReadFull(c, buf)
	return string(buf[:n]), err
}

func network(t *testing.T) *Network {
	t.Helper()
	n := New()
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

const long = 2 * time.Minute

func TestPasses(t *testing.T) {
	n, addr := network(t), echo(t)
	if got, err := says(dial(t, n, addr), "hello", long); err != nil || got != "hello" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCutIsForOneConnectionOnly(t *testing.T) {
	n, addr := network(t), echo(t)
	a := dial(t, n, addr)
	if _, err := says(a, "x", long); err != nil {
		t.Fatal(err)
	}
	victim := n.Conns()[0]
	b := dial(t, n, addr)
	victim.Cut()
	if _, err := says(a, "hello", long); err == nil {
		t.Error("the connection that was cut goes on")
	}
	if got, err := says(b, "hello", long); err != nil || got != "hello" {
		t.Errorf("the other one: %q, %v", got, err)
	}
}

func TestCutInTheMiddleOfAnAnswer(t *testing.T) {
	n, addr := network(t), echo(t)
	c := dial(t, n, addr)
	if _, err := says(c, "x", long); err != nil {
		t.Fatal(err)
	}
	n.Conns()[0].CutAfter(3)
	if got, err := says(c, "hello", long); err == nil || len(got) > 3 {
		t.Errorf("%q, %v", got, err)
	}
}

func TestBlackHoleHoldsAndLetsGo(t *testing.T) {
	n, addr := network(t), echo(t)
	c := dial(t, n, addr)
	if _, err := says(c, "x", long); err != nil {
		t.Fatal(err)
	}
	hole := n.Conns()[0]
	hole.BlackHole(true)
	if got, err := says(c, "hello", 50*time.Millisecond); err == nil || got != "" {
		t.Fatalf("%q came through, %v", got, err)
	}
	hole.BlackHole(false)
	if got, err := says(c, "!", long); err != nil || got != "h" { // what was held comes first
		t.Errorf("%q, %v", got, err)
	}
}

func TestDelay(t *testing.T) {
	n, addr := network(t), echo(t)
	c := dial(t, n, addr)
	if _, err := says(c, "x", long); err != nil {
		t.Fatal(err)
	}
	const d = 40 * time.Millisecond
	n.Conns()[0].Delay(d)
	began := time.Now()
	if _, err := says(c, "hello", long); err != nil || time.Since(began) < 2*d {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestRefuse(t *testing.T) {
	n, addr := network(t), echo(t)
	n.Refuse(true)
	if c, err := n.Dial(t.Context(), "tcp", addr); err == nil { // the proxy's own port takes it, and ends it
		if _, err := says(c, "hello", long); err == nil {
			t.Error("a connection although they are refused")
		}
		c.Close()
	}
	n.Refuse(false)
	if _, err := says(dial(t, n, addr), "hello", long); err != nil {
		t.Error(err)
	}
}

func TestNothingIsLeft(t *testing.T) {
	old := goleak.IgnoreCurrent()
	n := New()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := n.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err := leaks.Find(old); err != nil {
		t.Error(err)
	}
}
