package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bridge/backend/platform/ipc/api"
	"bridge/backend/testing/testkit"
)

// paired are two homes that know each other as laptop and desk; desk allows laptop's
// files.
type paired struct{ laptop, desk string }

func pairHomes(t *testing.T) paired {
	t.Helper()
	homes := paired{laptop: filepath.Join(shortDir(t), "l"), desk: filepath.Join(shortDir(t), "d")}
	for name, home := range map[string]string{"laptop": homes.laptop, "desk": homes.desk} {
		if err := os.MkdirAll(home, 0o700); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		overwrite(t, filepath.Join(home, "config.json"), fmt.Sprintf(`{"network": {"enabled": true, "name": %q, "port": %d, "files": {"allowPeers": ["laptop"]}}}`, name, port))
	}
	return homes
}

// pair has the two, whose brokers run, pair by a code.
func (p paired) pair(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bridge", "pair", "--json", "--home", p.desk)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var shown struct{ Address, Code string }
	if err := json.NewDecoder(output).Decode(&shown); err != nil {
		t.Fatal(err)
	}
	if got := runBridge(t, nil, shown.Code, "link", shown.Address, "--code-stdin", "--home", p.laptop); got.code != 0 {
		t.Fatalf("link: %+v", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

// linked waits until laptop has a link to desk.
func (p paired) linked(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Patience); ; {
		got := runBridge(t, nil, "", "network", "--json", "--home", p.laptop)
		var network api.Network
		if json.Unmarshal([]byte(got.stdout), &network) == nil && len(network.Peers) == 1 && network.Peers[0].Up {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no link came: %+v", got)
		}
	}
}

func kill(t *testing.T, s *serving) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // it was killed
}

// underWay waits until some of a transfer, and not all, is in desk's partial folder. It
// reports whether it saw that.
func (p paired) underWay(t *testing.T, size int64) bool {
	t.Helper()
	for deadline := time.Now().Add(testkit.Patience); time.Now().Before(deadline); {
		if done, _ := filepath.Glob(filepath.Join(p.desk, "inbox", "*")); len(done) > 0 {
			return false
		}
		files, _ := filepath.Glob(filepath.Join(p.desk, "network", "incoming", "*", "files", "large"))
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.Size() > 1<<20 && info.Size() < size {
				return true
			}
		}
	}
	t.Fatal("the transfer never began")
	return false
}

// TestRMT_20_EitherProgramIsKilledInTheMiddle kills the receiver's and the sender's
// broker while a file is on its way, with the real program.
func TestRMT_20_EitherProgramIsKilledInTheMiddle(t *testing.T) {
	for _, victim := range []string{"receiver", "sender"} {
		t.Run(victim, func(t *testing.T) {
			for size := int64(64 << 20); ; size *= 2 {
				if killInTheMiddle(t, victim, size) {
					return
				}
				if size > 512<<20 {
					t.Fatal("it was always there before anybody could be killed")
				}
			}
		})
	}
}

func killInTheMiddle(t *testing.T, victim string, size int64) bool {
	t.Helper()
	homes := pairHomes(t)
	desk := serve(t, homes.desk)
	laptop := serve(t, homes.laptop)
	defer func() {
		desk.end(t)
		laptop.end(t)
	}()
	homes.pair(t)
	homes.linked(t)
	path := filepath.Join(t.TempDir(), "large")
	want := fillWithNoise(t, path, size)
	sending := exec.CommandContext(t.Context(), "bridge", "send-file", "desk", path, "--home", homes.laptop)
	if err := sending.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sending.Wait() }() // without its broker it fails
	if !homes.underWay(t, size) {
		return false
	}
	if victim == "receiver" {
		kill(t, desk)
		desk = serve(t, homes.desk)
	} else {
		kill(t, laptop)
		laptop = serve(t, homes.laptop)
	}
	var arrived []string
	for deadline := time.Now().Add(testkit.Patience); len(arrived) == 0; {
		arrived, _ = filepath.Glob(filepath.Join(homes.desk, "inbox", "*", "large"))
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %s", runBridge(t, nil, "", "files", "--json", "--home", homes.laptop).stdout)
		}
	}
	data, err := os.ReadFile(arrived[0])
	if err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(data) != want {
		t.Error("other bytes have arrived")
	}
	for deadline := time.Now().Add(testkit.Patience); ; {
		got := runBridge(t, nil, "", "files", "--home", homes.laptop).stdout
		if strings.Contains(got, "ago") || strings.Contains(got, "now") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the sender says %s", got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(homes.desk, "inbox", "*")); len(left) != 1 {
		t.Errorf("the inbox has %q", left)
	}
	return true
}

// fillWithNoise writes a file and returns its checksum.
func fillWithNoise(t *testing.T, path string, size int64) [sha256.Size]byte {
	t.Helper()
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // it never fails
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}
