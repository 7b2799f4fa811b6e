package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackTime bounds one attack.
const attackTime = 20 * time.Second

// find returns the row of that name.
func find(name string) (attack, error) {
	i := slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })
	if i < 0 {
		return attack{}, fmt.Errorf("there is no attack %q", name)
	}
	return attacks[i], nil
}

// markOf returns the mark of the attack whose function is running.
func markOf(s stage) string {
	a, err := find(os.Args[3])
	if err != nil {
		panic(err)
	}
	return a.mark(s)
}

// ownFolder returns the folder of the attack whose function is running.
func ownFolder(s stage) string {
	a, err := find(os.Args[3])
	if err != nil {
		panic(err)
	}
	return a.own(s)
}

// runBridge runs a command of Bridge's with an environment, nil for the attacker's own.
func runBridge(s stage, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), attackTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Program, append(args, "--home", s.Home)...)
	cmd.Env = env
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, output)
	}
	return string(output), err
}

func bare(s stage) []string {
	return []string{"HOME=" + s.User, "PATH=" + os.Getenv("PATH"), "BRIDGE_PORT=0"}
}

func sendPlain(s stage) (string, error) { return runBridge(s, nil, "send", victim, markOf(s)) }

func sendBare(s stage) (string, error) { return runBridge(s, bare(s), "send", victim, markOf(s)) }

// sendDetached sends from a process whose parents have ended, in a session of its own.
func sendDetached(s stage) (string, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", err
	}
	err = start(s, write, nil, "detach", "send", markOf(s))
	_ = write.Close() // the other one's stays
	if err != nil {
		return "", err
	}
	said, err := io.ReadAll(read)
	return string(said), err
}

// parents is how often a message is sent while the sender's parent ends.
const parents = 60

// sendAsParentsEnd sends from processes whose parents end at the moment at which the broker
// may look for them.
func sendAsParentsEnd(s stage) (string, error) {
	var errs []error
	for i := range parents {
		errs = append(errs, start(s, nil, nil, "leave", markOf(s), fmt.Sprintf("%dus", 5000+500*i)))
	}
	<-time.After(time.Second) // the last ones send
	return "", errors.Join(errs...)
}

// start starts this program as a helper, in a session of its own and without marks.
func start(s stage, output *os.File, extra []*os.File, args ...string) error {
	cmd := helper(s, args...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = output, output, extra
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Wait()
}

// helper returns this program as a helper.
func helper(s stage, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self, append([]string{helperArgument}, args...)...)
	cmd.Env = append(bare(s), "TMPDIR="+os.TempDir(), stageVariable+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

const (
	helperArgument = "attack-helper"
	stageVariable  = "CONFORMANCE_STAGE"
)

// sendPassed talks to the broker over a connection that another process has opened, passed
// on and ended.
func sendPassed(s stage) (string, error) {
	fd, err := passedBy(s, "connect-unix", filepath.Join(s.Home, "bridge.sock"))
	if err != nil {
		return "", err
	}
	broker, err := net.FileConn(os.NewFile(uintptr(fd), "broker"))
	if err != nil {
		return "", err
	}
	fake := filepath.Join(os.TempDir(), "f")
	token, err := os.ReadFile(filepath.Join(s.Home, "token"))
	if err == nil {
		err = os.Mkdir(fake, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(fake, "token"), token, 0o600)
	}
	if err != nil {
		return "", err
	}
	door, err := net.Listen("unix", filepath.Join(fake, "bridge.sock"))
	if err != nil {
		return "", err
	}
	go func() {
		client, err := door.Accept()
		if err != nil {
			return
		}
		go io.Copy(client, broker) //nolint:errcheck // its end is the end of the attack
		io.Copy(broker, client)    //nolint:errcheck // the same
	}()
	s.Home = fake
	return runBridge(s, bare(s), "send", victim, markOf(s))
}

// passedBy starts a helper that opens a connection, sends its descriptor and ends.
func passedBy(s stage, how, address string) (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, err
	}
	file := os.NewFile(uintptr(pair[1]), "pair")
	if err := start(s, nil, []*os.File{file}, how, address); err != nil {
		return 0, err
	}
	return receive(pair[0])
}

func receive(from int) (int, error) {
	space := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(from, make([]byte, 1), space, 0)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(space[:n])
	if err != nil || len(messages) != 1 {
		return 0, errors.Join(err, errors.New("no descriptor came"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return 0, err
	}
	return fds[0], nil
}

func answerQuestion(s stage) (string, error) {
	return runBridge(s, bare(s), "answer", s.Question, "--option", "1")
}

func listRules(s stage) (string, error) {
	_, err := runBridge(s, bare(s), "rules")
	return answeredAsOwner, err
}

func getLink(s stage) (string, error) {
	said, err := runBridge(s, bare(s), "url")
	if err == nil && !strings.Contains(said, "/launch?key=") {
		err = errors.New(said)
	}
	return answeredAsOwner, err
}

func mailByTools(s stage) (string, error) {
	cmd := exec.Command(s.Program, "mcp", "--agent", "claude", "--name", victim, "--session", victimSession, "--cwd", s.Work, "--home", s.Home)
	cmd.Env = bare(s)
	input, inErr := cmd.StdinPipe()
	output, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		return "", err
	}
	defer cmd.Process.Kill() //nolint:errcheck // it may have ended
	late := time.AfterFunc(attackTime/2, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_, err := io.WriteString(input, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"inbox","arguments":{"mark_read":false}}}`+"\n")
	if err != nil {
		return "", err
	}
	lines := json.NewDecoder(output)
	for {
		var line struct {
			ID     int
			Result json.RawMessage
		}
		if err := lines.Decode(&line); err != nil {
			return "", err
		}
		if line.ID == 2 {
			return string(line.Result), nil
		}
	}
}

func mailByHook(s stage) (string, error) {
	cmd := exec.Command(s.Program, "hook", "claude", "UserPromptSubmit", "--home", s.Home)
	cmd.Env = bare(s)
	cmd.Stdin = strings.NewReader(`{"session_id":"` + victimSession + `","hook_event_name":"UserPromptSubmit","prompt":"x","cwd":"/"}`)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

func openLaunchLink(s stage) (string, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return "", err
	}
	browser := http.Client{Jar: jar, Timeout: attackTime}
	for _, address := range []string{s.Link, "http://" + s.Page + "/api/state"} {
		answer, err := browser.Get(address)
		if err != nil {
			return "", err
		}
		_ = answer.Body.Close() // only its status counts
		if answer.StatusCode != http.StatusOK {
			return "", errors.New(answer.Status)
		}
	}
	return answeredAsOwner, nil
}

// openBySecret tries the secret that lies in Bridge's home as a launch key.
func openBySecret(s stage) (string, error) {
	secret, err := os.ReadFile(filepath.Join(s.Home, "launch-secret"))
	if err != nil {
		return "", err
	}
	s.Link = "http://" + s.Page + "/launch?key=" + url.QueryEscape(strings.TrimSpace(string(secret)))
	return openLaunchLink(s)
}

// pageRequest writes to the victim as the owner.
func pageRequest(s stage, mark string) []byte {
	body := `{"body":"` + mark + `"}`
	return fmt.Appendf(nil, "POST /api/sessions/%s/message HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nx-bridge: 1\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		victim, s.Page, s.Cookie, len(body), body)
}

// dialPage connects by bare calls, so that nothing else knows the descriptor.
func dialPage(address string) (int, error) {
	tcpAddr, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	return fd, unix.Connect(fd, &unix.SockaddrInet4{Port: tcpAddr.Port, Addr: [4]byte(tcpAddr.IP.To4())})
}

// ask sends a request and reads the answer.
func ask(fd int, request []byte) (string, error) {
	if _, err := unix.Write(fd, request); err != nil {
		return "", err
	}
	return readAnswer(fd)
}

func readAnswer(fd int) (string, error) {
	var answer bytes.Buffer
	piece := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, piece)
		if n <= 0 {
			return firstLine(answer.String()), err
		}
		answer.Write(piece[:n])
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\r\n")
	return line
}

func pagePlain(s stage) (string, error) {
	fd, err := dialPage(s.Page)
	if err != nil {
		return "", err
	}
	return ask(fd, pageRequest(s, markOf(s)))
}

func pageFromThread(s stage) (string, error) {
	type outcome struct {
		said string
		err  error
	}
	done := make(chan outcome)
	go func() {
		runtime.LockOSThread() // for good: no other goroutine gets this table
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			done <- outcome{"", err}
			return
		}
		said, err := pagePlain(s)
		done <- outcome{said, err}
	}()
	o := <-done
	return o.said, o.err
}

// flights is how often a socket is sent in flight: each time the broker may look too early.
const flights = 5

func pageInFlight(s stage) (string, error) {
	for range flights {
		fd, err := dialPage(s.Page)
		if err != nil {
			return "", err
		}
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return "", err
		}
		if _, err := unix.Write(fd, pageRequest(s, markOf(s))); err != nil {
			return "", err
		}
		if err := errors.Join(unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0), unix.Close(fd)); err != nil {
			return "", err
		}
		<-time.After(300 * time.Millisecond) // nobody has the socket meanwhile
		if fd, err = receive(pair[1]); err != nil {
			return "", err
		}
		if said, err := readAnswer(fd); err != nil || strings.Contains(said, " 200 ") {
			return said, err
		}
	}
	return "", errors.New("refused")
}

func pageUndumpable(s stage) (string, error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return "", err
	}
	return pagePlain(s)
}

// pageInherited uses a connection that a helper has opened, passed on and ended.
func pageInherited(s stage) (string, error) {
	fd, err := passedBy(s, "connect-page", s.Page)
	if err != nil {
		return "", err
	}
	return ask(fd, pageRequest(s, markOf(s)))
}

// ring is an io_uring with room for one call.
type ring struct {
	fd         int
	calls, own []byte // the calls, and what is shared with the kernel
	tail, at   uint32 // where the number of calls and the list of them stand in own
}

// The offsets of struct io_uring_params and what is asked for.
const (
	ringParams    = 120
	ringTail      = 40 + 4
	ringArray     = 40 + 24
	ringCalls     = 0x10000000
	registerFiles = 2
	sendCall      = 26
	fixedFile     = 1
	getEvents     = 1
)

func openRing() (r ring, err error) {
	params := make([]byte, ringParams)
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params[0])), 0)
	if errno != 0 {
		return r, errno
	}
	r = ring{fd: int(fd), tail: *(*uint32)(unsafe.Pointer(&params[ringTail])), at: *(*uint32)(unsafe.Pointer(&params[ringArray]))}
	if r.own, err = unix.Mmap(r.fd, 0, int(r.at)+4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return r, err
	}
	r.calls, err = unix.Mmap(r.fd, ringCalls, 64, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return r, err
}

// hold has the ring hold a file, which then stands in no table of descriptors.
func (r ring) hold(fd int) error {
	files := []int32{int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(r.fd), registerFiles, uintptr(unsafe.Pointer(&files[0])), 1, 0, 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(fd)
}

// send sends bytes by the held file.
func (r ring) send(data []byte) error {
	r.calls[0], r.calls[1] = sendCall, fixedFile
	*(*uint64)(unsafe.Pointer(&r.calls[16])) = uint64(uintptr(unsafe.Pointer(&data[0])))
	*(*uint32)(unsafe.Pointer(&r.calls[24])) = uint32(len(data))
	*(*uint32)(unsafe.Pointer(&r.own[r.at])) = 0
	*(*uint32)(unsafe.Pointer(&r.own[r.tail])) = 1
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), 1, 1, getEvents, 0, 0)
	runtime.KeepAlive(data)
	if errno != 0 {
		return errno
	}
	return nil
}

func pageByRing(s stage) (string, error) {
	r, err := openRing()
	if err != nil {
		return "", err
	}
	fd, err := dialPage(s.Page)
	if err == nil {
		err = r.hold(fd)
	}
	if err == nil {
		err = r.send(pageRequest(s, markOf(s)))
	}
	<-time.After(time.Second) // the broker may take the request meanwhile
	return "", err
}
