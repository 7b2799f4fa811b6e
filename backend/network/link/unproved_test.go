package link

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// named is a connection whose other end has an address of the test's.
type named struct {
	net.Conn
	from   string
	closed *[]string
}

func (n named) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.ParseIP(n.from), Port: 1}
}

func (n named) Close() error {
	*n.closed = append(*n.closed, n.from)
	return nil
}

func TestSEC_12_TheOldestOfTheBusiestAddressGivesWay(t *testing.T) {
	many := func(from string, count int) []string { return slices.Repeat([]string{from}, count) }
	var different []string
	for i := range maxUnproved {
		different = append(different, net.IPv4(10, 0, 1, byte(i)).String())
	}
	for name, c := range map[string]struct{ come, closed []string }{
		"few":                     {many("10.0.0.1", maxUnprovedOfOne), nil},
		"too many of one address": {append([]string{"10.0.0.2"}, many("10.0.0.1", maxUnprovedOfOne+3)...), many("10.0.0.1", 3)},
		"too many of one network": {append([]string{"2001:db8:0:1::1"}, "2001:db8:0:2::1", "2001:db8:0:2::2", "2001:db8:0:2::3", "2001:db8:0:2::4",
			"2001:db8:0:2::5", "2001:db8:0:2::6", "2001:db8:0:2::7", "2001:db8:0:2::8", "2001:db8:0:2::9"), []string{"2001:db8:0:2::1"}},
		"too many in all":           {append(append(many("10.0.0.1", 2), different...), "10.0.0.3"), many("10.0.0.1", 2)},
		"too many, each of its own": {append(different, "10.0.0.3"), different[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			var u unproved
			var closed []string
			for _, from := range c.come {
				u.add(named{from: from, closed: &closed})
			}
			if len(c.closed) > 0 && name == "too many in all" {
				c.closed = append(c.closed, different[0])
			}
			if !slices.Equal(closed, c.closed) {
				t.Errorf("closed are %v, want %v", closed, c.closed)
			}
		})
	}
}

// Any number of silent connections keeps nobody from pairing, and from nobody's link.
func TestSEC_12_SilentConnectionsKeepNobodyOut(t *testing.T) {
	a, b := newPC(t, "laptop"), newPC(t, "desk").listen()
	for range 3 * maxUnproved {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	pairUp(t, a, b)
}

// Whoever gives way is not told that there is no invitation.
func TestSEC_12_WhoGivesWayIsToldSo(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := newPC(t, "laptop")
	_, err = Join(ctx, p.identity, p.book, p.name, listener.Addr().String(), "1234-5678")
	if err == nil || strings.Contains(err.Error(), "no invitation") || !strings.Contains(err.Error(), "closed the connection before it answered") {
		t.Errorf("it says %v", err)
	}
}
