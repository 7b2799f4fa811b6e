package hubtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"golang.org/x/sys/unix"

	"bridge/backend/network/link"
	"bridge/backend/platform/disk"
)

const inside = "BRIDGE_HUB_TEST_NETWORK"

// OnANetworkOfItsOwn runs the test again, in a process that has no network but the one
// that it makes, and reports whether this is that process.
func OnANetworkOfItsOwn(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v", "-test.count=1"}
	if deadline, bounded := t.Deadline(); bounded {
		args = append(args, "-test.timeout="+time.Until(deadline).String())
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...) //nolint:gosec // this very test
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	output, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skip("SKIPPED: no network namespace may be made here, so nothing about three nodes on a network of their own is tested: run it as root")
	}
	t.Logf("%s", output)
	if err != nil {
		t.Error(err)
	}
	return false
}

// Network is a switch: each machine's packets come through the test, which carries them to
// where they are addressed, but to and from a machine that is cut off. A machine is known
// by the last byte of its address.
type Network struct {
	mu    sync.Mutex
	ports map[byte]*os.File // by the last byte of the address
	cut   [256]atomic.Bool
	tasks sync.WaitGroup
}

// NewNetwork makes a network until the end of the test. The test itself is on it, too, as
// that machine; where none can be made the test is skipped.
func NewNetwork(t *testing.T, self byte) *Network {
	t.Helper()
	n := &Network{ports: map[byte]*os.File{}}
	t.Cleanup(func() {
		n.mu.Lock()
		for _, port := range n.ports {
			_ = port.Close() // its reader ends
		}
		n.mu.Unlock()
		n.tasks.Wait()
	})
	if err := n.plug(self); errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
		t.Skipf("SKIPPED: there is no /dev/net/tun to make a network of: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	return n
}

// Address is that of a machine.
func Address(last byte) string { return fmt.Sprintf("10.78.0.%d", last) }

// Cut cuts a machine off from all others, or joins it to them again.
func (n *Network) Cut(last byte, off bool) { n.cut[last].Store(off) }

// plug gives the network namespace of this thread an address on the network.
func (n *Network) plug(last byte) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq("hub0")
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	port := os.NewFile(uintptr(fd), "hub0")
	if err == nil {
		err = configure("hub0", net.IPv4(10, 78, 0, last))
	}
	if err == nil {
		err = configure("lo", nil)
	}
	if err != nil {
		return errors.Join(err, port.Close())
	}
	n.mu.Lock()
	n.ports[last] = port
	n.mu.Unlock()
	n.tasks.Go(func() { n.carry(last, port) })
	return nil
}

// configure sets up a device, with that address where there is one.
func configure(device string, ip net.IP) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	request, err := unix.NewIfreq(device)
	if err != nil {
		return err
	}
	if ip != nil {
		for _, set := range []struct {
			what    uint
			address net.IP
		}{{unix.SIOCSIFADDR, ip}, {unix.SIOCSIFNETMASK, net.IPv4(255, 255, 255, 0)}} { // no mask before there is an address
			if err := errors.Join(request.SetInet4Addr(set.address.To4()), unix.IoctlIfreq(fd, set.what, request)); err != nil {
				return fmt.Errorf("the address of %s: %w", device, err)
			}
		}
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

func (n *Network) carry(from byte, port *os.File) {
	packet := make([]byte, 64<<10)
	for {
		size, err := port.Read(packet)
		if err != nil {
			return
		}
		if size < 20 || packet[0]>>4 != 4 {
			continue // not of IP version 4
		}
		recipient := packet[19]
		n.mu.Lock()
		file := n.ports[recipient]
		n.mu.Unlock()
		if file != nil && !n.cut[from].Load() && !n.cut[recipient].Load() {
			_, _ = file.Write(packet[:size]) // a machine takes it or does not
		}
	}
}

// Machine is a network namespace with an address; what is started there lives in it.
type Machine struct{ work chan func() }

// Machine makes one, until the end of the test.
func (n *Network) Machine(t *testing.T, last byte) *Machine {
	t.Helper()
	m := &Machine{work: make(chan func())}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its namespace
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = n.plug(last)
		}
		started <- err
		for work := range m.work {
			work()
		}
	}()
	t.Cleanup(func() { close(m.work) })
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return m
}

// Start starts a command on the machine, or in the test's own namespace if m is nil. It fails
// as exec.Cmd.Start does.
func (m *Machine) Start(cmd *exec.Cmd) (err error) {
	if m == nil {
		return cmd.Start()
	}
	done := make(chan struct{})
	m.work <- func() {
		defer close(done)
		err = cmd.Start()
	}
	<-done
	return err
}

// Nodes are the homes of a hub of three nodes, with the same keys, that listen at the
// machines 1 to 3.
func Nodes(t *testing.T) (homes [3]string) {
	t.Helper()
	for i := range homes {
		homes[i] = t.TempDir()
	}
	_, err := link.OpenIdentity(filepath.Join(homes[0], "network"))
	var pair nkeys.KeyPair
	if err == nil {
		pair, err = nkeys.CreateUser()
	}
	var seed []byte
	if err == nil {
		seed, err = pair.Seed()
	}
	if err == nil {
		err = disk.WriteAtomic(filepath.Join(homes[0], "admin.nk"), seed, 0o600)
	}
	for _, home := range homes[1:] {
		if err == nil {
			err = os.CopyFS(home, os.DirFS(homes[0]))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return homes
}

// NodeFlags are those of `bridge-hub serve` for one of them, from 0 on.
func NodeFlags(node int) []string {
	flags := []string{"--node", fmt.Sprintf("hub-%d", node+1), "--listen", Address(byte(node + 1)), "--cluster", Address(byte(node+1)) + ":4781"}
	for other := range 3 {
		at := Address(byte(other + 1))
		if flags = append(flags, "--url", "tls://"+at+":4780"); other != node {
			flags = append(flags, "--peer", at+":4781")
		}
	}
	return flags
}
