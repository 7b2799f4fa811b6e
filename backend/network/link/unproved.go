package link

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

const (
	// maxUnproved limits the connections whose peers are not verified.
	maxUnproved = 32
	// maxUnprovedOfOne limits those from one address, or from one IPv6 network.
	maxUnprovedOfOne = 8
	// networkBits is the prefix length of an IPv6 network: one machine may have any
	// number of addresses in it.
	networkBits = 64
)

// unproved holds the connections whose peers are not verified. Silent ones cannot block
// others: if there are too many, the oldest connection of the busiest address is closed
// (SEC-12).
type unproved struct {
	mu   sync.Mutex
	list []waiting // oldest first
}

type waiting struct {
	conn net.Conn
	from netip.Addr
}

// add adds a connection, and closes another one if there are too many.
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

// remove removes a connection.
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

// busiest returns the address with the most connections, the first one of several.
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
	_ = u.list[i].conn.Close() // an honest peer connects again
	u.list = slices.Delete(u.list, i, i+1)
}

// networkOf returns the address of the other end, for IPv6 that of its network. It
// returns the zero address if it is unknown.
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
