package connects_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"bridge/backend/core/job"
	"bridge/backend/platform/proc"
	"bridge/backend/platform/sandbox"
	"bridge/backend/platform/sandbox/connects"
)

// The test's own program is also the sandbox, and the program below it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "test-sandbox-exec":
			fmt.Fprintln(os.Stderr, sandbox.Main(os.Args[2:], os.Environ()))
			os.Exit(1)
		case "test-attempt":
			attempt(os.Args[2:])
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// attempt does what each word asks, and writes a line of JSON for each: the error's text,
// empty for none.
func attempt(words []string) {
	out := json.NewEncoder(os.Stdout)
	for _, word := range words {
		what, argument, _ := strings.Cut(word, "=")
		text := ""
		if err := attempts[what](argument); err != nil {
			text = err.Error()
		}
		_ = out.Encode(text)
	}
}

var attempts = map[string]func(string) error{
	"stream":     func(path string) error { return dialEcho("unix", path) },
	"packet":     func(path string) error { return dialEcho("unixpacket", path) },
	"tcp":        func(address string) error { return dialEcho("tcp", address) },
	"blocking":   connectBlocking,
	"abstract":   func(name string) error { return dialEcho("unix", "@"+name) },
	"datagram":   func(path string) error { return sendDatagram(path) },
	"pair":       func(path string) error { return sendFromPair(path) },
	"from-below": connectFromChild,
	"own":        connectToOwn,
	"race":       raceAddress,
	"fd-race":    raceDescriptor,
	"ring":       func(string) error { return ring() },
	"memory":     func(string) error { return connectFrom(0, 110) },
	"too-long":   func(string) error { return connectFrom(0, 4096) },
	"relative": func(path string) error {
		if err := os.Chdir(filepath.Dir(path)); err != nil {
			return err
		}
		return dialEcho("unix", filepath.Base(path))
	},
}

func dialEcho(network, address string) error {
	conn, err := net.Dial(network, address)
	if err != nil {
		return errors.Unwrap(errors.Unwrap(err))
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err
}

// connectBlocking connects by a socket that waits, as most programs do.
func connectBlocking(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
}

func sendDatagram(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: path})
}

// sendFromPair sends to another socket than that which it is connected to.
func sendFromPair(path string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: path})
}

func connectFromChild(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command("/bin/sh", "-c", `setsid "$0" test-attempt "stream=$1" | cat`, self, path)
	out, err := child.Output()
	var text string
	if err = errors.Join(err, json.Unmarshal(out, &text)); err == nil && text != "" {
		err = errors.New(text)
	}
	return err
}

// connectToOwn connects to a socket on which this very program listens.
func connectToOwn(folder string) error {
	path := filepath.Join(folder, "own.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	go echo(listener)
	return dialEcho("unix", path)
}

// raceAddress changes the address while the connect call is looked at. It fails with EACCES
// unless a connection was made to the second path.
func raceAddress(paths string) error {
	good, bad, _ := strings.Cut(paths, ",")
	address := (&[unix.SizeofSockaddrUnix]byte{})[:]
	address[0] = unix.AF_UNIX
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			copy(address[2:], append([]byte(append([]string{good, bad}[i%2:], good)[0]), 0))
		}
	}()
	for range 300 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), addressOf(address), uintptr(len(address)))
		peer, err := unix.Getpeername(fd)
		_ = unix.Close(fd)
		if name, is := peer.(*unix.SockaddrUnix); errno == 0 && err == nil && is && name.Name == bad {
			return nil
		}
	}
	return unix.EACCES
}

// raceDescriptor puts a unix socket in the place of a TCP socket while the connect call is
// looked at.
func raceDescriptor(paths string) error {
	bad, tcp, _ := strings.Cut(paths, ",")
	port, err := strconv.Atoi(tcp)
	if err != nil {
		return err
	}
	const place = 100
	stop := make(chan struct{})
	defer close(stop)
	sockets := make([]int, 2)
	for i, family := range []int{unix.AF_INET, unix.AF_UNIX} {
		if sockets[i], err = unix.Socket(family, unix.SOCK_STREAM, 0); err != nil {
			return err
		}
	}
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = unix.Dup3(sockets[i%2], place, 0)
			}
		}
	}()
	for range 300 {
		_ = unix.Connect(place, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
		_ = unix.Connect(place, &unix.SockaddrUnix{Name: bad})
		if _, err := unix.Getpeername(sockets[1]); err == nil {
			return nil
		}
	}
	return unix.EACCES
}

func ring() error {
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, addressOf(make([]byte, 120)), 0)
	return errno
}

func connectFrom(address, size uintptr) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), address, size)
	return errno
}

// supervised is a program below the sandbox whose connections are supervised.
type supervised struct {
	folder  string // it may be written
	policy  connects.Policy
	rules   sandbox.Rules
	blind   bool // the supervisor may not look into the program
	refused []string
}

// run runs the attempts and returns the error of each.
func (s *supervised) run(t *testing.T, words ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runner := []string{self, "test-sandbox-exec"}
	supervisor, err := connects.New(s.policy, runner)
	if err != nil {
		t.Fatal(err)
	}
	defer supervisor.Close()
	if s.blind {
		supervisor.PretendBlind()
	}
	s.rules.Supervised, s.rules.Writable = true, []string{s.folder}
	line := sandbox.CommandLine(runner, s.rules, append([]string{self, "test-attempt"}, words...))
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &trouble, []*os.File{supervisor.File()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	supervisor.Start(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, trouble.String())
	}
	select {
	case <-supervisor.Unsupervised():
		if !s.blind {
			t.Error("the supervisor is told to be none")
		}
	default:
		if s.blind {
			t.Error("nobody is told that the calls are not answered")
		}
	}
	for len(supervisor.Refused()) > 0 {
		s.refused = append(s.refused, <-supervisor.Refused())
	}
	var texts []string
	for lines := json.NewDecoder(&out); lines.More(); {
		var text string
		if err := lines.Decode(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if len(texts) != len(words) {
		t.Fatalf("%d answers to %v: %s", len(texts), words, trouble.String())
	}
	return texts
}

// echo answers each connection with what it says first.
func echo(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			first := make([]byte, 1)
			if _, err := io.ReadFull(conn, first); err == nil {
				_, _ = conn.Write(first)
			}
		}()
	}
}

// listen listens for the test.
func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go echo(listener)
	return listener
}

func needSandbox(t *testing.T) {
	t.Helper()
	if err := sandbox.Available(); err != nil {
		t.Skipf("SKIPPED, no sandbox was tried: %v", err)
	}
}

// TestSEC_10_AJobConnectsToItsOwnSocketsAlone tries each way from a program below the
// sandbox to a unix socket of another program.
func TestSEC_10_AJobConnectsToItsOwnSocketsAlone(t *testing.T) {
	needSandbox(t)
	outside, inside := t.TempDir(), t.TempDir()
	other, opened, within := filepath.Join(outside, "other.sock"), filepath.Join(outside, "opened.sock"), filepath.Join(inside, "s.sock")
	packets, datagrams := filepath.Join(outside, "packets.sock"), filepath.Join(outside, "datagrams.sock")
	for _, path := range []string{other, opened, within} {
		listen(t, "unix", path)
	}
	listen(t, "unixpacket", packets)
	abstract := "bridge-test-" + filepath.Base(outside) + strconv.Itoa(os.Getpid())
	listen(t, "unix", "@"+abstract)
	received, err := net.ListenPacket("unixgram", datagrams)
	if err != nil {
		t.Fatal(err)
	}
	defer received.Close()
	tcp := listen(t, "tcp", "127.0.0.1:0").Addr().String()
	_, port, _ := net.SplitHostPort(tcp)
	link, dead := filepath.Join(inside, "link.sock"), filepath.Join(inside, "dead")
	if err := errors.Join(os.Symlink(other, link), os.WriteFile(dead, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	const denied = "permission denied"
	cases := []struct{ word, want string }{
		{"stream=" + other, denied},
		{"stream=" + link, denied},
		{"relative=" + other, denied},
		{"blocking=" + other, denied},
		{"packet=" + packets, denied},
		{"abstract=" + abstract, denied},
		{"datagram=" + datagrams, denied},
		{"pair=" + datagrams, denied},
		{"from-below=" + other, denied},
		{"race=" + within + "," + other, denied},
		{"fd-race=" + other + "," + port, denied},
		{"ring=", "function not implemented"},
		{"memory=", "bad address"},
		{"too-long=", "invalid argument"},
		{"stream=" + filepath.Join(inside, "none"), "no such file or directory"},
		{"stream=" + dead, "connection refused"},
		{"stream=" + within, ""},
		{"stream=" + opened, ""},
		{"relative=" + within, ""},
		{"blocking=" + within, ""},
		{"tcp=" + tcp, ""},
		{"own=" + inside, ""},
		{"from-below=" + within, ""},
	}
	s := &supervised{folder: inside, policy: connects.Policy{Folders: []string{inside}, Sockets: []string{opened}}}
	var words []string
	for _, c := range cases {
		words = append(words, c.word)
	}
	for i, text := range s.run(t, words...) {
		if text != cases[i].want {
			t.Errorf("%s: %q, want %q", cases[i].word, text, cases[i].want)
		}
	}
	slices.Sort(s.refused)
	if want := []string{other, packets}; !slices.Equal(s.refused, want) {
		t.Errorf("refused sockets: %v, want %v", s.refused, want)
	}
}

// TestSEC_10_WhoMayNotLookLeavesSocketsOpenAndSaysSo: some containers let no process look
// into another one. A job works there all the same.
func TestSEC_10_WhoMayNotLookLeavesSocketsOpenAndSaysSo(t *testing.T) {
	needSandbox(t)
	other := filepath.Join(t.TempDir(), "other.sock")
	listen(t, "unix", other)
	s := &supervised{folder: t.TempDir(), blind: true}
	if texts := s.run(t, "stream="+other); texts[0] != "" || len(s.refused) > 0 {
		t.Errorf("connected: %q, refused %v", texts, s.refused)
	}
}

// TestSEC_10_TheBrokerSeesAProcessOfTheJob connects to the broker's socket: the process at
// the other end is one that this process has started, outside of the sandbox.
func TestSEC_10_TheBrokerSeesAProcessOfTheJob(t *testing.T) {
	needSandbox(t)
	broker := filepath.Join(t.TempDir(), "bridge.sock")
	listener, err := net.Listen("unix", broker)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	peers := make(chan *unix.Ucred, 8)
	var trees sandbox.Trees
	me, err := proc.Identity(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	trees.Set(sandbox.Mark{Job: "job-a"}, job.Process{PID: os.Getpid(), Identity: me}, nil)
	names := make(chan string, 8)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			raw, _ := conn.(*net.UnixConn).SyscallConn()
			_ = raw.Control(func(fd uintptr) {
				cred, _ := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
				peers <- cred
				name, err := trees.JobOf(job.Process{PID: int(cred.Pid)})
				names <- fmt.Sprint(name, err)
			})
			_, _ = io.Copy(conn, io.LimitReader(conn, 1))
			conn.Close()
		}
	}()
	s := &supervised{folder: t.TempDir(), policy: connects.Policy{Broker: broker}}
	if texts := s.run(t, "stream="+broker, "stream="+broker, "relative="+broker); !slices.Equal(texts, []string{"", "", ""}) {
		t.Fatalf("connected to the broker: %q", texts)
	}
	first := <-peers
	for range 2 {
		if next := <-peers; next.Pid != first.Pid || next.Pid == int32(os.Getpid()) {
			t.Errorf("the broker sees process %d, then %d; this one is %d", first.Pid, next.Pid, os.Getpid())
		}
	}
	for range 3 {
		if name := <-names; name != "job-a<nil>" {
			t.Errorf("the broker takes the caller for %q", name)
		}
	}
	if err := syscall.Kill(int(first.Pid), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the connector is there when its supervisor was closed: %v", err)
	}
}

// TestSEC_10_AReadJobChangesNoAttribute tries the calls by which a program changes a file's
// attributes, on a file of its own user's, by its own programs.
func TestSEC_10_AReadJobChangesNoAttribute(t *testing.T) {
	needSandbox(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		`chmod 777 "$0"`, `touch -d 2001-01-01 "$0"`, `chown 1 "$0"`, `setfattr -n user.a -v b "$0"`, `chattr +A "$0"`,
		`perl -e 'open(my $f, "<", $ARGV[0]); chmod(0777, $f) or die' "$0"`, `perl -e 'utime(1, 1, $ARGV[0]) or die' "$0"`,
	} {
		program, _, _ := strings.Cut(command, " ")
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("SKIPPED, not installed: %s", program)
			continue
		}
		for _, keep := range []bool{false, true} {
			line := sandbox.CommandLine([]string{self, "test-sandbox-exec"}, sandbox.Rules{KeepAttributes: keep}, []string{"/bin/sh", "-c", command, file})
			out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput()
			if keep && err == nil {
				t.Errorf("%s: it was done", command)
			}
			if !keep && err != nil {
				t.Logf("%s is refused without the rule, too: %s", command, out)
			}
			if !keep {
				if err := errors.Join(os.Chmod(file, 0o600), os.Chtimes(file, before.ModTime(), before.ModTime())); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	after, err := os.Stat(file)
	if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the file was %v %v, and is %v %v, %v", before.Mode(), before.ModTime(), after.Mode(), after.ModTime(), err)
	}
}
