package sandbox

import (
	"bufio"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// The tables of the kernel name a socket by both of its addresses: another connection
// with the same two ports is another one, whoever made it.
func TestSEC_01_ASocketIsFoundByBothOfItsAddresses(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	row := func(local, remote, user, inode string) string {
		return "   0: " + local + " " + remote + " 01 00000000:00000000 00:00000000 00000000 " + user + " 0 " + inode + " 1 0000000000000000 20 4 30 10 -1\n"
	}
	from, port := netip.MustParseAddrPort("127.0.0.1:43210"), netip.MustParseAddrPort("127.0.0.1:4777")
	twin := row("0100007F:A8CA", "0500007F:12A9", "1001", "11") + row("0200007F:A8CA", "0100007F:12A9", "1002", "12")
	for name, table := range map[string]struct {
		rows string
		want socket
	}{
		"alone":          {row("0100007F:A8CA", "0100007F:12A9", "1000", "13"), socket{1000, 13}},
		"behind a twin":  {twin + row("0100007F:A8CA", "0100007F:12A9", "1000", "13"), socket{1000, 13}},
		"a twin alone":   {twin, socket{}},
		"the other end":  {row("0100007F:12A9", "0100007F:A8CA", "1000", "13"), socket{}},
		"open in none":   {row("0100007F:A8CA", "0100007F:12A9", "1000", "0"), socket{}},
		"as IPv6":        {row("0000000000000000FFFF00000100007F:A8CA", "0000000000000000FFFF00000100007F:12A9", "1000", "13"), socket{1000, 13}},
		"a broken table": {row("0100007F", "0100007F:12A9", "1000", "13") + row("0100007F:A8CA", "0100007F:12A9", "x", "13"), socket{}},
	} {
		t.Run(name, func(t *testing.T) {
			found, ok := findSocket(bufio.NewScanner(strings.NewReader(head+table.rows)), from, port)
			if found != table.want || ok != (table.want != socket{}) {
				t.Errorf("found %+v, %t, want %+v", found, ok, table.want)
			}
		})
	}
	if at := parseAddr("00000000000000000000000001000000:12A9"); at != netip.MustParseAddrPort("[::1]:4777") {
		t.Errorf("::1 is read as %s", at)
	}
}

// What is no TCP connection has no peer that the tables tell of.
func TestSEC_01_APipeHasNoSocket(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	if known, err := SameUser(near); known || err != nil {
		t.Errorf("a pipe is %t, %v", known, err)
	}
}
