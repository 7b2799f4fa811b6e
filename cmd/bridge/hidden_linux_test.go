package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openPageHidden opens a launch link as openPage does, by a connection that stands in the
// descriptor table of one thread alone.
func openPageHidden(file string, output io.Writer) error {
	link, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	address, err := url.Parse(strings.TrimSpace(string(link)))
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FILES); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte(net.IPv4(127, 0, 0, 1).To4())}); err != nil {
		return err
	}
	if _, err := unix.Write(fd, fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", address.RequestURI(), address.Host)); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(bareReader(fd)), nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%d %s", answer.StatusCode, body)
	}
	fmt.Fprintln(output, http.StatusOK)
	return nil
}

// bareReader reads a descriptor by bare calls.
type bareReader int

func (b bareReader) Read(into []byte) (int, error) {
	n, err := unix.Read(int(b), into)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}
