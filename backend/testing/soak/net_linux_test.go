package soak

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// place is a network namespace of a test's own, with a thread that lives in it: what is
// started there has its loopback and one end of a wire, and no other network.
type place struct {
	ip   string
	work chan func()
}

// do carries something out in the namespace. A process that is started so stays in it.
func (p *place) do(work func() error) (err error) {
	done := make(chan struct{})
	p.work <- func() {
		defer close(done)
		err = work()
	}
	<-done
	return err
}

// start starts a command in the namespace.
func (p *place) start(cmd *exec.Cmd) error { return p.do(cmd.Start) }

// output runs a command there.
func (p *place) output(cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := p.start(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return out.String(), err
}

const device = "bridge0"

// enter makes the namespace and its end of the wire.
func enter(t *testing.T, ip string) (*place, *os.File) {
	t.Helper()
	p := &place{ip: ip, work: make(chan func())}
	begun := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with its namespace
		begun <- unix.Unshare(unix.CLONE_NEWNET)
		for work := range p.work {
			work()
		}
	}()
	t.Cleanup(func() { close(p.work) })
	if err := <-begun; errors.Is(err, unix.EPERM) {
		t.Skip("SKIPPED: no network namespace may be made here, so nothing about two PCs on a network of their own is tested: run it as root")
	} else if err != nil {
		t.Fatal(err)
	}
	var end *os.File
	err := p.do(func() (err error) {
		if end, err = tunnel(device); err != nil {
			return err
		}
		if err := address(device, ip); err != nil {
			return err
		}
		if err := flag(device, unix.IFF_UP); err != nil {
			return err
		}
		return flag("lo", unix.IFF_UP)
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) {
		t.Skipf("SKIPPED: there is no /dev/net/tun to join two namespaces by: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = end.Close() }) // a reader of it ends so
	return p, end
}

// tunnel makes a network device whose packets the test carries itself.
func tunnel(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("make the device %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func control(name string, ask func(fd int, request *unix.Ifreq) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err == nil {
		err = ask(fd, request)
	}
	if err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	return nil
}

func address(name, ip string) error {
	return control(name, func(fd int, request *unix.Ifreq) error {
		for _, set := range []struct {
			what uint
			to   net.IP
		}{{unix.SIOCSIFADDR, net.ParseIP(ip).To4()}, {unix.SIOCSIFNETMASK, net.IPv4(255, 255, 255, 0).To4()}} {
			if err := request.SetInet4Addr(set.to); err != nil {
				return err
			}
			if err := unix.IoctlIfreq(fd, set.what, request); err != nil {
				return err
			}
		}
		return nil
	})
}

// flag sets the flags of a device; 0 takes it down.
func flag(name string, flags uint16) error {
	return control(name, func(fd int, request *unix.Ifreq) error {
		request.SetUint16(flags)
		return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
	})
}

// cable joins two namespaces. The test carries each packet itself, so it can lose some,
// have all come late, and cut it between any two: that needs no module of the
// kernel.
type cable struct {
	*testing.T
	ends [2]*place

	delay   atomic.Int64 // nanoseconds, each way
	loss    atomic.Int64 // packets of a thousand
	cut     atomic.Bool  // nothing gets through
	carried atomic.Int64
	lost    atomic.Int64

	tasks sync.WaitGroup
}

func newCable(t *testing.T) *cable {
	t.Helper()
	w := &cable{T: t}
	item, first := enter(t, "10.77.0.1")
	two, second := enter(t, "10.77.0.2")
	w.ends = [2]*place{item, two}
	w.tasks.Go(func() { w.carry(first, second) })
	w.tasks.Go(func() { w.carry(second, first) })
	t.Cleanup(func() {
		_, _ = first.Close(), second.Close()
		w.tasks.Wait()
	})
	return w
}

// late is a packet on its way.
type late struct {
	packet []byte
	at     time.Time
}

// carry takes what comes out of one end to the other, in its order.
func (w *cable) carry(from, file *os.File) {
	way := make(chan late, 4096)
	defer close(way)
	w.tasks.Go(func() {
		for next := range way {
			if wait := time.Until(next.at); wait > 0 {
				<-time.After(wait)
			}
			if !w.cut.Load() { // else it is lost on its way
				_, _ = file.Write(next.packet) // a device that is down takes nothing
			}
		}
	})
	packet := make([]byte, 64<<10)
	for {
		n, err := from.Read(packet)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil { // of a device that is down
			<-time.After(5 * time.Millisecond)
			continue
		}
		if w.cut.Load() || rand.Int64N(1000) < w.loss.Load() {
			w.lost.Add(1)
			continue
		}
		w.carried.Add(1)
		select {
		case way <- late{packet: bytes.Clone(packet[:n]), at: time.Now().Add(time.Duration(w.delay.Load()))}:
		default: // as a router with a full queue
			w.lost.Add(1)
		}
	}
}

// weather is how good the wire is.
func (w *cable) weather(delay time.Duration, lossPerThousand int64) {
	w.delay.Store(int64(delay))
	w.loss.Store(lossPerThousand)
}

// reset ends the connections between the two, as a machine that restarts does: both
// sides know at once.
func (w *cable) reset() {
	for _, end := range w.ends {
		if out, err := end.output(exec.Command("ss", "-K", "state", "established", "dst", "10.77.0.0/24")); err != nil {
			w.Errorf("ss -K: %v: %s", err, out)
		}
	}
}

// pull takes the device down at one end, or up again.
func (w *cable) pull(end int, down bool) {
	flags := uint16(unix.IFF_UP)
	if down {
		flags = 0
	}
	if err := w.ends[end].do(func() error { return flag(device, flags) }); err != nil {
		w.Error(err)
	}
}
