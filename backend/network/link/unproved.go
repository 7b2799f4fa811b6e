package link

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

const (
	// maxUnproved bounds the connections that have not shown who they are.
	maxUnproved = 32
	// maxUnprovedOfOne bounds those of one address, or of one network of IPv6.
	maxUnprovedOfOne = 8
	// networkBits are the first bits of an IPv6 address that name its network: one machine
	// has as many addresses in there as it likes.
	networkBits = 64
)

// unproved are the connections that have not shown who they are. Silent ones keep nobody
// out: where there are too many, the oldest of the address with the most gives way
// (SEC-12).
type unproved struct {
	mu   sync.Mutex
	list []waiting // oldest first
}

type waiting struct {
	conn net.Conn
	from netip.Addr
}

// add keeps a connection, and closes another one where there are too many.
func (u *unproved) add(conn net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	from := networkOf(conn.RemoteAddr())
	u.list = append(u.list, waiting{conn, from})
	switch {
	case u.count(from) > maxUnprovedOfOne:
		u.dropOldest(from)
	case len(u.list) > maxUnproved:
		u.dropOldest(u.busiest())
	}
}

// remove forgets a connection.
func (u *unproved) remove(conn net.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = slices.DeleteFunc(u.list, func(w waiting) bool { return w.conn == conn })
}

func (u *unproved) count(from netip.Addr) (count int) {
	for _, w := range u.list {
		if w.from == from {
			count++
		}
	}
	return count
}

// busiest returns the address with the most connections, of several the one that came
// first.
func (u *unproved) busiest() netip.Addr {
	best, most := netip.Addr{}, 0
	for _, w := range u.list {
		if count := u.count(w.from); count > most {
			best, most = w.from, count
		}
	}
	return best
}

func (u *unproved) dropOldest(from netip.Addr) {
	i := slices.IndexFunc(u.list, func(w waiting) bool { return w.from == from })
	_ = u.list[i].conn.Close() // whoever is honest comes again
	u.list = slices.Delete(u.list, i, i+1)
}

// networkOf returns the address of the other end, of IPv6 that of its network. The zero
// address stands for one that is not known.
func networkOf(at net.Addr) netip.Addr {
	tcp, is := at.(*net.TCPAddr)
	if !is {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if addr.Is6() {
		if prefix, err := addr.Prefix(networkBits); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}
