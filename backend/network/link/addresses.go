package link

import (
	"net"
	"net/netip"
)

// OwnAddresses returns the addresses by which others may reach this PC.
func OwnAddresses() []string {
	var list []string
	for _, address := range ownAddresses() {
		list = append(list, address.String())
	}
	return list
}

// ownAddresses returns the global unicast addresses of this PC, without loopback and
// link-local ones.
func ownAddresses() []netip.Addr {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var own []netip.Addr
	for _, address := range found {
		prefix, err := netip.ParsePrefix(address.String())
		if err == nil && prefix.Addr().IsGlobalUnicast() {
			own = append(own, prefix.Addr().Unmap())
		}
	}
	return own
}

// Reachable replaces unspecified addresses by the PC's own addresses, because an
// unspecified address cannot be dialled.
func Reachable(listening []string) []string {
	var addresses []string
	for _, text := range listening {
		at, err := netip.ParseAddrPort(text)
		if err != nil || !at.Addr().IsUnspecified() {
			addresses = append(addresses, text)
			continue
		}
		for _, own := range ownAddresses() {
			if own.Is4() || at.Addr().Is6() {
				addresses = append(addresses, netip.AddrPortFrom(own, at.Port()).String())
			}
		}
	}
	if len(addresses) == 0 { // no network at all
		return listening
	}
	return addresses
}
