package hub

import "net"

// dialer calls the hub so that a node which is switched off or cut off is noticed within
// twice Timing.PeerTimeout, or little more: once where nothing is said meanwhile. The system
// looks after that by what the other side confirms, so a way that is slow, and full, is
// none that has ended; NATS's pings, which would wait behind what is on the way, are there
// for a node that hangs.
func (p Timing) dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         p.PeerTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: p.PeerTimeout / 4 * 3, Interval: p.PeerTimeout / 4, Count: 2},
		Control:         giveUp(p.PeerTimeout),
	}
}
